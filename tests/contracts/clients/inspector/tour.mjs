// The command line of the MCP Inspector, told by JSON where to go: what it saw, as JSON.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const task = JSON.parse(process.argv[2]);
const inspector = fileURLToPath(import.meta.resolve("@modelcontextprotocol/inspector/package.json")).replace(
  "package.json",
  "clients/launcher/build/index.js",
);
const target = task.url ? [task.url, "--transport", "http"] : [...task.command];
const variables = task.url ? [] : Object.entries(task.env).flatMap(([name, value]) => ["-e", `${name}=${value}`]);

function ask(...wanted) {
  const done = spawnSync(process.execPath, [inspector, "--cli", ...variables, ...target, ...wanted], {
    encoding: "utf8",
  });
  if (!done.stdout) throw new Error(done.stderr);
  return JSON.parse(done.stdout);
}

function call(name, args) {
  const given = Object.entries(args).flatMap(([key, value]) => ["--tool-arg", `${key}=${value}`]);
  return ask("--method", "tools/call", "--tool-name", name, ...given);
}

const tools = ask("--method", "tools/list").tools.map((tool) => tool.name);
const added = call("add_memory", task.memory);
const found = call("recall", { query: task.query });
const resource = ask("--method", "resources/read", "--uri", task.uri);
const refused = call("read_memory", { path: task.missing });
console.log(
  JSON.stringify({
    tools,
    added: added.content[0].text,
    recalled: found.content[0].text,
    resource: resource.contents[0].text,
    refused: refused.isError ? refused.content[0].text : "",
  }),
);
