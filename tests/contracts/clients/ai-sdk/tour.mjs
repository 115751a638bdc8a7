// The MCP client of the AI SDK, told by JSON where to go: what it saw, as JSON.
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";

const task = JSON.parse(process.argv[2]);
const [command, ...args] = task.command ?? [];
const transport = task.url ? { type: "http", url: task.url } : new StdioTransport({ command, args, env: task.env });

const client = await createMCPClient({ transport });
const tools = await client.tools();
const call = (name, args) => tools[name].execute(args, { toolCallId: name, messages: [] });
const added = await call("add_memory", task.memory);
const found = await call("recall", { query: task.query });
const resource = await client.readResource({ uri: task.uri });
const refused = await call("read_memory", { path: task.missing });
await client.close();
console.log(
  JSON.stringify({
    tools: Object.keys(tools),
    added: added.content[0].text,
    recalled: found.content[0].text,
    resource: resource.contents[0].text,
    refused: refused.isError ? refused.content[0].text : "",
  }),
);
