import { key } from "./client.js";
import type { Abortable, Client } from "./client.js";
import { CallFailed } from "./errors.js";
import { parse, segment } from "./transport.js";
import type { CallReply, CallRequest, Event, HistoryRecord, Outcome, Program } from "./types.js";

/** How a call ended. An error outcome is a reply, too. */
export class Reply {
  readonly body: CallReply;
  /** The body as it was sent: numbers in it have all their digits. */
  readonly text: string;
  /** It is the reply of an earlier request with the same idempotency key. */
  readonly replayed: boolean;

  constructor(body: CallReply, text: string, replayed: boolean) {
    this.body = body;
    this.text = text;
    this.replayed = replayed;
  }

  get callId(): string {
    return this.body.call_id;
  }

  get outcome(): Outcome {
    return this.body.outcome;
  }

  get program(): Program {
    return this.body.program;
  }

  get ok(): boolean {
    return this.outcome.ok;
  }

  /** The value of the call. Throws CallFailed where the outcome is an error. */
  get value(): unknown {
    if (!this.outcome.ok) throw new CallFailed(this.callId, this.outcome);
    return this.outcome.value;
  }
}

/** What a call may have beside its arguments: in another role than the session's, a contract, a history, a time limit. */
export type CallOptions = Omit<CallRequest, "method" | "args" | "kwargs"> & Abortable;

/** A method of a role. Calling it resolves to the value, or rejects with CallFailed. */
export interface Method {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- nobody has declared it
  (...args: unknown[]): Promise<any>;
  /** Resolves to the whole reply, of whatever outcome. */
  reply(...args: unknown[]): Promise<Reply>;
  /** Calls it with named arguments. */
  with(kwargs: Record<string, unknown>): Promise<Reply>;
  /** Starts a call whose events can be read. */
  stream(...args: unknown[]): Promise<Stream>;
}

/**
 * A role: each of its members is a Method, which is forged on its first call. `then` is none, so that a role can be
 * awaited. They are typed as any: a Method by index would be possibly undefined under noUncheckedIndexedAccess.
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- see above
export type Role = { readonly [method: string]: any };

/** A conversation: a default role, a context and a history. Its calls run in order. */
export class Session {
  readonly client: Client;
  readonly id: string;
  readonly defaultRole: string;
  readonly #path: string;

  constructor(client: Client, id: string, role: string) {
    this.client = client;
    this.id = id;
    this.defaultRole = role;
    this.#path = `/v1/sessions/${segment(id)}`;
  }

  /** A role whose methods are called in this session; the session's own where no name is given. */
  role(name: string = this.defaultRole): Role {
    return Session.role(async () => this, name);
  }

  /** A role in a session that is made when it is needed. */
  static role(session: () => Promise<Session>, name: string): Role {
    return new Proxy({} as Role, {
      get: (_, method) => (typeof method === "string" && method !== "then" ? methodOf(session, name, method) : undefined),
    });
  }

  /** Calls a method and returns the reply, of whatever outcome. The call goes on when `signal` ends the wait. */
  call(method: string, args: unknown[] = [], kwargs: Record<string, unknown> = {}, options: CallOptions = {}): Promise<Reply> {
    const { signal, ...more } = options;
    return this.client.awaitCall(this.#path + "/calls", { method, args, kwargs, ...more }, key(), { signal });
  }

  /** Starts a call whose events can be read. */
  async stream(method: string, args: unknown[] = [], kwargs: Record<string, unknown> = {}, options: CallOptions = {}): Promise<Stream> {
    const { signal, ...more } = options;
    const [path, body, name] = [this.#path + "/calls", { method, args, kwargs, ...more }, key()];
    const response = await this.client.transport.send({ method: "POST", path, body, headers: { "Idempotency-Key": name, Prefer: "respond-async" }, signal });
    const started = parse<CallReply>(response.text);
    const ended = response.status === 200 ? new Reply(started, response.text, response.headers.get("Idempotent-Replayed") === "true") : undefined;
    return new Stream(this.client, started.call_id, () => this.client.awaitCall(path, body, name, { signal }), ended, signal);
  }

  /** How a method would answer without the model: setter, context or artifact; null where it would not. */
  async responds(method: string): Promise<string | null> {
    return (await this.client.transport.json<{ via: string | null }>({ method: "GET", path: `${this.#path}/methods/${segment(method)}` })).via;
  }

  /** What the session's programs share. */
  context(): Promise<Record<string, unknown>> {
    return this.client.transport.json({ method: "GET", path: this.#path + "/context" });
  }

  /** Merges the patch into the context (RFC 7396: null removes a key) and returns the whole. */
  updateContext(patch: Record<string, unknown>): Promise<Record<string, unknown>> {
    return this.client.transport.json({ method: "PATCH", path: this.#path + "/context", body: patch });
  }

  /** The session's calls, oldest first. */
  history(filters: { method?: string; role?: string; status?: string; since?: string; until?: string; order?: string } = {}): AsyncGenerator<HistoryRecord> {
    return this.client.pages(this.#path + "/history", "data", filters);
  }

  /** Erases the session, its arguments and its values. */
  async delete(): Promise<void> {
    await this.client.transport.send({ method: "DELETE", path: this.#path, repeatable: false });
  }
}

function methodOf(session: () => Promise<Session>, role: string, name: string): Method {
  const reply = async (...args: unknown[]) => (await session()).call(name, args, {}, { role });
  return Object.assign(async (...args: unknown[]) => (await reply(...args)).value, {
    reply,
    with: async (kwargs: Record<string, unknown>) => (await session()).call(name, [], kwargs, { role }),
    stream: async (...args: unknown[]) => (await session()).stream(name, args, {}, { role }),
  });
}

/** The events of a call: iterate over them, then await the reply. */
export class Stream {
  readonly callId: string;
  readonly #client: Client;
  readonly #await: () => Promise<Reply>;
  readonly #signal: AbortSignal | undefined;
  #reply: Reply | undefined;

  constructor(client: Client, callId: string, wait: () => Promise<Reply>, reply: Reply | undefined, signal: AbortSignal | undefined) {
    this.#client = client;
    this.callId = callId;
    this.#await = wait;
    this.#reply = reply;
    this.#signal = signal;
  }

  /** The events, from the first one to call.finished. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Event> {
    for await (const event of this.#client.follow(`/v1/calls/${segment(this.callId)}/events`, "", this.#signal)) {
      yield event;
      if (event.type === "call.finished") return;
    }
  }

  /** Waits for the end of the call and returns what Session.call would have returned. */
  async reply(): Promise<Reply> {
    return (this.#reply ??= await this.#await());
  }

  /** Asks the call to end. */
  cancel(): Promise<void> {
    return this.#client.cancel(this.callId);
  }
}
