import { createCall, createSession } from "./orval/api";
import type { CallRequest } from "./orval/model";

async function main(): Promise<void> {
  const made = await createSession({ role: "calculator" });
  if (made.status !== 201) throw new Error(JSON.stringify(made));
  const body: CallRequest = { method: "add", args: [2], kwargs: { b: 3 } };
  const reply = await createCall(made.data.id, body);
  if (reply.status !== 200 || !reply.data.outcome.ok) throw new Error(JSON.stringify(reply));
  console.log("orval", reply.data.outcome.value);
}

void main();
