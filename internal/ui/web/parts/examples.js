// Examples: what a method shall answer, as a table that can be edited and run.
import { html, useEffect, useRef, useState } from '../core/html.js';
import { decode, exchange } from '../core/api.js';
import { can } from '../core/session.js';
import { json, words, plural } from '../core/format.js';
import { Section, Badge } from './page.js';
import { Action, Curl, Submit, takingBack } from './action.js';
import { Unsaved, useDraft } from './draft.js';
import { Failure, Shown, useLoad } from './load.js';
import { pretty } from './value.js';
import { say } from './dialog.js';

/** A row of the table: texts as typed. @typedef {{id?: string, input: string, kind: string, expect: string, note: string, state?: string, by?: string, of: any}} Row */

/** row makes texts of an example. @param {any} e @returns {Row} */
export const row = (e) => ({
  id: e.id, state: e.state, by: e.by, of: e, note: e.note || '',
  input: pretty(Object.keys(e.kwargs || {}).length ? { args: e.args || [], kwargs: e.kwargs } : e.args || [], 0),
  kind: 'error_type' in e.expect ? 'error_type' : 'schema' in e.expect ? 'schema' : 'value',
  expect: 'error_type' in e.expect ? e.expect.error_type : pretty('schema' in e.expect ? e.expect.schema : e.expect.value, 0),
});


/** example makes an example of texts, or throws an error that says what is wrong. @param {Row} r */
export function example(r) {
  const read = (/** @type {string} */ text, /** @type {string} */ what) => {
    try {
      return decode(text);
    } catch {
      throw new Error(`The ${what} ${JSON.stringify(text)} is not JSON. Put text in double quotes.`);
    }
  };
  const input = read(r.input || '[]', 'input');
  const named = input && !Array.isArray(input) && typeof input === 'object' ? input : null;
  if (!Array.isArray(input) && !named) throw new Error('The input is an array of arguments, or an object with args and kwargs.');
  const { id, context, tolerance } = r.of || {};
  return {
    ...(id && { id }), args: named ? named.args || [] : input, kwargs: named ? named.kwargs || (named.args ? {} : named) : {}, ...(context && { context }),
    expect: r.kind === 'error_type' ? { error_type: r.expect.trim() } : { [r.kind]: read(r.expect, 'expectation') }, ...(tolerance !== undefined && { tolerance }), ...(r.note && { note: r.note }),
  };
}

/** @param {{of: any, url: string}} p */
export function Examples({ of, url }) {
  const loaded = useLoad((signal) => read(url, signal), [url]);
  return html`<${Shown} of=${loaded}>${(/** @type {any} */ data) => html`<${Editor} of=${of} url=${url} examples=${data.examples} revision=${data.revision} reload=${loaded.reload} />`}</${Shown}>`;
}

/** read returns the examples with the revision that they have. @param {string} url @param {AbortSignal} [signal] */
const read = (url, signal) => exchange('GET', `${url}/examples`, { signal }).then(revised);

/** put replaces the examples of that revision. @param {string} url @param {any} body @param {string | null} revision */
const put = (url, body, revision) => exchange('PUT', `${url}/examples`, { body, ...(revision && { headers: { 'If-Match': revision } }) }).then(revised);

/** @param {{body: any, headers: Headers}} reply */
const revised = ({ body, headers }) => ({ examples: body.examples, revision: headers.get('ETag') });

/** @param {{of: any, url: string, examples: any[], revision: string | null, reload: () => void}} p */
function Editor({ of, url, examples, revision, reload }) {
  const [draft, setDraft] = useDraft(`${url}/examples`);
  const [saved, setSaved] = useState({ over: examples, list: examples, revision }); // what Save stored, until they are loaded again
  const [results, setResults] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const now = saved.over === examples ? saved : { list: examples, revision };
  const stored = now.list.map(row);
  const seen = /** @type {Row[]} */ (draft?.seen.filter(isActive) || []); // the stored ones that were there when somebody typed beside them
  const rows = draft ? typedBeside(draft, stored) : stored;
  const table = useRef(/** @type {HTMLTableSectionElement | null} */ (null));
  const adds = useRef(false);
  useEffect(() => {
    if (adds.current) /** @type {HTMLElement | null | undefined} */ (table.current?.querySelector('tr:last-child textarea'))?.focus();
    adds.current = false;
  }, [rows.length]);
  const edit = (/** @type {Row[]} */ to) => setDraft(texts(to) === texts(stored) ? undefined : { rows: to, seen: [...seen, ...stored.filter((r) => !among(seen, r))] });
  const edits = can('operate');
  const active = rows.filter(isActive);
  const changed = texts(rows) !== texts(stored);
  const moved = changed && seen.some((r) => texts([r]) !== texts(stored.filter((s) => s.id === r.id)));
  const set = (/** @type {Row} */ r, /** @type {Partial<Row>} */ c) => edit(rows.map((x) => (x === r ? { ...x, ...c } : x)));
  const body = () => ({ examples: active.map(example) });
  const save = async () => {
    if (busy || !changed) return;
    setBusy(true);
    setError(null);
    try {
      const reply = await put(url, body(), now.revision);
      const undo = undoing(url, examples, reply.examples);
      say(`The examples are saved.${undo ? '' : ' There is no undo: the example of a judged call comes back by judging the call again.'}`, undo && takingBack(undo, reload));
      setResults(null);
      setSaved({ over: examples, list: reply.examples, revision: reply.revision });
      setDraft(undefined);
      reload();
    } catch (/** @type {any} */ e) {
      setError(e);
      if (e.status === 412) reload(); // somebody has changed them since, which is shown beside what was typed
    }
    setBusy(false);
  };
  const result = (/** @type {Row} */ r) => results?.results.find((/** @type {any} */ x) => x.id === r.id);
  let shown = /** @type {any} */ (null);
  try {
    shown = body();
  } catch {
    // The request is shown once it can be sent.
  }
  return html`<${Section} title="Examples" note="Expected answers. Every later program must give them before it replaces the current one."
      actions=${html`${results && html`<span role="status">${results.passed} passed, ${results.failed} failed, ${results.skipped} skipped</span>`}
        ${of.code && rows.length > 0 && html`<${Action} label="Run all" path="${url}/examples/run" body=${{}} scope="operate" disabled=${changed} onDone=${setResults} done="The examples have run." />`}
        ${edits && changed && !busy && html`<${Unsaved} onDiscard=${() => (setDraft(undefined), setError(null))} />`}
        ${edits && html`<button type="button" disabled=${busy} onClick=${() => ((adds.current = true), edit([...rows, { input: '[]', kind: 'value', expect: '', note: '', of: {} }]))}>Add</button>
          <span class="action"><${Submit} busy=${busy} off=${!changed} onClick=${save}>Save</${Submit}>${shown && html`<${Curl} method="PUT" path="${url}/examples" body=${shown} of="Save" />`}</span>`}`}>
    ${moved && html`<p class="wrong" role="status">The stored examples were changed since you typed. <em>Save</em> puts these in their place, <em>Discard</em> shows them.</p>`}
    ${error && html`<${Failure} error=${error.code === undefined ? Object.assign(error, { name: 'Input' }) : error} />`}
    ${!rows.length ? html`<p class="quiet">No examples yet. Judge a call right, or add one here${edits ? '' : ' with the scope operate'}, even before the method has a program.</p>`
      : html`<div class="scroll"><table class="rows edit" aria-label="Examples"><thead><tr><th scope="col">Input</th><th scope="col">Expected</th><th scope="col">Note</th><th scope="col">Result</th><th scope="col">Decide</th></tr></thead>
        <tbody ref=${table}>${rows.map((r, i) => html`<tr key=${r.id || `new-${i}`} data-row tabindex="-1">
          <td>${edits && r.state !== 'proposed' ? html`<textarea rows="1" readonly=${busy} aria-label="Input ${i + 1}" spellcheck=${false} value=${r.input} onInput=${(/** @type {any} */ e) => set(r, { input: e.target.value })}></textarea>` : html`<code>${r.input}</code>`}</td>
          <td>${edits && r.state !== 'proposed' ? html`<span class="pair"><select disabled=${busy} aria-label="Kind ${i + 1}" onChange=${(/** @type {any} */ e) => set(r, { kind: e.target.value })}>${[['value', 'value'], ['error_type', 'error'], ['schema', 'schema']].map(([v, text]) => html`<option value=${v} selected=${r.kind === v}>${text}</option>`)}</select>
            <textarea rows="1" readonly=${busy} aria-label="Expected ${i + 1}" spellcheck=${false} value=${r.expect} onInput=${(/** @type {any} */ e) => set(r, { expect: e.target.value })}></textarea></span>` : html`<code>${r.expect}</code>`}</td>
          <td class="note">${edits && r.state !== 'proposed' ? html`<textarea rows="1" readonly=${busy} aria-label="Note ${i + 1}" placeholder="note" maxlength="4096" value=${r.note} onInput=${(/** @type {any} */ e) => set(r, { note: e.target.value })}></textarea>` : r.note}</td>
          <td>${Result(result(r))}${r.state === 'proposed' && html`<${Badge} text="proposed" /> <span class="quiet">${r.by || ''}</span>`}</td>
          <td>${r.state === 'proposed' ? html`<${Action} label="Accept" path="${url}/examples/${r.id}/accept" body=${{}} scope="operate" main onDone=${reload} /> <${Action} label="Reject" path="${url}/examples/${r.id}/reject" body=${{}} scope="operate" onDone=${reload} />`
            : edits && html`<button type="button" class="link" disabled=${busy} aria-label="Remove example ${i + 1}" onClick=${() => edit(rows.filter((x) => x !== r))}>Remove</button>`}</td>
        </tr>`)}</tbody></table></div>
        <p class="quiet">${plural(active.length, 'example')} of at most 64. Input is a JSON array of arguments, or {"kwargs": {…}}.</p>`}
  </${Section}>`;
}

const isActive = (/** @type {any} */ e) => e.state !== 'proposed';

const texts = (/** @type {Row[]} */ rows) => JSON.stringify(rows.filter(isActive).map((r) => [r.input, r.kind, r.expect, r.note]));

const among = (/** @type {Row[]} */ rows, /** @type {Row} */ r) => rows.some((x) => x.id === r.id);

/** typedBeside is what was typed, with proposals as they stand now and, after it, what others have added since. @param {{rows: Row[], seen: Row[]}} draft @param {Row[]} stored */
const typedBeside = (draft, stored) => [...draft.rows.flatMap((r) => (isActive(r) ? [r] : stored.filter((s) => s.id === r.id))), ...stored.filter((r) => !among(draft.seen, r))];

/** undoing puts examples again as they were, unless somebody has changed them since. One that was made from a call does not come back once it is gone, or has another input: the daemon keeps what the call
 * fetched with the example alone. Undefined where that is so. @param {string} url @param {any[]} before @param {any[]} saved */
function undoing(url, before, saved) {
  if (before.some((e) => isActive(e) && e.call_id && !saved.some((s) => s.id === e.id && s.call_id))) return undefined;
  return async () => {
    const now = await read(url);
    if (pretty(now.examples.filter(isActive)) !== pretty(saved.filter(isActive))) throw new Error('the examples were changed since.');
    return put(url, { examples: before.filter(isActive) }, now.revision);
  };
}

/** @param {any} r */
const Result = (r) => r ? html`<${Badge} text=${r.result} />${r.result === 'failed' && html` <span class="quiet">got ${r.error_type ? words(r.error_type) : json(r.got, 60)}</span>`}` : null;
