import { Problem, RecurgentError, Unreachable } from "./errors.js";
import { read } from "./events.js";
import { Reply, Session } from "./session.js";
import type { Role } from "./session.js";
import { LONGEST_PAUSE, Transport, parse, query, segment, sleep } from "./transport.js";
import type { Request, TransportOptions } from "./transport.js";
import type { CallReply, Event, FileReference, Prediction, SessionRequest, StoredFile, Tool, Verdict, Why } from "./types.js";

const SILENCE = 45_000; // milliseconds: three pings missed, the connection is taken for dead
const FIRST_LOOK = 20; // milliseconds until a call that runs is asked for again
const LONGEST_LOOK = 1000;

/** Where the daemon is. What is absent comes from RECURGENT_URL and RECURGENT_TOKEN where there is an environment. */
export interface ClientOptions {
  url?: string;
  token?: string;
  /** How often a request is repeated that had no reply or was refused for the moment; 5 where absent. */
  retries?: number;
  fetch?: typeof fetch;
  /** For tests. */
  sleep?: TransportOptions["sleep"];
}

/** Ends a request early. A call goes on. */
export interface Abortable {
  signal?: AbortSignal | undefined;
}

/** A file: what an upload returned, what stands for it in values, or its id. */
export type FileLike = StoredFile | FileReference | string;

/** A daemon: its sessions, calls, verdicts, tools and files. */
export class Client {
  readonly transport: Transport;

  constructor(options: ClientOptions = {}) {
    const environment = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {};
    this.transport = new Transport({
      url: options.url || environment["RECURGENT_URL"] || "http://127.0.0.1:8420",
      token: options.token ?? environment["RECURGENT_TOKEN"] ?? "",
      retries: options.retries ?? 5,
      fetch: options.fetch ?? ((input, init) => fetch(input, init)), // browsers want their own receiver
      sleep: options.sleep ?? sleep,
    });
  }

  /** Creates a session. */
  async session(request: string | SessionRequest, options: Abortable = {}): Promise<Session> {
    const body = typeof request === "string" ? { role: request } : request;
    const made = await this.transport.json<{ id: string; role: string }>({ method: "POST", path: "/v1/sessions", body, repeatable: false, ...options });
    return new Session(this, made.id, made.role);
  }

  /** A session that was created before. */
  resume(id: string, role: string): Session {
    return new Session(this, id, role);
  }

  /** A role in a session of its own, which its first call creates: `await client.role("calculator").add(2, 3)`. */
  role(name: string): Role {
    let made: Promise<Session> | undefined;
    return Session.role(() => (made ??= this.session(name).catch((error) => {
      made = undefined; // the next call tries again
      throw error;
    })), name);
  }

  /** Sends any other request of the interface and returns the JSON of its reply. What changes something is repeated only where `repeatable` says so. */
  async do<T = unknown>(method: string, path: string, body?: unknown, options: Abortable & { repeatable?: boolean } = {}): Promise<T> {
    const { text } = await this.transport.send({ method, path, body, repeatable: method === "GET", ...options });
    return text === "" ? (undefined as T) : parse<T>(text);
  }

  /** Sends a request that makes a call, again and again with the same idempotency key, until the call has ended. */
  async awaitCall(path: string, body: unknown, key: string, options: Abortable = {}): Promise<Reply> {
    // A call that answers asynchronously goes on when its client's connection breaks; any other only while a model writes for it.
    const headers = { "Idempotency-Key": key, Prefer: "respond-async, wait=600" };
    for (let look = FIRST_LOOK; ; look = Math.min(2 * look, LONGEST_LOOK)) {
      try {
        const response = await this.transport.send({ method: "POST", path, body, headers, ...options });
        if (response.status === 200) return new Reply(parse<CallReply>(response.text), response.text, response.headers.get("Idempotent-Replayed") === "true");
      } catch (error) {
        if (!(error instanceof Problem && error.code === "idempotency_key_in_use")) throw error;
      }
      await this.transport.options.sleep(look, options.signal);
    }
  }

  /** Runs a function tool with the arguments that a model wrote, in a session given or in one of its own. `strict` says that the model was shown functions of `strict` or of gemini. */
  runFunction(name: string, args: Record<string, unknown> | string, options: Abortable & { session?: Session; strict?: boolean } = {}): Promise<Reply> {
    const body = { arguments: args, ...(options.strict && { strict: true }), ...(options.session && { session_id: options.session.id }) };
    return this.awaitCall(`/v1/functions/${segment(name)}`, body, key(), { signal: options.signal });
  }

  /** Asks a call to end; one that has ended stays as it is. */
  async cancel(callId: string): Promise<void> {
    await this.transport.send({ method: "POST", path: `/v1/calls/${segment(callId)}/cancel` });
  }

  /** The log entry of a call, with its outcome while that is kept. */
  call(callId: string): Promise<Record<string, unknown>> {
    return this.transport.json({ method: "GET", path: `/v1/calls/${segment(callId)}` });
  }

  /** Why a call ended as it did. */
  why(callId: string): Promise<Why> {
    return this.transport.json({ method: "GET", path: `/v1/calls/${segment(callId)}/why` });
  }

  /** The same as a page of plain text for people. */
  async whyPage(callId: string): Promise<string> {
    return (await this.transport.send({ method: "GET", path: `/v1/calls/${segment(callId)}/why`, headers: { Accept: "text/plain" } })).text;
  }

  /** Says that a call's answer is right: it becomes an example, which every later program must satisfy. */
  right(callId: string, note = ""): Promise<Verdict> {
    return this.#judge(callId, { verdict: "right", note }, 0);
  }

  /** Says that a call's answer is wrong, and what is right: a value (`expected`, null included) or an error. `wait` is how many seconds to wait for the first attempt at a correction. */
  wrong(callId: string, right: { expected?: unknown; errorType?: string; note?: string; wait?: number } = {}): Promise<Verdict> {
    const body: Record<string, unknown> = { verdict: "wrong", note: right.note ?? "" };
    if (right.expected !== undefined) body["expected"] = right.expected;
    if (right.errorType) body["expected_error_type"] = right.errorType;
    return this.#judge(callId, body, right.wait ?? 0);
  }

  #judge(callId: string, body: unknown, wait: number): Promise<Verdict> {
    const headers: Record<string, string> = wait > 0 ? { Prefer: `wait=${wait}` } : {};
    return this.transport.json({ method: "POST", path: `/v1/calls/${segment(callId)}/verdict`, body, headers });
  }

  /** What was said of a call. */
  verdict(callId: string): Promise<Verdict> {
    return this.transport.json({ method: "GET", path: `/v1/calls/${segment(callId)}/verdict` });
  }

  /** Takes a verdict back, with the example that it made. */
  async dropVerdict(callId: string): Promise<void> {
    await this.transport.send({ method: "DELETE", path: `/v1/calls/${segment(callId)}/verdict`, repeatable: false });
  }

  /** The known roles, by name. */
  tools(): AsyncGenerator<Tool> {
    return this.pages("/v1/tools", "data");
  }

  /** The methods of a role that have a program, without its code. */
  methods(role: string): AsyncGenerator<Record<string, unknown>> {
    return this.pages(`/v1/tools/${segment(role)}/methods`, "data");
  }

  /** The methods as tools of model APIs (openai, openai-responses, anthropic, gemini) or of MCP (mcp). `strict` has schemas for models that are held to them (openai and openai-responses). */
  functions(format = "openai", options: { strict?: boolean } = {}): AsyncGenerator<Record<string, unknown>> {
    return this.pages("/v1/tools", "tools", { format, strict: options.strict ? "true" : undefined });
  }

  /** Answers by a signature, declared ({instructions, inputs, outputs}) or stored (its name). It is not repeated after a lost reply, since the model was asked. */
  predict(signature: Record<string, unknown> | string, inputs: Record<string, unknown>, options: Abortable & { session?: Session; demos?: unknown[]; model?: string; adapter?: string } = {}): Promise<Prediction> {
    const { session, signal, ...more } = options;
    const body: Record<string, unknown> = { inputs, ...more, ...(session && { session_id: session.id }) };
    if (typeof signature !== "string") body["signature"] = signature;
    const path = typeof signature === "string" ? `/v1/signatures/${segment(signature)}/predict` : "/v1/predict";
    return this.transport.json({ method: "POST", path, body, repeatable: false, signal });
  }

  /** Uploads a Blob or File, bytes, text or a stream. It is erased with the session given; else it expires. It is not sent again after a lost reply, which would make a second file. */
  upload(data: BodyInit, options: Abortable & { name?: string; mediaType?: string; session?: Session } = {}): Promise<StoredFile> {
    const about = data as { name?: string; type?: string }; // of a File
    const headers = { "Content-Type": options.mediaType || (data instanceof Blob && about.type) || "application/octet-stream" };
    const name = options.name ?? (data instanceof Blob ? about.name : undefined);
    return this.transport.json({ method: "POST", path: "/v1/files" + query({ name, session_id: options.session?.id }), data, headers, repeatable: false, signal: options.signal });
  }

  /** What is known of a file. */
  file(file: FileLike): Promise<StoredFile> {
    return this.transport.json({ method: "GET", path: `/v1/files/${segment(fileId(file))}` });
  }

  /** Your files, newest first, those that programs made for you included. */
  files(): AsyncGenerator<StoredFile> {
    return this.pages("/v1/files", "data");
  }

  /** The whole content of a file. */
  download(file: FileLike, options: Abortable = {}): Promise<Uint8Array> {
    return this.transport.bytes({ method: "GET", path: `/v1/files/${segment(fileId(file))}/content`, headers: { Accept: "*/*" }, ...options });
  }

  /** The content of a file as a stream, which fails where the connection breaks. */
  async downloadStream(file: FileLike, options: Abortable = {}): Promise<ReadableStream<Uint8Array>> {
    return body(await this.transport.open({ method: "GET", path: `/v1/files/${segment(fileId(file))}/content`, headers: { Accept: "*/*" }, ...options }));
  }

  /** Deletes a file. */
  async deleteFile(file: FileLike): Promise<void> {
    await this.transport.send({ method: "DELETE", path: `/v1/files/${segment(fileId(file))}`, repeatable: false });
  }

  /** Every call that ends from now on, or after the call of that id, without gaps, until the caller stops. */
  events(options: Abortable & { after?: string } = {}): AsyncGenerator<Event> {
    return this.follow("/v1/events", options.after ?? "", options.signal);
  }

  /** The events behind the id `last`. A lost connection is made again, behind the last event that came; where none succeeds at first, only as often as the client retries. */
  async *follow(path: string, last = "", signal?: AbortSignal): AsyncGenerator<Event> {
    let left = this.transport.options.retries;
    for (let pause = 100; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      try {
        for await (const event of this.#connection(path, last, signal)) {
          [left, pause] = [Infinity, 100]; // from now on without end
          if (event === undefined) continue;
          last = event.id || last;
          yield event;
        }
      } catch (error) {
        signal?.throwIfAborted();
        if (left <= 0 || !(error instanceof Unreachable || (error instanceof Problem && [429, 502, 503, 504].includes(error.status)))) throw error;
      }
      left--;
      await this.transport.options.sleep(pause, signal);
    }
  }

  /** The events of one connection, to its end; undefined first, when the daemon streams. */
  async *#connection(path: string, last: string, signal?: AbortSignal): AsyncGenerator<Event | undefined> {
    const silent = new AbortController();
    const stop = () => silent.abort(signal?.reason);
    signal?.addEventListener("abort", stop, { once: true });
    let timer = setTimeout(() => silent.abort(), SILENCE);
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), SILENCE);
    };
    try {
      const headers = { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) };
      const request: Request = { method: "GET", path, headers };
      let response: Response;
      try {
        response = await this.transport.open({ ...request, signal: silent.signal });
        if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) throw new RecurgentError("the stream is not what a recurgentd sends");
        yield undefined;
        yield* read(body(response), heard);
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof RecurgentError) throw error;
        throw new Unreachable("the stream broke off", { cause: error });
      }
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      silent.abort();
    }
  }

  /** The entries of a list, page by page. */
  async *pages<T>(path: string, member: "data" | "tools", values: Record<string, string | undefined> = {}): AsyncGenerator<T> {
    for (let after: string | undefined; ; ) {
      const page = await this.transport.json<Record<string, T[]> & { next_cursor: string | null }>({ method: "GET", path: path + query({ ...values, after }) });
      yield* page[member] ?? [];
      if (page.next_cursor === null || page.next_cursor === undefined) return;
      after = page.next_cursor;
    }
  }
}

/** A new idempotency key. */
export function key(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(""); // pages without TLS have no randomUUID
}

function body(response: Response): ReadableStream<Uint8Array> {
  if (response.body === null) throw new RecurgentError("the reply has no body");
  return response.body;
}

function fileId(file: FileLike): string {
  if (typeof file === "string") return file;
  return "$file" in file && typeof file.$file === "string" ? file.$file : (file as StoredFile).id;
}

/** What stands for a file in the arguments of a call. */
export function reference(file: FileLike): FileReference {
  return { $file: fileId(file) };
}
