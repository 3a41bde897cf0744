// Requests to the daemon.
import { hear } from './clock.js';
import { signal } from './html.js';
import { token, locked } from './session.js';

/** A Problem is a problem detail (RFC 9457), or a request that got no answer (status 0). */
export class Problem extends Error {
  /** @param {Partial<import('./types').Problem>} detail @param {number} [retryAfter] seconds to wait, 0 where nobody said */
  constructor(detail, retryAfter = 0) {
    super(detail.detail || detail.title || 'the request failed');
    this.status = detail.status ?? 0;
    this.title = detail.title || 'Request failed';
    this.code = detail.code || '';
    this.hint = detail.hint || '';
    this.requestId = detail.request_id || '';
    this.retryAfter = retryAfter;
    this.errors = detail.errors || [];
    this.body = detail;
  }
}

/** path joins segments, escaped, to an address.
 * @param {TemplateStringsArray} strings @param {...string} parts */
export function path(strings, ...parts) {
  return strings.reduce((all, s, i) => all + encodeURIComponent(parts[i - 1]) + s);
}

/** withQuery adds the members that have a value.
 * @param {string} to @param {Record<string, any>} [query] */
export function withQuery(to, query) {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(query || {})) if (v !== undefined && v !== null && v !== '') q.set(k, String(v));
  return q.size ? `${to}?${q}` : to;
}

/** headers of a request with this tab's token.
 * @param {Record<string, string>} [more] @returns {Record<string, string>} */
export function headers(more) {
  return token.value ? { Authorization: `Bearer ${token.value}`, ...more } : { ...more };
}

/** raw is a body that is sent as it is. @typedef {{body?: any, raw?: Blob, query?: Record<string, any>, headers?: Record<string, string>, signal?: AbortSignal}} Sent */

/** How many requests of this tab may have changed something. */
export const changes = signal(0);

/** looks says whether a request changes nothing. @param {string} method @param {string} to */
const looks = (method, to) => method === 'GET' || /\/(simulate|try|run|replay)$/.test(to);

/** exchange sends a request and returns the decoded body, undefined where there is none, and the reply's headers. It throws a Problem.
 * @param {string} method @param {string} to @param {Sent} [o] */
export async function exchange(method, to, o = {}) {
  if (locked.value !== null) throw new Problem({ status: 401, title: 'Not signed in' });
  const sent = token.value;
  const h = headers(o.headers);
  if (o.body !== undefined) h['Content-Type'] ||= 'application/json';
  if (o.raw?.type) h['Content-Type'] = o.raw.type;
  let reply, text;
  try {
    reply = await fetch(withQuery(to, o.query), { method, headers: h, body: o.raw || (o.body === undefined ? undefined : JSON.stringify(o.body)), signal: o.signal, cache: 'no-store' });
    hear(reply.headers.get('Date'));
    await refuse(reply, sent);
    if (!looks(method, to)) changes.value++;
    text = await reply.text();
  } catch (e) {
    if (o.signal?.aborted || e instanceof Problem) throw e;
    throw new Problem({ title: reply ? 'The connection broke' : 'The daemon does not answer', detail: `${reply ? 'No whole' : 'No'} reply to ${method} ${to}.`, hint: `Check that recurgentd is running and that this machine reaches it.${looks(method, to) ? '' : ' It may have been done all the same: look before you send it again.'}` });
  }
  try {
    return { body: text ? decode(text) : undefined, headers: reply.headers };
  } catch {
    throw new Problem(foreign(reply.status, text));
  }
}

/** send is exchange for the body alone. @param {string} method @param {string} to @param {Sent} [o] */
export const send = async (method, to, o) => (await exchange(method, to, o)).body;

/** foreign describes a reply that the daemon did not write. @param {number} status @param {string} text @returns {Partial<import('./types').Problem>} */
const foreign = (status, text) => ({ title: `Status ${status}`, detail: text.slice(0, 300), hint: 'This is no answer of the daemon. A proxy before it may have failed.' });

/** refuse throws the Problem of a reply that is none of success. A 401 asks for a token, unless another one has been set since.
 * @param {Response} reply @param {string} sent the token that the request carried */
export async function refuse(reply, sent) {
  if (reply.ok) return;
  const text = await reply.text();
  let detail;
  try {
    detail = JSON.parse(text);
  } catch {
    detail = foreign(reply.status, text);
  }
  if (reply.status === 401 && sent === token.value) locked.value = sent ? detail.detail || 'The token is not accepted' : '';
  throw new Problem({ ...detail, status: reply.status }, Number(reply.headers.get('Retry-After')) || 0);
}

/** A JSON number that JavaScript cannot hold without loss, shown and sent as it was written. */
export class Exact {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
  toString() {
    return this.text;
  }
  toJSON() {
    return /** @type {any} */ (JSON).rawJSON ? /** @type {any} */ (JSON).rawJSON(this.text) : Number(this.text);
  }
}

/** decode reads JSON and keeps every digit of its numbers, where the browser can.
 * @param {string} text */
export function decode(text) {
  return JSON.parse(text, /** @type {any} */ ((key, value, context) =>
    typeof value === 'number' && context?.source && !Number.isSafeInteger(value) && String(value) !== context.source && exactly(context.source) !== exactly(String(value)) ? new Exact(context.source) : value));
}

/** exactly is a number's digits without what does not change its value, to compare two spellings.
 * @param {string} s */
function exactly(s) {
  const [mantissa, power = '0'] = s.toLowerCase().replace('+', '').split('e');
  const [whole, part = ''] = mantissa.split('.');
  const digits = (whole + part).replace(/^(-?)0+(?=\d)/, '$1');
  const kept = digits.replace(/0+$/, '');
  return kept.replace('-', '') === '' ? '0' : `${kept}e${Number(power) - part.length + (digits.length - kept.length)}`;
}

/** @param {string} to @param {Record<string, any>} [query] @param {AbortSignal} [signal] */
export const get = (to, query, signal) => send('GET', to, { query, signal });
