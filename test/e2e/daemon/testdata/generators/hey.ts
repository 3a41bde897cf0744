import { client } from "./hey/client.gen";
import { createCall, createSession, getContext } from "./hey/sdk.gen";
import type { CallRequest } from "./hey/types.gen";

declare const process: { argv: string[] };

async function main(): Promise<void> {
  client.setConfig({ baseUrl: process.argv[2]! as "http://127.0.0.1:8420" });
  const made = await createSession({ body: { role: "calculator", context: { value: 7 } }, throwOnError: true });
  const body: CallRequest = { method: "add", args: [2], kwargs: { b: 3 } };
  const reply = await createCall({ path: { id: made.data.id }, body, throwOnError: true });
  if (!("outcome" in reply.data) || !reply.data.outcome.ok) throw new Error(JSON.stringify(reply.data));
  const memory = await getContext({ path: { id: made.data.id }, throwOnError: true });
  console.log("hey-api", reply.data.outcome.value, memory.data.value);
}

void main();
