// The official TypeScript client, second generation, told by JSON where to go: what it saw, as JSON.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const task = JSON.parse(process.argv[2]);
const [command, ...args] = task.command ?? [];
const transport = task.url
  ? new StreamableHTTPClientTransport(new URL(task.url))
  : new StdioClientTransport({ command, args, env: task.env });

const client = new Client({ name: "tour", version: "1" }, { versionNegotiation: { mode: "auto" } });
await client.connect(transport);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const call = (name, args) => client.callTool({ name, arguments: args });
const added = await call("add_memory", task.memory);
const found = await call("recall", { query: task.query });
const resource = await client.readResource({ uri: task.uri });
const refused = await call("read_memory", { path: task.missing });
const failed = [];
for (const [name, args] of task.calls ?? []) {
  await call(name, args).catch((error) => failed.push(`${name}: ${error}`));
}
await client.close();
console.log(
  JSON.stringify({
    tools,
    added: added.content[0].text,
    recalled: found.content[0].text,
    resource: resource.contents[0].text,
    refused: refused.isError ? refused.content[0].text : "",
    failed,
  }),
);
