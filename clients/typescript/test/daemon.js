// What TestOpsTypeScriptClient runs against a daemon with the embedded recording.
import { Client } from "../dist/index.js";

const client = new Client();
const session = await client.session("calculator");
const calculator = session.role();
console.log(await calculator.add(2, 3), await calculator.add(2, 2.5));
const reply = await calculator.add.reply(40, 2);
console.log(reply.outcome.status, reply.program.source);
const running = await client.resume(session.id, "calculator").stream("add", [2, 3]);
let last = "";
for await (const event of running) last = event.type;
console.log(last, (await running.reply()).value);
const verdict = await client.right(reply.callId);
console.log(verdict.verdict, verdict.example_state);
const records = [];
for await (const record of session.history({ order: "asc" })) records.push(`${record.method_name}=${record.outcome_summary.status}`);
console.log(records.slice(0, 3).join(" "));
for await (const tool of client.tools()) console.log(tool.role);
const file = await client.upload(new TextEncoder().encode("x"), { name: "n", mediaType: "text/plain" });
console.log(new TextDecoder().decode(await client.download({ $file: file.id })), (await client.file(file)).media_type);
await client.deleteFile(file);
await session.delete();
