import { createCall, createSession, getContext } from "./orval/api";
import type { CallRequest } from "./orval/model";

async function main(): Promise<void> {
  const made = await createSession({ role: "calculator", context: { value: 7 } });
  if (made.status !== 201) throw new Error(JSON.stringify(made));
  const body: CallRequest = { method: "add", args: [2], kwargs: { b: 3 } };
  const reply = await createCall(made.data.id, body);
  if (reply.status !== 200 || !reply.data.outcome.ok) throw new Error(JSON.stringify(reply));
  const memory = await getContext(made.data.id);
  if (memory.status !== 200) throw new Error(JSON.stringify(memory));
  console.log("orval", reply.data.outcome.value, memory.data.value);
}

void main();
