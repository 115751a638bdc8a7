// The official TypeScript SDK logs in from an address alone; see tests/support/sign_in_client.py for its lines.
import { createServer } from "node:http";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

let answered;
const listener = createServer((request, response) => {
  const at = new URL(request.url, "http://127.0.0.1");
  response.end("Close this page.");
  if (at.pathname === "/callback") answered(at.searchParams);
}).listen(0, "127.0.0.1");
await once(listener, "listening");
const kept = {};
const say = (...words) => console.log(words.join(" "));
const provider = {
  redirectUrl: `http://127.0.0.1:${listener.address().port}/callback`,
  get clientMetadata() {
    return { client_name: "TypeScript", redirect_uris: [this.redirectUrl] };
  },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  invalidateCredentials: () => void delete kept.tokens,
  redirectToAuthorization(url) {
    kept.answer = new Promise((resolve) => (answered = resolve));
    say("open", url);
  },
};

async function connect() {
  const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]), { authProvider: provider });
  const client = new Client({ name: "sign-in", version: "1" });
  await client.connect(transport);
  return client;
}

async function signedIn(work) {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    const answer = await kept.answer;
    if (answer.get("error")) throw new Error(answer.get("error"));
    const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]), { authProvider: provider });
    await transport.finishAuth(answer.get("code"));
    return await work();
  }
}

let client = await signedIn(connect);
say("tools", ...(await client.listTools()).tools.map((tool) => tool.name));
for await (const text of createInterface({ input: process.stdin })) {
  const memory = { path: text, content: text };
  try {
    const result = await signedIn(() => client.callTool({ name: "add_memory", arguments: memory }));
    say("called", Boolean(result.isError));
  } catch (error) {
    say("failed", error.message);
  }
}
process.exit();
