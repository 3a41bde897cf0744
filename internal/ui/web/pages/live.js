// Live: calls as they happen, and the log of them.
import { html, useEffect, useRef, useState } from '../core/html.js';
import { get } from '../core/api.js';
import { follow } from '../core/stream.js';
import { returns } from '../core/returns.js';
import { href, setQuery } from '../core/route.js';
import { can, entry } from '../core/session.js';
import { forest } from '../core/tree.js';
import { plural } from '../core/format.js';
import { Page } from '../parts/page.js';
import { Search } from '../parts/search.js';
import { Table } from '../parts/table.js';
import { Empty, Failure } from '../parts/failure.js';
import { columns } from '../parts/calls.js';
import { later } from '../core/later.js';

const Log = later(() => import('./log.js'), true);

const KEPT = 200; // calls in view
const POLL = 2000; // ms between looks at what runs, while the page is visible

/** filter makes the query of the log of the page's own. Links name role and method apart: a role may have dots. @param {Record<string, string>} q */
export function filter(q) {
  const dot = q.q ? q.q.lastIndexOf('.') : -1;
  const [role, method] = dot < 0 ? [q.q || q.role, q.method] : [q.q.slice(0, dot), q.q.slice(dot + 1)];
  return { session_id: q.session, role: role?.normalize() || undefined, method: method?.normalize() || undefined, status: q.status, source: q.source, error_type: q.error, weak_success: q.weak };
}

/** keeps says whether a call that was streamed passes the filter. @param {any} c @param {ReturnType<typeof filter>} f */
const keeps = (c, f) =>
  (!f.session_id || c.session_id === f.session_id) && (!f.role || c.role === f.role) && (!f.method || c.method === f.method) && (!f.status || c.outcome_status === f.status) && (!f.source || c.program_source === f.source) &&
  (!f.error_type || c.outcome_error_type === f.error_type) && (!f.weak_success || c.weak_success);

/** @param {any} c */
const hasEnded = (c) => c.outcome_status !== 'running';

/** useCalls keeps the newest calls and those under way. @param {ReturnType<typeof filter>} f @param {boolean} paused */
function useCalls(f, paused) {
  const [state, setState] = useState(/** @type {{calls?: any[], running: any[], lost?: any, error?: any, missed: number}} */ ({ running: [], missed: 0 }));
  const held = useRef(/** @type {any[]} */ ([]));
  const stopped = useRef(paused);
  const shape = JSON.stringify(f);
  stopped.current = paused;
  const add = (/** @type {any[]} */ news) => setState((s) => {
    const seen = new Set((s.calls || []).map((c) => c.call_id));
    return { ...s, missed: 0, calls: [...news.filter((c) => !seen.has(c.call_id)).reverse(), ...(s.calls || [])].slice(0, KEPT) };
  });
  useEffect(() => {
    const stop = new AbortController();
    const look = async () => {
      const newest = Object.values(f).some(Boolean) ? await get('/v1/calls', { limit: 20 }, stop.signal) : null;
      const page = await get('/v1/calls', { ...f, status: f.status || undefined, limit: 100, previews: true }, stop.signal);
      const ended = page.data.filter(hasEnded);
      setState({ calls: ended, running: page.data.filter((/** @type {any} */ c) => !hasEnded(c)), missed: 0 });
      return (newest?.data || page.data).find(hasEnded)?.call_id || '';
    };
    held.current = []; // those are of another filter
    let queue = /** @type {any[]} */ ([]);
    let frame = 0;
    const flush = () => {
      cancelAnimationFrame(frame);
      frame = 0;
      const news = queue;
      queue = [];
      if (stopped.current) {
        held.current = [...held.current, ...news].slice(-KEPT);
        setState((s) => ({ ...s, missed: s.missed + news.length }));
      } else add(news);
    };
    look().then(
      (last) => follow('/v1/events', {
        after: last, query: { previews: true }, signal: stop.signal,
        onEvent: (e) => {
          if (e.type !== 'call.finished' || !keeps(e.data, f)) return;
          queue.push(e.data);
          if (queue.length >= KEPT) flush(); // a page that is not seen has no frames
          else frame ||= requestAnimationFrame(flush);
        },
        onState: (s, problem) => setState((old) => ({ ...old, lost: s === 'lost' ? problem || true : undefined })),
      }),
      (error) => stop.signal.aborted || setState((s) => ({ ...s, error })),
    );
    const running = setInterval(() => {
      if (document.hidden || stopped.current || (f.status && f.status !== 'running')) return;
      get('/v1/calls', { ...f, status: 'running', limit: 100 }, stop.signal).then((page) => setState((s) => (s.running.length || page.data.length ? { ...s, running: page.data } : s)), () => {});
    }, POLL);
    return () => (stop.abort(), clearInterval(running), cancelAnimationFrame(frame));
  }, [shape, entry.value]);
  useEffect(() => { // verdicts that were given elsewhere
    if (!returns.value) return;
    const stop = new AbortController();
    get('/v1/calls', { ...f, limit: 100, previews: true }, stop.signal).then((page) => {
      const now = new Map(page.data.map((/** @type {any} */ c) => [c.call_id, c]));
      setState((s) => ({ ...s, calls: s.calls?.map((c) => now.get(c.call_id) || c) }));
    }, () => {});
    return () => stop.abort();
  }, [returns.value]);
  useEffect(() => {
    if (paused || !held.current.length) return;
    const news = held.current;
    held.current = [];
    add(news);
  }, [paused]);
  return state;
}

/** @param {{query: Record<string, string>}} p */
export default function Live({ query }) {
  return query.log ? html`<${Log} query=${query} />` : html`<${Now} query=${query} />`;
}

/** @param {{query: Record<string, string>}} p */
function Now({ query }) {
  const [paused, setPaused] = useState(false);
  const f = filter(query);
  const { calls, running, lost, error, missed } = useCalls(f, paused);
  useEffect(() => {
    const toggle = (/** @type {KeyboardEvent} */ e) => {
      if (e.key !== ' ' || /** @type {HTMLElement} */ (e.target).closest('a, button, input, select, pre, dialog')) return;
      e.preventDefault();
      setPaused((p) => !p);
    };
    addEventListener('keydown', toggle);
    return () => removeEventListener('keydown', toggle);
  }, []);
  const ended = new Set((calls || []).map((c) => c.call_id));
  const rows = calls && forest([...running.filter((c) => !ended.has(c.call_id)), ...calls]);
  const state = paused ? `Paused${missed ? `, ${plural(missed, 'new call')}` : ''}` : lost ? 'Connection lost, connecting again …' : 'Following';
  return html`<${Page} title="Live" note="${can('operate') ? 'Calls of all clients' : 'Your calls'} as they happen, newest first. Open one to see why it ended as it did, and to judge it." actions=${!error && html`<span class="follow ${paused ? 'paused' : lost ? 'lost' : ''}" role="status">${state}</span>
      <button type="button" onClick=${() => setPaused(!paused)}>${paused ? 'Resume' : 'Pause'}</button>`}>
    <${Filters} query=${query} />
    ${error && html`<${Failure} error=${error} retry=${() => location.reload()} />`}
    ${!rows && !error && html`<p class="quiet" role="status">Loading …</p>`}
    ${rows && (rows.length ? html`<${Table} columns=${columns} rows=${rows} label="Calls" id=${(/** @type {any} */ c) => c.call_id} />` : html`<${Nothing} filtered=${Object.keys(query).length > 0} />`)}
  </${Page}>`;
}

/** @param {{filtered?: boolean}} p */
export const Nothing = ({ filtered }) => filtered
  ? html`<${Empty} title="No call matches."><p><a href="#/live">Clear the filters</a></p></${Empty}>`
  : html`<${Empty} title="No calls yet."><p>Calls show here as they end.${can('call') ? ' Make one in a terminal:' : ' Making one needs the scope call.'}</p>
    ${can('call') && html`<pre>recurgentd call${location.port === '8420' ? '' : ` --url ${location.origin}`} calculator add 2 3</pre>
    <p>or <a href="#/sessions/new">start a session here</a>.</p>`}</${Empty}>`;

/** @param {{query: Record<string, string>}} p */
export function Filters({ query }) {
  const set = (/** @type {string} */ name) => (/** @type {any} */ e) => setQuery({ [name]: e.target.value.trim() });
  const pick = (/** @type {string} */ name, /** @type {string} */ label, /** @type {[string, string][]} */ options) => html`<label>${label}<select onChange=${set(name)}>
    ${[['', 'all'], ...options].map(([v, text]) => html`<option value=${v} selected=${(query[name] || '') === v}>${text}</option>`)}</select></label>`;
  return html`<form class="filters" role="search" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
    <label>Role or role.method<${Search} data-search value=${query.q || [query.role, query.method].filter(Boolean).join('.')} placeholder="calculator.add" onEnter=${(/** @type {string} */ q) => setQuery({ q, role: '', method: '' })} /></label>
    ${[['session', 'Session'], ['error', 'Error type']].map(([name, label]) => query[name] && html`<label key=${name}>${label}<${Search} value=${query[name]} onEnter=${(/** @type {string} */ v) => setQuery({ [name]: v })} /></label>`)}
    ${pick('status', 'Outcome', [['ok', 'ok'], ['error', 'error'], ['running', 'running']])}
    ${pick('source', 'Program', [['persisted', 'stored'], ['generated', 'forged'], ['repaired', 'repaired'], ['none', 'none']])}
    <label class="check"><input type="checkbox" checked=${query.weak === 'true'} onChange=${(/** @type {any} */ e) => setQuery({ weak: e.target.checked ? 'true' : '' })} />weak successes only</label>
    ${!query.log && html`<a href=${href(['live'], { ...query, log: 1 })}>Older calls</a>`}
  </form>`;
}
