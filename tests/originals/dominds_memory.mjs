// Serves the memory tools of an agent of dominds over MCP on stdio; the arguments are checked as its driver does.
// Usage: bun dominds_memory.mjs FOLDER/main

import { join } from "node:path";
import { serve } from "./stdio_tools.mjs";

const folder = process.argv[2];
const { validateArgs } = await import(join(folder, "tool.ts"));
const memory = await import(join(folder, "tools", "mem.ts"));

async function run(tool, given) {
    const { ok, error } = validateArgs(tool.parameters, given);
    const text = ok ? await tool.call({}, { id: "tester" }, given) : `Invalid arguments: ${error}`;
    return { text, isError: !ok || /^(Error|❌)/u.test(text) };
}

const personal = Object.values(memory).filter(({ name }) => !name.includes("_team_"));
await serve(Object.fromEntries(personal.map((tool) => [tool.name, (given) => run(tool, given)])));
