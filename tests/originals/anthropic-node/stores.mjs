// The methods of /v1/memory_stores by the vendor's Node SDK: as anthropic_stores.py beside this folder.
import { createInterface } from 'node:readline';
import Anthropic, { APIError } from '@anthropic-ai/sdk';

const [address, key] = process.argv.slice(2);
const stores = new Anthropic({ baseURL: address, apiKey: key, maxRetries: 0 }).beta.memoryStores;
const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

async function answered(name, positional, named) {
  const path = name.split('.').map(camel);
  const method = path.pop();
  const owner = path.reduce((found, part) => found[part], stores);
  const given = Object.keys(named).length ? [...positional, named] : positional;
  try {
    const found = await owner[method](...given);
    if (method !== 'list') return found;
    const pages = [];
    for await (const page of found.iterPages()) pages.push(page.data);
    return pages;
  } catch (error) {
    if (!(error instanceof APIError)) throw error;
    const { status, type, requestID: id, error: body } = error;
    return { status, type, error: body.error, id, 'id in the body': body.request_id };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answered(...JSON.parse(line))));
}
