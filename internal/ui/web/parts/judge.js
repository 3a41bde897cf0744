// Judging a call in place: right, wrong, or what the answer should have been.
import { html, useEffect, useRef, useState } from '../core/html.js';
import { path, send, get, Problem, decode } from '../core/api.js';
import { can } from '../core/session.js';
import { words, plural } from '../core/format.js';
import { toMethod } from './calls.js';
import { Action, Curl } from './action.js';
import { Badge, Section } from './page.js';
import { Failure, useLoad } from './load.js';
import { Json } from './value.js';

const WAIT = 30; // seconds that a verdict waits for the first attempt at its correction
const POLL = 3000; // ms between looks at a correction, while the page is visible

/** @param {{call: any, onChange: () => void}} p */
export function Judge({ call, onChange }) {
  const url = path`/v1/calls/${call.call_id}/verdict`;
  const of = useLoad((signal) => get(url, {}, signal).catch((e) => {
    if (e instanceof Problem && e.status === 404) return null;
    throw e;
  }), [call.call_id]);
  const [form, setForm] = useState(false);
  const changed = () => (of.reload(), setForm(false), onChange());
  const verdict = of.data;
  if (of.error) return html`<${Section} title="Verdict"><${Failure} error=${of.error} retry=${of.reload} /></${Section}>`;
  if (of.data === undefined) return null;
  if (!verdict && (!can('call') || !call.code)) return null; // no program answered
  const mayBeRight = call.outcome_status === 'ok' || call.outcome_authored;
  return html`<${Section} title="Verdict" actions=${html`
      ${verdict && html`<${Action} label="Withdraw" method="DELETE" path=${url} scope=${verdict.state === 'proposed' ? 'call' : 'call operate'} onDone=${changed} done="The verdict is withdrawn." />`}
      ${mayBeRight && verdict?.verdict !== 'right' && html`<${Action} label="Right" path=${url} body=${{ verdict: 'right' }} scope="call" main=${!verdict && !form} onDone=${changed} done=${can('operate') ? 'Judged right: the answer is an example now.' : 'Judged right: the answer is proposed as an example.'} />`}
      ${can('call') && html`<button type="button" aria-expanded=${form} onClick=${() => setForm(!form)}>Wrong …</button>`}`}>
    ${!verdict && !form && html`<p class="quiet">Nobody has judged this answer. A right answer becomes an example. For a wrong one the model corrects the program; the current program answers until then.</p>`}
    ${verdict && html`<${Given} verdict=${verdict} reload=${of.reload} />`}
    ${form && html`<${Wrong} url=${url} verdict=${verdict} onDone=${changed} />`}
  </${Section}>`;
}

/** Given shows a verdict and what came of it. @param {{verdict: any, reload: () => void}} p */
function Given({ verdict, reload }) {
  const c = verdict.correction;
  const open = ['queued', 'running', 'backing_off'].includes(c?.state);
  useEffect(() => {
    if (!open) return;
    const timer = setInterval(() => document.hidden || reload(), POLL);
    return () => clearInterval(timer);
  }, [open]);
  return html`<p><${Badge} text=${verdict.verdict} /> ${verdict.note && html`<span>“${verdict.note}”</span>`}
      ${(verdict.example_state || verdict.state === 'proposed') && html` <span class="quiet">${verdict.state === 'proposed' ? 'It is a proposal, which someone with the scope operate accepts.' : 'It is an example.'}</span>`}
      ${verdict.dropped_fixtures > 0 && html` <span class="quiet">${plural(verdict.dropped_fixtures, 'fixture')} dropped.</span>`}</p>
    ${'expected' in verdict && html`<p class="quiet">Expected:</p><${Json} value=${verdict.expected} />`}
    ${verdict.expected_error_type && html`<p>Expected error: ${words(verdict.expected_error_type)}</p>`}
    ${c && c.state !== 'none' && html`<p>Correction: <${Badge} text=${c.state} /> ${c.generation && html`<a href=${toMethod(verdict.role, verdict.method, { tab: 'generations', generation: c.generation })}>${c.generation}</a>`}
      ${c.changed_answers > 0 && html` ${plural(c.changed_answers, 'answer')} changed.`} ${c.last_error && html`<span class="quiet">${c.last_error}</span>`}</p>`}`;
}

/** Wrong asks for the value that was expected. @param {{url: string, verdict: any, onDone: () => void}} p */
function Wrong({ url, verdict, onDone }) {
  const [kind, setKind] = useState('value');
  const [expected, setExpected] = useState('');
  const [note, setNote] = useState(verdict?.note || '');
  const [error, setError] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  let value, bad = '';
  if (kind === 'value' && expected.trim())
    try {
      value = decode(expected);
    } catch {
      bad = 'This is not JSON. Put text in double quotes.';
    }
  const body = { verdict: 'wrong', ...(value !== undefined && { expected: value }), ...(kind === 'error' && expected.trim() && { expected_error_type: expected.trim() }), ...(note.trim() && { note: note.trim() }) };
  const headers = { Prefer: `wait=${WAIT}` };
  const submit = async (/** @type {Event} */ e) => {
    e.preventDefault();
    if (bad) return;
    setBusy(true);
    setError(null);
    try {
      await send('POST', url, { body, headers });
      onDone();
    } catch (e) {
      setError(e);
    }
    setBusy(false);
  };
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  useEffect(() => field.current?.focus(), []);
  const set = (/** @type {(v: string) => void} */ f) => (/** @type {any} */ e) => f(e.target.value);
  return html`<form class="fields" onSubmit=${submit}>
    <label>What should it be?<select value=${kind} onChange=${set(setKind)}><option value="value">a value</option><option value="error">an error</option></select></label>
    <label><span>${kind === 'value' ? html`Expected value <span class="quiet">JSON; empty if you do not know</span>` : html`Expected error type <span class="quiet">such as invalid_input</span>`}</span>
      <textarea ref=${field} rows="3" spellcheck=${false} value=${expected} onInput=${set(setExpected)} aria-invalid=${bad ? 'true' : undefined}></textarea></label>
    ${bad && html`<p class="failure" role="alert">${bad}</p>`}
    <label><span>Note <span class="quiet">the model that corrects the program reads it</span></span><input value=${note} onInput=${set(setNote)} /></label>
    ${error && html`<${Failure} error=${error} />`}
    <div class="buttons"><span class="action"><button type="submit" class="main" disabled=${busy || !!bad} aria-busy=${busy ? 'true' : undefined}>Judge wrong</button><${Curl} method="POST" path=${url} body=${body} headers=${headers} of="Judge wrong" /></span>
      ${busy && html`<span class="quiet" role="status">Waiting for the correction, at most ${WAIT} s …</span>`}</div>
  </form>`;
}
