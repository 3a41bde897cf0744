// Call: one call, why it ended as it did, and what can be done about it.
import { html, useEffect, useState } from '../core/html.js';
import { get, path } from '../core/api.js';
import { href } from '../core/route.js';
import { follows } from '../core/follows.js';
import { forest } from '../core/tree.js';
import { duration, fullTime, plural, source, words } from '../core/format.js';
import { Page, Section, Facts, Badge } from '../parts/page.js';
import { absent, Empty, Shown, useLoad, Failure } from '../parts/load.js';
import { Action, Curl } from '../parts/action.js';
import { Code, Json } from '../parts/value.js';
import { Files } from '../parts/files.js';
import { Result } from '../parts/result.js';
import { Table } from '../parts/table.js';
import { Judge, gaveUp } from '../parts/judge.js';
import { Attempts, Stages, useStages } from '../parts/stages.js';
import { asked, columns, erased, named, State, toMethod, toTool, toCall } from '../parts/calls.js';

/** @param {{parts: string[]}} p */
export default function Call({ parts }) {
  const id = parts[0] || '';
  const of = useLoad((signal) => get(path`/v1/calls/${id}`, {}, signal), [id]);
  const call = of.data;
  const running = call?.outcome_status === 'running';
  const stages = useStages(id, running, of.reload);
  return html`<${Page} name=${call ? named(call) : 'Call'} crumbs=${[{ href: href(['live']), text: 'Live' }, ...(call ? [{ href: toTool(call.role), text: call.role }] : [])]}
      title=${call ? html`<a href=${toMethod(call.role, call.method)}>${named(call)}</a><span class="args">(${asked(call, 60)})</span>` : 'Call'}
      actions=${call && html`${running && html`<${Action} label="Cancel" path=${path`/v1/calls/${id}/cancel`} body=${{}} scope="call" danger onDone=${of.reload} />`}
        <${Curl} method="GET" path=${path`/v1/calls/${id}`} of="Read this call" text="Copy as curl" />`}>
    ${absent(of.error) ? html`<${Empty} title="There is no such call."><p>The log no longer has it, or it belongs to somebody else.</p><p><a href=${href(['live'], { log: 1 })}>Call log</a></p></${Empty}>`
      : html`<${Shown} of=${of}>${(/** @type {any} */ c) => html`<${Whole} call=${c} running=${running} stages=${stages} reload=${of.reload} />`}</${Shown}>`}
  </${Page}>`;
}

/** @param {{call: any, running: boolean, stages: any[], reload: () => void}} p */
function Whole({ call, running, stages, reload }) {
  const why = useLoad((signal) => get(path`/v1/calls/${call.call_id}/why`, {}, signal), [call.call_id, call.outcome_status]);
  const judged = () => (reload(), why.reload());
  return html`<div class="columns"><div>
      <${Section} title="Outcome" actions=${html`<${State} of=${call} />`}><${Outcome} call=${call} running=${running} /></${Section}>
      ${!running && html`<${Judge} call=${call} onChange=${judged} />`}
      <${Section} title="Why">${html`<${Shown} of=${why}>${(/** @type {any} */ w) => html`<${Why} why=${w} onDone=${judged} />`}</${Shown}>`}</${Section}>
      <${Section} title="Stages">${running || (stages.length && !call.stages) ? html`<${Stages} of=${stages} running=${running} />` : null}${!running && html`<${Attempts} call=${call} />`}</${Section}>
    </div><div>
      <${Section} title="Facts"><${About} call=${call} /></${Section}>
      <${Section} title="Arguments">${erased(call) ? html`<p class="quiet">They were erased together with the session.</p>` : html`<${Json} label="Arguments" value=${Object.keys(call.kwargs || {}).length ? { args: call.args, kwargs: call.kwargs } : call.args} /><${Files} of=${[call.args, call.kwargs]} />`}</${Section}>
      ${call.code && html`<${Section} title="Program" actions=${html`${call.generation && html`<a href=${toMethod(call.role, call.method, { tab: 'generations', generation: call.generation })}>${call.generation}</a>`}`}><${Code} code=${call.code} /></${Section}>`}
      ${!running && html`<${Replay} call=${call} />`}
      <${Nested} call=${call} />
    </div></div>`;
}

/** @param {{call: any, running: boolean}} p */
function Outcome({ call, running }) {
  if (running) return html`<p role="status">The call is running. This page follows it.</p>`;
  if (call.outcome_status === 'error')
    return html`<pre tabindex="0" aria-label="Error message">${call.outcome_error_message}</pre>${gaveUp(call)
      ? html`<p class="quiet">The daemon gave up after several attempts. The last one failed with: ${call.outcome_error_metadata.raw_error_message}</p>`
      : call.outcome_authored && html`<p class="quiet">The program returned this error.</p>`}
      ${call.outcome_error_metadata && Object.keys(call.outcome_error_metadata).length > 0 && html`<${Json} value=${call.outcome_error_metadata} />`}`;
  if (!call.outcome || !('value' in call.outcome)) return html`<p class="quiet">The value is no longer kept. It was of type ${call.outcome_value_class}.</p>`;
  return html`<${Result} value=${call.outcome.value} name=${call.method} />`;
}

/** @param {{call: any}} p */
const About = ({ call }) => html`<${Facts} of=${[
  ['Call', html`<code>${call.call_id}</code>`],
  ['Began', html`<time datetime=${call.timestamp}>${fullTime(call.timestamp)}</time>`],
  ['Took', call.outcome_status === 'running' ? '' : duration(call.duration_ms)],
  ['Session', html`<a href=${href(['sessions', call.session_id])}>${call.session_id}</a>`],
  ['Owner', call.owner],
  ['Called by', call.parent_call_id && html`<a href=${toCall(call.parent_call_id)}>${call.parent_call_id}</a>`],
  ['Program', call.program_source && html`${source(call.program_source)} ${call.generation && html`<a href=${toMethod(call.role, call.method, { tab: 'generations', generation: call.generation })}>${call.generation}</a>`} ${call.program_doubted && html`<${Badge} text="doubted" />`}${call.program_stale && html` <${Badge} text="stale" />`}`],
  ['Runs on', call.program_engine && `${call.program_engine}, ${call.program_tier}`],
  ['Model', call.usage?.model_requests ? `${call.model}, ${plural(call.usage.model_requests, 'request')}, ${plural(call.usage.prompt_tokens + call.usage.completion_tokens, 'token')}` : ''],
  ['Contract', call.contract_source !== 'none' && `${words(call.contract_source)}${call.contract_validation_applied ? (call.contract_validation_passed ? ', held' : `, broken: ${call.contract_validation_mismatch}`) : ''}`],
  ['Weak success', (call.weak_success_reasons || []).map(words).join(', ')],
  ['Trace', html`<code>${call.trace_id}</code>`],
]} />`;

/** would says what another policy would have led to. @param {any} c */
const would = (c) => [{ forge: 'the model would have written a new program', repair: `${c.generation} would have been repaired first`, run: `${c.generation} would have run`, refuse: 'no program would have run' }[/** @type {'run'} */ (c.decision)] || words(c.decision), c.then].filter(Boolean).join(', and ');

/** @param {{why: any, onDone: () => void}} p */
function Why({ why, onDone }) {
  const flips = why.counterfactuals.filter((/** @type {any} */ c) => c.changes);
  return html`<p class="prose">${why.summary}</p>
    ${why.effects.length > 0 && html`<h3>Effects</h3><ul>${why.effects.map((/** @type {any} */ e) => html`<li>${words(e.kind)} <code>${e.target}</code> ${e.status ? html`<span class="quiet">${e.status}</span>` : null}${e.error_type && html` <span class="quiet">${words(e.error_type)}</span>`}</li>`)}</ul>`}
    ${why.checks.length > 0 && html`<h3>Checks</h3><ul class="checks">${why.checks.map((/** @type {any} */ c) => html`<li><${Badge} text=${c.result === 'none' ? 'not done' : c.result} /> <strong>${words(c.name)}</strong> <span class="quiet">${c.detail}</span></li>`)}</ul>`}
    ${why.alternatives.length > 0 && html`<h3>Not chosen</h3><ul>${why.alternatives.map((/** @type {any} */ a) => html`<li><code>${a.generation}</code> <span class="quiet">${a.why_not}</span></li>`)}</ul>`}
    ${flips.length > 0 && html`<h3>What would have changed it</h3><ul>${flips.map((/** @type {any} */ c) => html`<li><a href=${href(['policy'])}><code>${c.switch}: ${JSON.stringify(c.value)}</code></a> <span class="quiet">${would(c)}</span></li>`)}</ul>`}
    ${why.not_recorded.length > 0 && html`<p class="quiet">Not known any more: ${why.not_recorded.join('; ')}.</p>`}
    ${html`<${Next} next=${why.next} onDone=${onDone} />`}`;
}

/** Next offers what the explanation names, but for what this page has buttons for already. @param {{next: any[], onDone: () => void}} p */
function Next({ next, onDone }) {
  const left = next.filter((n) => n.method !== 'GET' && !/\/(verdict|replay|cancel)$/.test(n.path));
  if (!left.length) return null;
  return html`<h3>Next</h3><ul class="next">${left.map((n) => html`<li><${Action} label=${n.name[0].toUpperCase() + n.name.slice(1)} method=${n.method} path=${n.path} body=${n.body ?? undefined}
    headers=${n.method === 'PATCH' ? { 'Content-Type': 'application/merge-patch+json' } : undefined} scope=${/\/v1\/(calls|sessions|predict|functions)/.test(n.path) ? 'call' : 'operate'} confirm=${html`${follows(n)} <span class="quiet">This sends <code>${n.method} ${n.path}</code>.</span>`} onDone=${onDone} /></li>`)}</ul>`;
}

/** Replay runs the program again on what was recorded. @param {{call: any}} p */
function Replay({ call }) {
  const [report, setReport] = useState(/** @type {any} */ (null));
  useEffect(() => setReport(null), [call.call_id]);
  if (!call.code) return null;
  return html`<${Section} title="Replay" actions=${call.replayable && html`<${Action} label="Replay" path=${path`/v1/calls/${call.call_id}/replay`} body=${{}} scope="call" onDone=${setReport} done="Replayed." />`}>
    ${!call.replayable && html`<p class="quiet">This call cannot be replayed${call.replayable_reason ? `: ${call.replayable_reason}` : ''}.</p>`}
    ${call.replayable && !report && html`<p class="quiet">Runs the same program on the recorded input and effects. It reaches nothing external and changes nothing.</p>`}
    ${report && (report.replayable ? html`<p role="status"><${Badge} text=${report.equal ? 'equal' : 'different'} kind=${report.equal ? 'good' : 'bad'} /></p>${!report.equal && html`<p class="quiet">Recorded</p><pre>${report.recorded}</pre><p class="quiet">Replayed</p><pre>${report.replayed}</pre>`}` : html`<p class="quiet">${report.reason}</p>`)}
  </${Section}>`;
}

/** Nested shows the calls that the program made, with those of theirs. @param {{call: any}} p */
function Nested({ call }) {
  const of = useLoad((signal) => get('/v1/calls', { trace_id: call.trace_id, limit: 200, previews: true }, signal), [call.call_id, call.outcome_status]);
  if (!of.data) return of.error ? html`<${Failure} error=${of.error} />` : null;
  const tree = forest(of.data.data);
  if (tree.length < 2) return null;
  return html`<${Section} title="Delegation"><${Table} columns=${columns.slice(0, 2).concat(columns[3])} rows=${tree} label="Calls of this trace" id=${(/** @type {any} */ c) => c.call_id} /></${Section}>`;
}
