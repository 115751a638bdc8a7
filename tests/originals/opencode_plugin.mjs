// Serves the tools of a plugin of OpenCode over MCP on stdio, as OpenCode hands them to its models.
// Usage: bun opencode_plugin.mjs MODULE; PROJECT is the folder that the plugin works in.

import { pathToFileURL } from "node:url";
import { serve } from "./stdio_tools.mjs";

const plugin = (await import(pathToFileURL(process.argv[2]).href)).default;
const { tool } = await plugin({ directory: process.env.PROJECT });

function checked(args, given) {
    return Object.fromEntries(
        Object.entries(args).map(([name, schema]) => {
            const { success, data } = schema.safeParse(given[name]);
            if (!success) throw new Error(`invalid argument: ${name}`);
            return [name, data];
        }),
    );
}

const run = async ({ args, execute }, given) => ({ text: await execute(checked(args, given)) });
await serve(Object.fromEntries(Object.entries(tool).map(([name, one]) => [name, (given) => run(one, given)])));
