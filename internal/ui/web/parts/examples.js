// Examples: what a method shall answer, as a table that can be edited and run.
import { html, useEffect, useState } from '../core/html.js';
import { decode, get, send } from '../core/api.js';
import { can } from '../core/session.js';
import { json, words, plural } from '../core/format.js';
import { Section, Badge } from './page.js';
import { Action, Curl } from './action.js';
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
  const loaded = useLoad((signal) => get(`${url}/examples`, {}, signal), [url]);
  return html`<${Shown} of=${loaded}>${(/** @type {any} */ data) => html`<${Editor} of=${of} url=${url} examples=${data.examples} reload=${loaded.reload} />`}</${Shown}>`;
}

/** @param {{of: any, url: string, examples: any[], reload: () => void}} p */
function Editor({ of, url, examples, reload }) {
  const [rows, setRows] = useState(/** @type {Row[]} */ ([]));
  const [results, setResults] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  useEffect(() => setRows(examples.map(row)), [examples]);
  const edits = can('operate');
  const active = rows.filter((r) => r.state !== 'proposed');
  const changed = JSON.stringify(active.map((r) => [r.input, r.kind, r.expect, r.note])) !== JSON.stringify(examples.filter((e) => e.state !== 'proposed').map(row).map((r) => [r.input, r.kind, r.expect, r.note]));
  const set = (/** @type {Row} */ r, /** @type {Partial<Row>} */ c) => setRows(rows.map((x) => (x === r ? { ...x, ...c } : x)));
  const body = () => ({ examples: active.map(example) });
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      await send('PUT', `${url}/examples`, { body: body() });
      say('The examples are saved.');
      setResults(null);
      reload();
    } catch (e) {
      setError(e);
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
        ${edits && html`<button type="button" onClick=${() => setRows([...rows, { input: '[]', kind: 'value', expect: '', note: '', of: {} }])}>Add</button>
          <span class="action"><button type="button" class="main" disabled=${!changed || busy} onClick=${save}>Save</button>${shown && html`<${Curl} method="PUT" path="${url}/examples" body=${shown} of="Save" />`}</span>`}`}>
    ${error && html`<${Failure} error=${error.code === undefined ? Object.assign(error, { name: 'Input' }) : error} />`}
    ${!rows.length ? html`<p class="quiet">No examples yet. Judge a call right, or add one here${edits ? '' : ' with the scope operate'}, even before the method has a program.</p>`
      : html`<div class="scroll"><table class="edit" aria-label="Examples"><thead><tr><th scope="col">Input</th><th scope="col">Expected</th><th scope="col" class="minor">Note</th><th scope="col">Result</th><th scope="col">Decide</th></tr></thead>
        <tbody>${rows.map((r, i) => html`<tr key=${r.id || `new-${i}`} data-row tabindex="-1">
          <td>${edits && r.state !== 'proposed' ? html`<textarea rows="1" aria-label="Input ${i + 1}" spellcheck=${false} value=${r.input} onInput=${(/** @type {any} */ e) => set(r, { input: e.target.value })}></textarea>` : html`<code>${r.input}</code>`}</td>
          <td>${edits && r.state !== 'proposed' ? html`<span class="pair"><select aria-label="Kind ${i + 1}" onChange=${(/** @type {any} */ e) => set(r, { kind: e.target.value })}>${[['value', 'value'], ['error_type', 'error'], ['schema', 'schema']].map(([v, text]) => html`<option value=${v} selected=${r.kind === v}>${text}</option>`)}</select>
            <textarea rows="1" aria-label="Expected ${i + 1}" spellcheck=${false} value=${r.expect} onInput=${(/** @type {any} */ e) => set(r, { expect: e.target.value })}></textarea></span>` : html`<code>${r.expect}</code>`}</td>
          <td class="text minor">${r.note}</td>
          <td>${Result(result(r))}${r.state === 'proposed' && html`<${Badge} text="proposed" /> <span class="quiet">${r.by || ''}</span>`}</td>
          <td>${r.state === 'proposed' ? html`<${Action} label="Accept" path="${url}/examples/${r.id}/accept" body=${{}} scope="operate" main onDone=${reload} /> <${Action} label="Reject" path="${url}/examples/${r.id}/reject" body=${{}} scope="operate" onDone=${reload} />`
            : edits && html`<button type="button" class="link" aria-label="Remove example ${i + 1}" onClick=${() => setRows(rows.filter((x) => x !== r))}>Remove</button>`}</td>
        </tr>`)}</tbody></table></div>
        <p class="quiet">${plural(active.length, 'example')} of at most 64. Input is a JSON array of arguments, or {"kwargs": {…}}.</p>`}
  </${Section}>`;
}

/** @param {any} r */
const Result = (r) => r ? html`<${Badge} text=${r.result} />${r.result === 'failed' && html` <span class="quiet">got ${r.error_type ? words(r.error_type) : json(r.got, 60)}</span>`}` : null;
