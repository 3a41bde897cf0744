// Try: a run of which nothing is kept.
import { html, useState } from '../core/html.js';
import { decode, send } from '../core/api.js';
import { can } from '../core/session.js';
import { json, plural, words } from '../core/format.js';
import { Section, Badge } from './page.js';
import { Curl } from './action.js';
import { Failure, Empty } from './load.js';
import { Fields, kwargs } from './form.js';
import { Json } from './value.js';
import { Table } from './table.js';
import { toCall } from './calls.js';

/** @param {{of: any, url: string}} p */
export function Try({ of, url }) {
  const parameters = (of.interface?.parameters || []).filter((/** @type {any} */ p) => !p.variadic);
  const byHand = !of.interface || of.interface.open || (of.interface.parameters || []).some((/** @type {any} */ p) => p.variadic);
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const [list, setList] = useState('[]');
  const [generation, setGeneration] = useState('');
  const [code, setCode] = useState(of.code || '');
  const [edit, setEdit] = useState(false);
  const [live, setLive] = useState(false);
  const [state, setState] = useState(/** @type {{report?: any, error?: any, busy?: boolean, wrong?: any}} */ ({}));
  if (!can('operate')) return html`<${Empty} title="Trying a program needs the scope operate." />`;
  if (!of.code) return html`<${Empty} title="There is no program to try yet." />`;
  const { out, wrong } = kwargs(parameters, values);
  let args = [], badList = '';
  try {
    args = decode(list || '[]');
    if (!Array.isArray(args)) throw new Error();
  } catch {
    badList = 'This is not a JSON array.';
  }
  const body = { args: byHand ? args : [], kwargs: out, fetch: live ? 'live' : 'denied', ...(edit ? { code } : generation ? { generation } : {}) };
  const run = async (/** @type {Event} */ e) => {
    e.preventDefault();
    if ((!byHand && Object.keys(wrong).length) || badList) return setState({ wrong });
    setState({ busy: true });
    try {
      setState({ report: await send('POST', `${url}/try`, { body }) });
    } catch (error) {
      setState({ error });
    }
  };
  const r = state.report;
  return html`<div class="columns"><div><${Section} title="Try" note="A test run: nothing is kept or counted, and the model is not asked.">
      <form class="fields" onSubmit=${run}>
        ${byHand && html`<label><span>Positional arguments <span class="quiet">JSON array</span></span><textarea rows="2" spellcheck=${false} value=${list} onInput=${(/** @type {any} */ e) => setList(e.target.value)}></textarea>${badList && html`<span class="wrong" role="alert">${badList}</span>`}</label>`}
        <${Fields} of=${parameters} values=${values} onChange=${setValues} wrong=${state.wrong} />
        <label>Program<select onChange=${(/** @type {any} */ e) => (setEdit(e.target.value === 'edit'), setGeneration(e.target.value === 'edit' ? '' : e.target.value))}>
          <option value="">current${of.current_generation ? ` (${of.current_generation})` : ''}</option>${(of.history || []).map((/** @type {any} */ g) => html`<option value=${g.id}>${g.id}</option>`)}<option value="edit">my own code</option></select></label>
        ${edit && html`<label>Code<textarea rows="18" spellcheck=${false} value=${code} onInput=${(/** @type {any} */ e) => setCode(e.target.value)}></textarea></label>`}
        <label class="check"><input type="checkbox" checked=${live} onChange=${(/** @type {any} */ e) => setLive(e.target.checked)} />allow requests to the network (reading only)</label>
        <div class="buttons"><span class="action"><button type="submit" class="main" disabled=${state.busy} aria-busy=${state.busy ? 'true' : undefined}>Run</button><${Curl} method="POST" path="${url}/try" body=${body} of="Run" /></span></div>
      </form></${Section}></div>
    <div>${!r && !state.error && html`<p class="quiet aside">The result appears here, with the examples that it keeps or breaks and the earlier answers that it changes.</p>`}${state.error && html`<${Failure} error=${state.error} />`}
      ${r && html`<${Section} title="Result" actions=${html`<${Badge} text=${r.outcome.status} />`}>
        ${r.outcome.ok ? html`<${Json} value=${r.outcome.value} />` : html`<p><strong>${words(r.outcome.error_type)}</strong></p><pre>${r.outcome.error_message}</pre>`}
        <p class="quiet">Examples: ${r.examples.passed} passed, ${r.examples.failed} failed, ${r.examples.skipped} skipped. ${plural(r.fixtures.same, 'earlier answer')} the same, ${r.fixtures.changed.length} changed.</p>
        ${r.fixtures.changed.length > 0 && html`<${Table} label="Changed answers" rows=${r.fixtures.changed} columns=${[{ title: 'Call', wide: true, cell: (/** @type {any} */ c) => html`<a href=${toCall(c.call_id)}>${c.call_id}</a>` },
          { title: 'Was', named: true, cell: (/** @type {any} */ c) => html`<code>${json(c.was, 50)}</code>` }, { title: 'Now', named: true, cell: (/** @type {any} */ c) => html`<code>${json(c.now, 50)}</code>` }]} />`}
      </${Section}>`}</div></div>`;
}
