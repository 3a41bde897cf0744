// Six steps with recurgentd: a session, a call, a stream, a verdict, the history, the tools.
//
//     cd examples/typescript && npm ci && npm start
import { randomUUID } from "node:crypto";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js"; // npm run types

const baseUrl = process.env.RECURGENT_URL ?? "http://127.0.0.1:8420";
const token = process.env.RECURGENT_TOKEN;
const client = createClient<paths>({ baseUrl, headers: token ? { Authorization: `Bearer ${token}` } : {} });

/** The data of a reply, or the problem (RFC 9457) as an exception. */
function data<T>(reply: { data?: T; error?: components["schemas"]["Problem"] }): T {
  if (reply.data === undefined) throw new Error(`${reply.error?.title}: ${reply.error?.detail} (${reply.error?.hint})`);
  return reply.data;
}

type Reply = components["schemas"]["CallReply"];
type CallRequest = components["schemas"]["CallRequest"];

/**
 * Sends a call until it has ended. With respond-async and wait it goes on when the connection breaks, and the same request with
 * the same key has its reply.
 */
async function call(session: string, body: CallRequest, key: string = randomUUID()): Promise<Reply> {
  for (;;) {
    const sent = await client
      .POST("/v1/sessions/{id}/calls", {
        params: { path: { id: session }, header: { "Idempotency-Key": key, Prefer: "respond-async, wait=600" } },
        body,
      })
      .catch((lost: TypeError) => console.error("again:", lost.message));
    if (sent && !(sent.error?.code === "idempotency_key_in_use")) {
      const reply = data(sent);
      if ("outcome" in reply) return reply;
    }
    await new Promise((resume) => setTimeout(resume, 100));
  }
}

function value(reply: Reply): unknown {
  if (reply.outcome.status === "error") throw new Error(`${reply.outcome.error_type}: ${reply.outcome.error_message}`);
  return reply.outcome.value;
}

/** The types of a call's events, to its end. */
async function* events(callId: string): AsyncGenerator<string> {
  const { response } = await client.GET("/v1/calls/{call_id}/events", { params: { path: { call_id: callId } }, parseAs: "stream" });
  let text = "";
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    const lines = (text + chunk).split("\n");
    text = lines.pop()!;
    yield* lines.filter((line) => line.startsWith("event: ")).map((line) => line.slice("event: ".length));
  }
}

const session = data(await client.POST("/v1/sessions", { body: { role: "calculator" } })).id;
console.log("session:", session);

const added = await call(session, { method: "add", args: [2, 3] });
console.log("call:", value(added));

const key = randomUUID();
const body: CallRequest = { method: "sqrt", args: [2] };
const started = data(
  await client.POST("/v1/sessions/{id}/calls", {
    params: { path: { id: session }, header: { "Idempotency-Key": key, Prefer: "respond-async" } },
    body,
  }),
);
const seen: string[] = [];
for await (const event of events(started.call_id)) seen.push(event);
console.log("stream:", ...seen, value(await call(session, body, key)));

const verdict = data(await client.POST("/v1/calls/{call_id}/verdict", { params: { path: { call_id: added.call_id } }, body: { verdict: "right" } }));
console.log("verdict:", verdict.verdict, verdict.example_state);

const history = data(await client.GET("/v1/sessions/{id}/history", { params: { path: { id: session } } }));
if (typeof history === "object") console.log("history:", ...history.data.map((record) => `${record.method_name}=${record.outcome_summary.status}`)); // text with Accept: application/jsonl

const tools = data(await client.GET("/v1/tools"));
if ("data" in tools) console.log("tools:", ...tools.data.map((tool) => tool.role)); // with format=openai they are functions
