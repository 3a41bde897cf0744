import { Problem, RecurgentError, Unreachable } from "./errors.js";

const FIRST_PAUSE = 100; // milliseconds before the first retry; each further one waits twice as long
export const LONGEST_PAUSE = 10_000;
const REFUSED = [429, 503]; // statuses of a request that had no effect and may be accepted later
const PASSING = [...REFUSED, 502, 504]; // statuses after which one that may be repeated may be accepted later

/** A request. */
export interface Request {
  method: string;
  path: string;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is, instead of body. */
  data?: BodyInit;
  headers?: Record<string, string>;
  /** Sending it twice does what sending it once does. */
  repeatable?: boolean;
  signal?: AbortSignal | undefined;
}

export interface TransportOptions {
  url: string;
  token: string;
  retries: number;
  fetch: typeof fetch;
  sleep: (milliseconds: number, signal?: AbortSignal) => Promise<void>;
}

/** Sends requests, and repeats those that may be repeated. It follows no redirect, which would take the token elsewhere, and sends no cookies. */
export class Transport {
  readonly options: TransportOptions;

  constructor(options: TransportOptions) {
    if (!/^https?:\/\/[^/]/.test(options.url)) throw new RangeError(`${options.url} is not the address of a daemon, such as http://127.0.0.1:8420`);
    this.options = { ...options, url: options.url.replace(/\/+$/, "") };
  }

  /** Returns the response; a status of 300 or more is a Problem. A refusal that passes is repeated, and a lost reply where the request is repeatable. */
  async send(request: Request): Promise<{ status: number; headers: Headers; text: string }> {
    return this.#repeat(request, async () => {
      const response = await this.open(request);
      return { status: response.status, headers: response.headers, text: await this.#finish(response.text(), request) };
    });
  }

  /** The JSON of the response. */
  async json<T>(request: Request): Promise<T> {
    return parse<T>((await this.send(request)).text);
  }

  /** The bytes of the response. */
  async bytes(request: Request): Promise<Uint8Array> {
    return this.#repeat(request, async () => new Uint8Array(await this.#finish((await this.open(request)).arrayBuffer(), request)));
  }

  /** Sends the request once and returns the response, whose body is not read yet. */
  async open(request: Request): Promise<Response> {
    const headers: Record<string, string> = { Accept: "application/json", ...request.headers };
    if (this.options.token) headers["Authorization"] = "Bearer " + this.options.token;
    const init: RequestInit = { method: request.method, headers, redirect: "manual", credentials: "omit" };
    if (request.signal) init.signal = request.signal;
    if (request.data !== undefined) {
      init.body = request.data;
      if (request.data instanceof ReadableStream) Object.assign(init, { duplex: "half" });
    } else if (request.body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(request.body);
    }
    const response = await this.#finish(this.options.fetch(this.options.url + request.path, init), request);
    if (response.ok) return response;
    throw problem(response, await this.#finish(response.text(), request));
  }

  async #repeat<T>(request: Request, once: () => Promise<T>): Promise<T> {
    const repeatable = request.repeatable ?? true;
    let pause = FIRST_PAUSE;
    for (let left = this.options.retries; ; left--) {
      let wait = pause;
      try {
        return await once();
      } catch (error) {
        if (left <= 0 || request.data instanceof ReadableStream) throw error;
        if (error instanceof Problem && (repeatable ? PASSING : REFUSED).includes(error.status)) wait = Math.max(pause, (error.retryAfter ?? 0) * 1000);
        else if (!(error instanceof Unreachable) || !repeatable) throw error;
      }
      await this.options.sleep(Math.min(wait, LONGEST_PAUSE), request.signal);
      pause *= 2;
    }
  }

  /** The promise, of which a failure of the network is Unreachable; what the caller's signal says stays. */
  async #finish<T>(promise: Promise<T>, request: Request): Promise<T> {
    try {
      return await promise;
    } catch (cause) {
      request.signal?.throwIfAborted();
      throw new Unreachable(`no reply from ${this.options.url}: ${cause instanceof Error ? cause.message : cause}; is recurgentd serve running?`, { cause });
    }
  }
}

export function parse<T>(text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new RecurgentError("the reply is not in recurgentd's format", { cause });
  }
}

function problem(response: Response, text: string): Problem {
  let members: unknown;
  try {
    members = JSON.parse(text);
  } catch {
    members = undefined;
  }
  if (typeof members !== "object" || members === null || Array.isArray(members)) members = { title: response.statusText };
  const after = response.headers.get("Retry-After") ?? "";
  return new Problem(response.status, members as object, /^\d+$/.test(after) ? Number(after) : undefined);
}

/** Waits, until the signal says otherwise. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** A role, a method or an id as part of a path. */
export const segment = encodeURIComponent;

/** Those of the values that are given, as a query. */
export function query(values: Record<string, string | number | undefined>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined) given.set(name, String(value));
  const text = given.toString();
  return text && "?" + text;
}
