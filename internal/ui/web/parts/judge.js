// Judging a call in place: right, wrong, or what the answer should have been.
import { html, useEffect, useRef, useState } from '../core/html.js';
import { path, send, get, Problem, decode } from '../core/api.js';
import { can } from '../core/session.js';
import { words, plural } from '../core/format.js';
import { toMethod } from './calls.js';
import { Action, Curl, Submit } from './action.js';
import { Unsaved, useForm } from './draft.js';
import { Badge, Section } from './page.js';
import { Failure, useLoad } from './load.js';
import { Json } from './value.js';

const WAIT = 30; // seconds that a verdict waits for the first attempt at its correction
const POLL = 3000; // ms between looks at a correction, while the page is visible

/** @param {{call: any, onChange: () => void}} p */
export function Judge({ call, onChange }) {
  const url = path`/v1/calls/${call.call_id}/verdict`;
  const of = useLoad((signal) => given(url, signal), [call.call_id]);
  const verdict = of.data;
  const form = useForm(url, { kind: 'value', expected: '', note: verdict?.note || '' });
  const [,, typed, setTyped] = form;
  const [asked, setAsked] = useState(false);
  const open = asked || !!typed;
  const close = () => (setTyped(undefined), setAsked(false));
  const changed = () => (of.reload(), close(), onChange());
  const again = async () => {
    if (await given(url)) throw new Error('the call was judged again since.');
    return send('POST', url, { body: said(verdict) });
  };
  if (of.data === undefined) return of.error && html`<${Section} title="Verdict"><${Failure} error=${of.error} retry=${of.reload} /></${Section}>`;
  if (!verdict && (!can('call') || !call.code)) return null; // no program answered
  const lost = !call.outcome ? 'its value is no longer kept' : call.replayable_code === 'masked_input' ? 'it had secrets among its arguments, which are not kept' : '';
  if (!verdict && lost) return html`<${Section} title="Verdict"><p class="quiet">This call cannot be judged: ${lost}.</p></${Section}>`;
  const mayBeRight = call.outcome_status === 'ok' || (call.outcome_authored && !gaveUp(call) && call.failure_class !== 'extrinsic');
  return html`<${Section} title="Verdict" actions=${html`
      ${verdict && html`<${Action} label="Withdraw" method="DELETE" path=${url} scope=${verdict.state === 'proposed' ? 'call' : 'call operate'} onDone=${changed} done="The verdict is withdrawn." undo=${(verdict.state === 'proposed') === !can('operate') ? again : undefined} />`}
      ${mayBeRight && !lost && verdict?.verdict !== 'right' && html`<${Action} label="Right" path=${url} body=${{ verdict: 'right' }} scope="call" main=${!verdict && !open} onDone=${changed} done=${can('operate') ? 'Judged right: the answer is an example now.' : 'Judged right: the answer is proposed as an example.'} />`}
      ${can('call') && !lost && html`<button type="button" aria-expanded=${open} onClick=${() => (open ? close() : setAsked(true))}>Wrong …</button>`}`}>
    ${of.error && html`<${Failure} error=${of.error} retry=${of.reload} />`}
    ${!verdict && !open && html`<p class="quiet">Nobody has judged this answer. A right answer becomes an example. For a wrong one the model corrects the program; the current program answers until then.</p>`}
    ${verdict && html`<${Given} verdict=${verdict} reload=${of.reload} />`}
    ${open && html`<${Wrong} url=${url} form=${form} onDone=${changed} onDiscard=${close} />`}
  </${Section}>`;
}

/** gaveUp says whether the message is the daemon's, for a call whose programs failed too often. @param {any} call */
export const gaveUp = (call) => 'raw_error_message' in (call.outcome_error_metadata || {});

/** given is the verdict on a call, null where there is none. @param {string} url @param {AbortSignal} [signal] @returns {Promise<any>} */
const given = (url, signal) => get(url, {}, signal).catch((e) => {
  if (e instanceof Problem && e.status === 404) return null;
  throw e;
});

/** said is what somebody sent to give a verdict. @param {any} v */
const said = (v) => ({ verdict: v.verdict, ...('expected' in v && { expected: v.expected }), ...(v.expected_error_type && { expected_error_type: v.expected_error_type }), ...(v.note && { note: v.note }) });

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
    ${'expected' in verdict && html`<p class="quiet">Expected:</p><${Json} value=${verdict.expected} label="Expected value" />`}
    ${verdict.expected_error_type && html`<p>Expected error: ${words(verdict.expected_error_type)}</p>`}
    ${c && c.state !== 'none' && html`<p>Correction: <${Badge} text=${c.state} /> ${c.generation && html`<a href=${toMethod(verdict.role, verdict.method, { tab: 'generations', generation: c.generation })}>${c.generation}</a>`}
      ${c.changed_answers > 0 && html` ${plural(c.changed_answers, 'other answer')} changed.`} ${c.last_error && html`<span class="quiet">${c.last_error}</span>`}</p>`}`;
}

/** Wrong asks for the value that was expected. @param {{url: string, form: ReturnType<typeof useForm>, onDone: () => void, onDiscard: () => void}} p */
function Wrong({ url, form, onDone, onDiscard }) {
  const [{ kind, expected, note }, change, typed] = /** @type {any[]} */ (form);
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
    if (bad || busy) return;
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
  useEffect(() => typed || field.current?.focus(), []);
  const set = (/** @type {string} */ name) => (/** @type {any} */ e) => change({ [name]: e.target.value });
  return html`<form class="fields" onSubmit=${submit}>
    <label>What should it be?<select value=${kind} onChange=${set('kind')}><option value="value">a value</option><option value="error">an error</option></select></label>
    <label><span>${kind === 'value' ? html`Expected value <span class="quiet">JSON; empty if you do not know</span>` : html`Expected error type <span class="quiet">such as invalid_input</span>`}</span>
      <textarea ref=${field} rows="3" spellcheck=${false} value=${expected} onInput=${set('expected')} aria-invalid=${bad ? 'true' : undefined}></textarea></label>
    ${bad && html`<p class="failure" role="alert">${bad}</p>`}
    <label><span>Note <span class="quiet">the model that corrects the program reads it</span></span><input value=${note} onInput=${set('note')} /></label>
    ${error && html`<${Failure} error=${error} />`}
    <div class="buttons"><span class="action"><${Submit} busy=${busy} off=${!!bad}>Judge wrong</${Submit}><${Curl} method="POST" path=${url} body=${body} headers=${headers} of="Judge wrong" /></span>${typed && html`<${Unsaved} onDiscard=${onDiscard} />`}
      ${busy && html`<span class="quiet" role="status">Waiting for the correction, at most ${WAIT} s …</span>`}</div>
  </form>`;
}
