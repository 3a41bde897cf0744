// Server-sent events by fetch: EventSource cannot send a token.
import { headers, refuse, withQuery, decode, Problem } from './api.js';
import { token } from './session.js';

/** parser returns a function that takes text as it arrives and calls emit for each whole event.
 * @param {(e: {id: string, type: string, data: any}) => void} emit */
export function parser(emit) {
  let rest = '';
  let event = { id: '', type: 'message', data: '' };
  return (/** @type {string} */ text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() || '';
    for (const line of lines) {
      const colon = line.indexOf(':');
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (line === '') {
        if (event.data) emit({ ...event, data: decode(event.data) });
        event = { id: '', type: 'message', data: '' };
      } else if (field === 'id') event.id = value;
      else if (field === 'event') event.type = value;
      else if (field === 'data') event.data += value;
    }
  };
}

/** follow reads a stream until the signal ends it, and connects again, behind the last event, when the connection breaks.
 * @param {string} to
 * @param {{after?: string, query?: Record<string, any>, signal: AbortSignal, onEvent: (e: {id: string, type: string, data: any}) => void,
 *   onState?: (s: 'open' | 'lost', problem?: any) => void, once?: boolean}} o once: the end of the stream is its end */
export async function follow(to, o) {
  let last = o.after || '';
  let wait = 500;
  while (!o.signal.aborted) {
    let problem;
    try {
      const sent = token.value;
      const reply = await fetch(withQuery(to, { ...o.query, after: last }), { headers: headers(), signal: o.signal, cache: 'no-store' });
      await refuse(reply, sent);
      o.onState?.('open');
      wait = 500;
      const read = parser((e) => {
        if (e.id) last = e.id;
        o.onEvent(e);
      });
      const text = new TextDecoder();
      const reader = /** @type {ReadableStream<Uint8Array>} */ (reply.body).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) read(text.decode(part.value, { stream: true }));
      if (o.once) return;
    } catch (e) {
      problem = e;
      if (o.signal.aborted) return;
      if (e instanceof Problem && [401, 403, 404, 410].includes(e.status)) {
        o.onState?.('lost', e);
        return;
      }
    }
    o.onState?.('lost', problem);
    await new Promise((done) => {
      const timer = setTimeout(done, wait);
      o.signal.addEventListener('abort', () => (clearTimeout(timer), done(undefined)), { once: true });
    });
    wait = Math.min(wait * 2, 10000);
  }
}
