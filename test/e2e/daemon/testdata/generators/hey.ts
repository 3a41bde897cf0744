import { client } from "./hey/client.gen";
import { createCall, createSession } from "./hey/sdk.gen";
import type { CallRequest } from "./hey/types.gen";

declare const process: { argv: string[] };

async function main(): Promise<void> {
  client.setConfig({ baseUrl: process.argv[2]! as "http://127.0.0.1:8420" });
  const made = await createSession({ body: { role: "calculator" }, throwOnError: true });
  const body: CallRequest = { method: "add", args: [2], kwargs: { b: 3 } };
  const reply = await createCall({ path: { id: made.data.id }, body, throwOnError: true });
  if (!("outcome" in reply.data) || !reply.data.outcome.ok) throw new Error(JSON.stringify(reply.data));
  console.log("hey-api", reply.data.outcome.value);
}

void main();
