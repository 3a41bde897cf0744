// Try: a run of which nothing is kept.
import { html, useState } from '../core/html.js';
import { decode, send } from '../core/api.js';
import { can } from '../core/session.js';
import { json, plural, words } from '../core/format.js';
import { Section, Badge } from './page.js';
import { Curl, Submit } from './action.js';
import { Unsaved, useForm } from './draft.js';
import { Failure, Empty } from './load.js';
import { Fields } from './fields.js';
import { kwargs } from './form.js';
import { Result } from './result.js';
import { Table } from './table.js';
import { toCall } from './calls.js';

/** @param {{of: any, url: string}} p */
export function Try({ of, url }) {
  const parameters = /** @type {any[]} */ (of.interface?.parameters || []);
  const open = !of.interface || of.interface.open; // it may take more than the fields
  const [form, set, typed, setTyped] = useForm(`${url}/try`, { values: /** @type {Record<string, string>} */ ({}), more: '', generation: '', edit: false, code: of.code || '', from: of.code, live: false });
  const { values, more, edit, code, live } = form;
  const generation = of.history?.some((/** @type {any} */ g) => g.id === form.generation) ? form.generation : ''; // it may be gone since
  const [state, setState] = useState(/** @type {{report?: any, error?: any, busy?: boolean, wrong?: any}} */ ({}));
  if (!can('operate')) return html`<${Empty} title="Trying a program needs the scope operate." />`;
  if (!of.code) return html`<${Empty} title="There is no program to try yet."><p>The model writes one at the first call.</p></${Empty}>`;
  const { out, wrong } = kwargs(parameters, values);
  let further = /** @type {any} */ ({}), badMore = '';
  try {
    further = (open && more.trim() && decode(more)) || {};
    if (typeof further !== 'object' || (parameters.length && Array.isArray(further))) throw new Error();
  } catch {
    badMore = parameters.length ? 'This is not a JSON object.' : 'This is no JSON array or object.';
  }
  const body = { args: Array.isArray(further) ? further : [], kwargs: Array.isArray(further) ? {} : { ...further, ...out }, fetch: live ? 'live' : 'denied', ...(edit ? { code } : generation ? { generation } : {}) };
  const run = async (/** @type {Event} */ e) => {
    e.preventDefault();
    if (state.busy) return;
    if (Object.keys(wrong).length || badMore) return setState({ wrong });
    setState({ busy: true });
    if (typed) setTyped(typed, 'code' in typed); // arguments have served then
    try {
      setState({ report: await send('POST', `${url}/try`, { body }) });
    } catch (error) {
      setState({ error });
    }
  };
  const r = state.report;
  return html`<div class="columns"><div><${Section} title="Try" note="A test run: nothing is kept or counted, and the model is not asked.">
      <form class="fields" onSubmit=${run}>
        <${Fields} of=${parameters} values=${values} onChange=${(/** @type {typeof values} */ v) => set({ values: v })} wrong=${state.wrong} />
        ${open && html`<label><span>${parameters.length ? 'Further arguments' : 'Arguments'} <span class="quiet">${parameters.length ? 'by name, a JSON object' : 'a JSON array, or an object of those by name'}</span></span><textarea rows="2" spellcheck=${false} value=${more} onInput=${(/** @type {any} */ e) => set({ more: e.target.value })}></textarea>${badMore && html`<span class="wrong" role="alert">${badMore}</span>`}</label>`}
        <label>Program<select onChange=${(/** @type {any} */ e) => set({ edit: e.target.value === 'edit', generation: e.target.value === 'edit' ? '' : e.target.value })}>
          <option value="">current${of.current_generation ? ` (${of.current_generation})` : ''}</option>${(of.history || []).map((/** @type {any} */ g) => html`<option value=${g.id} selected=${g.id === generation}>${g.id}</option>`)}<option value="edit" selected=${edit}>my own code</option></select></label>
        ${edit && html`<label>Code<textarea rows="18" spellcheck=${false} value=${code} onInput=${(/** @type {any} */ e) => set({ code: e.target.value, from: form.from })}></textarea>
          ${form.from !== of.code && html`<span class="wrong" role="status">The current program was changed since you began with this code.</span>`}</label>`}
        <label class="check"><input type="checkbox" checked=${live} onChange=${(/** @type {any} */ e) => set({ live: e.target.checked })} />allow requests to the network (reading only)</label>
        <div class="buttons"><span class="action"><${Submit} busy=${state.busy}>Run</${Submit}><${Curl} method="POST" path="${url}/try" body=${body} of="Run" /></span>${typed && html`<${Unsaved} onDiscard=${() => setTyped(undefined)} />`}</div>
      </form></${Section}></div>
    <div>${!r && !state.error && html`<p class="quiet aside">The result appears here, with the examples that it keeps or breaks and the earlier answers that it changes.</p>`}${state.error && html`<${Failure} error=${state.error} />`}
      ${r && html`<${Section} title="Result" actions=${html`<${Badge} text=${r.outcome.status} />`}>
        ${r.outcome.ok ? html`<${Result} value=${r.outcome.value} name="value" />` : html`<p><strong>${words(r.outcome.error_type)}</strong></p><pre>${r.outcome.error_message}</pre>`}
        <p class="quiet">Examples: ${r.examples.passed} passed, ${r.examples.failed} failed, ${r.examples.skipped} skipped. ${plural(r.fixtures.same, 'earlier answer')} the same, ${r.fixtures.changed.length} changed.</p>
        ${r.fixtures.changed.length > 0 && html`<${Table} label="Changed answers" rows=${r.fixtures.changed} columns=${[{ title: 'Call', wide: true, cell: (/** @type {any} */ c) => html`<a href=${toCall(c.call_id)}>${c.call_id}</a>` },
          { title: 'Was', named: true, cell: (/** @type {any} */ c) => html`<code>${json(c.was, 50)}</code>` }, { title: 'Now', named: true, cell: (/** @type {any} */ c) => html`<code>${json(c.now, 50)}</code>` }]} />`}
      </${Section}>`}</div></div>`;
}
