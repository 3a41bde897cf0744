import assert from "node:assert/strict";
import { test } from "node:test";

import { CallFailed, Client, Problem, RecurgentError, Unreachable, reference } from "../dist/index.js";

const SESSION = { id: "sess_1", role: "calculator" };
const REPLY = { call_id: "call_1", role: "calculator", method: "add", outcome: { status: "ok", ok: true, value: 5, tool_role: "calculator", method_name: "add" }, program: { source: "generated" } };
const CALLS = "POST /v1/sessions/sess_1/calls";
const LOST = Symbol("lost");

const json = (status, body, headers = {}) => () => new Response(body === undefined ? null : JSON.stringify(body), { status, headers });
const refusal = (status, code, headers = {}) => json(status, { status, code, title: "No", detail: "why", hint: "what to do" }, headers);
const stream = (text) => () => new Response(text, { status: 200, headers: { "Content-Type": "text/event-stream" } });

/** A client of a scripted daemon that gives the answers in turn, the last one again and again, and notes what it was asked and how long the client waits. */
function scripted(answers, options = {}) {
  const asked = [];
  const pauses = [];
  const left = [...answers];
  const client = new Client({
    url: "http://daemon/", token: "secret", ...options,
    sleep: async (milliseconds, signal) => { signal?.throwIfAborted(); pauses.push(milliseconds); },
    fetch: async (url, init) => {
      asked.push({ line: `${init.method} ${url.slice("http://daemon".length)}`, headers: init.headers, init, body: typeof init.body === "string" && init.headers["Content-Type"] === "application/json" ? JSON.parse(init.body) : init.body });
      const given = left.length > 1 ? left.shift() : left[0];
      if (given === LOST) throw new TypeError("fetch failed");
      return given();
    },
  });
  return { client, asked, pauses, lines: () => asked.map((a) => a.line) };
}

test("a member of a role is a call", async () => {
  const { client, asked, lines } = scripted([json(201, SESSION), json(200, REPLY)]);
  const calculator = client.role("calculator");
  assert.deepEqual(await Promise.all([calculator.add(2, 3), calculator["to celsius"](100)]), [5, 5]);
  assert.equal((await calculator.add.with({ b: 3 })).program.source, "generated");
  assert.deepEqual(lines(), ["POST /v1/sessions", CALLS, CALLS, CALLS]);
  assert.deepEqual(asked[1].body, { method: "add", args: [2, 3], kwargs: {}, role: "calculator" });
  assert.deepEqual([asked[2].body.method, asked[3].body.kwargs], ["to celsius", { b: 3 }]);
  assert.equal(new Set(asked.slice(1).map((a) => a.headers["Idempotency-Key"])).size, 3);
  for (const { headers, init } of asked) assert.deepEqual([headers.Authorization, init.credentials, init.redirect], ["Bearer secret", "omit", "manual"]);
});

test("a role can be awaited", async () => {
  const { client, asked } = scripted([json(201, SESSION)]);
  assert.equal(typeof (await client.role("calculator")).add, "function");
  assert.equal(asked.length, 0);
});

test("an error outcome is an exception of the value", async () => {
  const outcome = { status: "error", ok: false, error_type: "not_today", error_message: "closed", retriable: false, authored: true, tool_role: "shop", method_name: "sell" };
  const { client } = scripted([json(201, SESSION), json(200, { ...REPLY, outcome })]);
  const shop = client.role("shop");
  assert.equal((await shop.sell.reply(1)).ok, false);
  await assert.rejects(shop.sell(1), (error) => error instanceof CallFailed && error.outcome.error_type === "not_today" && error.callId === "call_1" && error.message === "shop.sell: not_today: closed");
});

test("a lost reply is asked for with the same key", async () => {
  const { client, asked, pauses } = scripted([json(201, SESSION), LOST, refusal(503, "queue_full", { "Retry-After": "3" }), refusal(409, "idempotency_key_in_use"), json(202, { call_id: "call_1" }), json(200, REPLY, { "Idempotent-Replayed": "true" })]);
  const reply = await (await client.session("calculator")).call("add", [2, 3]);
  assert.deepEqual([reply.value, reply.replayed], [5, true]);
  assert.equal(new Set(asked.slice(1).map((a) => a.headers["Idempotency-Key"])).size, 1);
  assert.ok(asked.slice(1).every((a) => a.line === CALLS && a.headers.Prefer === "respond-async, wait=600"));
  assert.deepEqual(pauses, [100, 3000, 20, 40]);
});

test("what may not be repeated is sent once", async () => {
  for (const [answer, kind] of [[LOST, Unreachable], [json(502, undefined), Problem], [refusal(422, "validation_failed"), Problem], [() => new Response(null, { status: 302 }), Problem], [() => new Response("<html>", { status: 201 }), RecurgentError]]) {
    const { client, asked } = scripted([answer]);
    await assert.rejects(client.session("calculator"), kind);
    assert.equal(asked.length, 1);
  }
  const { client, asked } = scripted([json(201, SESSION), LOST], { retries: 2 });
  await assert.rejects((await client.session("calculator")).call("add"), Unreachable);
  assert.equal(asked.length, 4);
  assert.throws(() => new Client({ url: "ftp://127.0.0.1" }), RangeError);
});

test("a refusal is a problem", async () => {
  const { client, pauses } = scripted([refusal(422, "validation_failed")]);
  await assert.rejects(client.session(""), (p) => p.status === 422 && p.code === "validation_failed" && p.message === "422 No: why (what to do)");
  assert.deepEqual(pauses, []);
});

test("a stream goes on behind the last event", async () => {
  const { client, asked, lines } = scripted([json(201, SESSION), json(202, { call_id: "call_1" }), LOST,
    stream('retry: 2000\n\nid: 1\nevent: call.forging\ndata: {"a":\ndata: 1}\n\nid: 2\nevent: call.running\ndata: {'), LOST, refusal(503, "draining"),
    stream(": ping\r\n\r\nid: 2\nevent: call.running\ndata: {}\n\nid: 3\nevent: call.finished\ndata: {}\n\n"), json(200, REPLY)]);
  const running = await client.role("calculator").add.stream(2, 3);
  const events = [];
  for await (const event of running) events.push([event.id, event.type, event.data]);
  assert.deepEqual(events, [["1", "call.forging", { a: 1 }], ["2", "call.running", {}], ["3", "call.finished", {}]]);
  assert.equal((await running.reply()).value, 5);
  const stream_ = "GET /v1/calls/call_1/events";
  assert.deepEqual(lines().slice(1), [CALLS, stream_, stream_, stream_, stream_, stream_, CALLS]);
  assert.deepEqual(asked.slice(2, 7).map((a) => a.headers["Last-Event-ID"]), [undefined, undefined, "1", "1", "1"]);
  assert.equal(asked[1].headers["Idempotency-Key"], asked[7].headers["Idempotency-Key"]);
});

test("a stream ends with what cannot pass, and with its signal", async () => {
  for (const answer of [refusal(404, "not_found"), () => new Response("<html>", { headers: { "Content-Type": "text/html" } }), stream("data: {\n\n"), stream("data: " + "x".repeat(17 << 20) + "\n\n")]) {
    const { client } = scripted([answer]);
    await assert.rejects(client.events().next(), RecurgentError);
  }
  const { client } = scripted([stream("id: 1\ndata: 1\n\n"), LOST]);
  const stop = new AbortController();
  const events = client.events({ signal: stop.signal });
  assert.deepEqual((await events.next()).value, { id: "1", type: "", data: 1 });
  stop.abort(new Error("enough"));
  await assert.rejects(events.next(), /enough/);
});

test("lists come page by page", async () => {
  const { client, lines } = scripted([json(201, SESSION), json(200, { data: [{ seq: 1 }], next_cursor: "1" }), json(200, { data: [{ seq: 2 }], next_cursor: null })]);
  const records = [];
  for await (const record of (await client.session("calculator")).history({ status: "ok" })) records.push(record.seq);
  assert.deepEqual(records, [1, 2]);
  assert.deepEqual(lines().slice(1), ["GET /v1/sessions/sess_1/history?status=ok", "GET /v1/sessions/sess_1/history?status=ok&after=1"]);
});

test("functions for models that are held to schemas", async () => {
  const { client, asked, lines } = scripted([json(200, { tools: [], next_cursor: null }), json(200, REPLY)]);
  for await (const tool of client.functions("openai-responses", { strict: true })) assert.fail(tool);
  await client.runFunction("f", {}, { strict: true });
  assert.equal(lines()[0], "GET /v1/tools?format=openai-responses&strict=true");
  assert.deepEqual(asked[1].body, { arguments: {}, strict: true });
});

test("verdicts, files, predictions and reasons", async () => {
  const stored = { id: "file_1", name: "a.csv", media_type: "text/csv", bytes: 4, sha256: "00" };
  const { client, asked, lines } = scripted([json(200, { verdict: "wrong" }), json(200, { verdict: "wrong" }), json(201, stored), () => new Response("a,b\n"), json(200, { outputs: { answer: "blue" } }), json(200, { outputs: {} }), json(200, { summary: "It was stored." }), () => new Response("A page")]);
  await client.wrong("call_1", { expected: null, wait: 10 });
  await client.right("a/b");
  const file = await client.upload(new File(["a,b\n"], "ä b.csv", { type: "text/csv" }));
  assert.equal(new TextDecoder().decode(await client.download({ $file: "file_1" })), "a,b\n");
  assert.equal((await client.predict({ inputs: [] }, { question: "sky?" })).outputs.answer, "blue");
  await client.predict("a b/c", {}, { adapter: "json" });
  assert.equal((await client.why("call_1")).summary, "It was stored.");
  assert.equal(await client.whyPage("call_1"), "A page");
  assert.deepEqual(reference(file), { $file: "file_1" });
  assert.deepEqual(lines(), ["POST /v1/calls/call_1/verdict", "POST /v1/calls/a%2Fb/verdict", "POST /v1/files?name=%C3%A4+b.csv", "GET /v1/files/file_1/content", "POST /v1/predict", "POST /v1/signatures/a%20b%2Fc/predict", "GET /v1/calls/call_1/why", "GET /v1/calls/call_1/why"]);
  assert.deepEqual([asked[0].body, asked[0].headers.Prefer], [{ verdict: "wrong", note: "", expected: null }, "wait=10"]);
  assert.equal(asked[2].headers["Content-Type"], "text/csv");
  assert.deepEqual(asked[5].body, { inputs: {}, adapter: "json" });
  assert.equal(asked[7].headers.Accept, "text/plain");
});
