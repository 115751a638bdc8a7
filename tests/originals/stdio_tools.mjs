// Serves tools over MCP on stdio: `tools` is a function of each name, which takes the arguments and returns
// `{ text, isError }`, or throws.

import { createInterface } from "node:readline";

export async function serve(tools) {
    const called = async (name, given) => {
        try {
            const { text, isError } = await tools[name](given);
            return { isError: isError ?? false, content: [{ type: "text", text }] };
        } catch (error) {
            return { isError: true, content: [{ type: "text", text: error.message }] };
        }
    };
    const answers = {
        initialize: ({ protocolVersion }) => ({
            protocolVersion,
            capabilities: { tools: {} },
            serverInfo: { name: "tools", version: "1" },
        }),
        "tools/list": () => ({ tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: "object" } })) }),
        "tools/call": ({ name, arguments: given }) => called(name, given ?? {}),
    };
    for await (const line of createInterface({ input: process.stdin })) {
        const { id, method, params } = JSON.parse(line);
        if (id !== undefined) {
            const result = (await answers[method]?.(params ?? {})) ?? {};
            process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
        }
    }
}
