// Inbox: what waits for a person's decision.
import { html, useState } from '../core/html.js';
import { get, path } from '../core/api.js';
import { setQuery } from '../core/route.js';
import { can } from '../core/session.js';
import { ago, args, fullTime, json, percent, words } from '../core/format.js';
import { Page, Badge, Facts } from '../parts/page.js';
import { Empty, Failure, Shown, useLoad } from '../parts/load.js';
import { Pager, usePage } from '../parts/listing.js';
import { href } from '../core/route.js';
import { Action } from '../parts/action.js';
import { Approve, approves } from '../parts/approve.js';
import { follows } from '../core/follows.js';
import { Code } from '../parts/value.js';
import { asked, erased, toCall, toMethod } from '../parts/calls.js';

const kinds = [['approval', 'approvals'], ['correction', 'corrections'], ['proposal', 'proposals'], ['recommendation', 'recommendations'], ['effects', 'effects']];

/** @param {{query: Record<string, string>}} p */
export default function Inbox({ query }) {
  const of = usePage('/v1/inbox', { kind: query.kind }, 20);
  const data = of.data;
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  const many = /** @type {any[]} */ ((data?.data || []).filter(approvable));
  const selected = many.filter((e) => chosen.has(e.id));
  const choose = (/** @type {any[]} */ list, /** @type {boolean} */ on) => setChosen((s) => new Set(on ? [...s, ...list.map((e) => e.id)] : [...s].filter((id) => !list.some((e) => e.id === id))));
  return html`<${Page} title="Inbox" note="What waits for a decision. An entry goes away by itself once it is decided.">
    <form class="filters" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}><label>Kind<select data-search onChange=${(/** @type {any} */ e) => setQuery({ kind: e.target.value })}>${[['', 'all'], ...kinds].map(([v, text]) => html`<option value=${v} selected=${(query.kind || '') === v}>${text}</option>`)}</select></label></form>
    ${of.error && html`<${Failure} error=${of.error} retry=${of.reload} />`}
    ${!data && of.loading && html`<p class="quiet" role="status">Loading …</p>`}
    ${(many.length > 1 || chosen.size > 0) && html`<div class="buttons"><label class="check"><input type="checkbox" checked=${many.length > 0 && selected.length === many.length} onChange=${(/** @type {any} */ e) => choose(many, e.target.checked)} />Select ${many.length === 1 ? 'the approval' : `the ${many.length} approvals`} of this page</label>
      <${Approve} label=${`Approve ${selected.length || 'selected'}`} of=${selected.map((e) => approves({ role: e.role, method: e.method, generation: e.evidence.generation }))} onDone=${of.reload} onEnd=${() => setChosen(new Set())} /></div>`}
    ${data && (data.data.length ? html`<ul class="entries">${data.data.map((/** @type {any} */ e) => html`<${Entry} key=${e.id} of=${e} onDone=${of.reload} chosen=${many.length > 1 && approvable(e) ? chosen.has(e.id) : undefined} onChoose=${(/** @type {boolean} */ on) => choose([e], on)} />`)}</ul>`
      : html`<${Empty} title=${query.kind ? 'Nothing of this kind waits.' : 'Nothing waits for a decision.'}><p>Programs that wait for approval, corrections that failed, proposals, recommendations and new effects show here.</p></${Empty}>`)}
    ${(data || of.error) && html`<${Pager} next=${data?.next_cursor} />`}
  </${Page}>`;
}

/** approvable says whether a program waits that whoever looks may approve. @param {any} e */
const approvable = (e) => e.kind === 'approval' && e.operations.some((/** @type {any} */ o) => /\/approve$/.test(o.path) && can(o.scopes.join(' ')));

/** @param {{of: any, onDone: () => void, chosen?: boolean, onChoose: (on: boolean) => void}} p */
const Entry = ({ of, onDone, chosen, onChoose }) => html`<li class="card" data-row tabindex="0">
  <div class="headline"><h2>${chosen !== undefined && html`<input type="checkbox" aria-label="Select ${of.role}.${of.method}" checked=${chosen} onChange=${(/** @type {any} */ e) => onChoose(e.target.checked)} /> `}<${Badge} text=${of.kind} kind="info" /> <a href=${of.method ? toMethod(of.role, of.method) : href(['tools', of.role])}>${of.role}${of.method ? `.${of.method}` : ''}</a></h2><span class="quiet" title=${fullTime(of.since)}>${ago(of.since)}</span></div>
  <p class="prose">${of.summary.charAt(0).toUpperCase() + of.summary.slice(1)}.</p>
  <${Evidence} of=${of} />
  ${(of.kind === 'approval' || of.kind === 'effects') && html`<${Program} of=${of} />`}
  <div class="buttons">${of.operations.map((/** @type {any} */ o, /** @type {number} */ i) => html`<${Action} label=${o.name[0].toUpperCase() + o.name.slice(1)} method=${o.method} path=${o.path} body=${o.body ?? undefined} scope=${o.scopes.join(' ')} main=${!i} danger=${i > 0 && /quarantine|archive|reject/.test(`${o.path} ${o.name}`)}
      confirm=${html`${follows(o)} <span class="quiet">This sends <code>${o.method} ${o.path}</code>.</span>`} onDone=${onDone} />`)}
    ${!can(of.operations[0].scopes.join(' ')) && html`<span class="quiet">Deciding needs the ${of.operations[0].scopes.length > 1 ? 'scopes' : 'scope'} ${of.operations[0].scopes.join(' and ')}.</span>`}</div>
</li>`;

/** Program shows the code that waits, when it is asked for. @param {{of: any}} p */
function Program({ of }) {
  const [open, setOpen] = useState(false);
  return html`<details open=${open} onToggle=${(/** @type {any} */ e) => setOpen(e.currentTarget.open)}><summary>Code of ${of.evidence.generation}</summary>${open && html`<${Source} of=${of} />`}</details>`;
}

/** @param {{of: any}} p */
function Source({ of }) {
  const it = useLoad((signal) => get(path`/v1/tools/${of.role}/methods/${of.method}`, {}, signal), [of.id]);
  return html`<${Shown} of=${it}>${(/** @type {any} */ a) => {
    const g = a.history?.find((/** @type {any} */ g) => g.id === of.evidence.generation);
    return g ? html`<${Code} code=${g.code} />` : html`<p class="quiet">It is not kept any more.</p>`;
  }}</${Shown}>`;
}

/** LastCall shows a call of a method of whose arguments nothing is known. @param {{of: any}} p */
function LastCall({ of }) {
  const it = useLoad((signal) => get('/v1/calls', { role: of.role, method: of.method, limit: 1 }, signal), [of.id]);
  const last = it.data?.data[0];
  return html` <span class="quiet">any arguments${last && !erased(last) ? html`, last <a href=${toCall(last.call_id)}>${of.method}(${asked(last, 60)})</a>` : null}</span>`;
}

/** @param {{of: any}} p */
function Evidence({ of }) {
  const e = of.evidence;
  const verdicts = e.wrong || (e.verdict ? [e.verdict] : []);
  const beyond = e.beyond ? ['hosts', 'methods', 'tools', 'files'].filter((k) => e.beyond[k]?.length).map((k) => `${k}: ${e.beyond[k].join(', ')}`).join('; ') : '';
  const hosts = e.named_hosts && [...new Set([...(e.did?.hosts || []), ...e.named_hosts])].join(', ');
  return html`<${Facts} of=${[
      ['What it does', e.trigger !== undefined && e.summary],
      ['Called as', e.signature && html`<code>${e.signature}</code>${/\(\.{3}\)( -> .*)?$/.test(e.signature) && html`<${LastCall} of=${of} />`}`],
      ['Program', e.generation && html`<a href=${toMethod(of.role, of.method, { tab: 'generations', generation: e.generation })}>${e.generation}</a>${e.parent ? html` <span class="quiet">after ${e.parent}</span>` : null}${e.trigger ? html` <span class="quiet">${words(e.trigger)}</span>` : null}`],
      ['Answers now', e.answers_now],
      ['Changed', e.changed_answers > 0 && `${e.changed_answers} earlier answers`],
      ['State', e.trigger !== undefined && e.lifecycle_state && html`<${Badge} text=${e.lifecycle_state} />`],
      ['Hosts', e.trigger !== undefined && (hosts || 'none')],
      ['New hosts', e.new_hosts?.join(', ')],
      ['Not approved', beyond],
      ['Correction', e.correction && e.correction.state !== 'none' && html`<${Badge} text=${e.correction.state} /> ${e.correction.last_error || ''}`],
      ['Example', e.example && html`<code>(${args(e.example.args, e.example.kwargs, 80)})</code> expects <code>${json(e.example.expect, 80)}</code>${e.example.by ? ` by ${e.example.by}` : ''}`],
      ['Contract', e.contract && html`<code>${json(e.contract.proposed.deliverable, 200)}</code>${e.contract.proposed.purpose ? html` <span class="quiet">“${e.contract.proposed.purpose}”</span>` : null} by a call of ${e.contract.owner}`],
      ['Instead of', e.contract && html`<code>${json(e.contract.kept.deliverable ?? null, 200)}</code>${e.contract.kept.purpose ? html` <span class="quiet">“${e.contract.kept.purpose}”</span>` : null}${e.contract.by_person ? ', a person’s' : ''}`],
      ['Reason', of.kind === 'recommendation' && e.reason],
      ['Proposal', e.proposal && html`${words(e.proposal.action || e.proposal.constraint)} <code>${json(e.proposal.value ?? e.proposal.deliverable, 120)}</code>`],
      ['Would fail', e.simulation && `${e.simulation.would_fail} of ${e.simulation.checked} checked calls`],
      ['Score', e.score !== undefined && percent(e.score)],
      ['Calls', Array.isArray(e.evidence) && e.evidence.length > 0 && e.evidence.slice(0, 5).map((/** @type {string} */ id) => html`<a href=${toCall(id)}>${id}</a> `)],
    ]} />
    ${verdicts.length > 0 && html`<ul>${verdicts.slice(0, 5).map((/** @type {any} */ v) => html`<li><a href=${toCall(v.call_id)}>${of.method}(${args(v.args, v.kwargs, 60)})</a> answered <code>${v.got_error_type || json(v.got, 60)}</code>${'expected' in v ? html`, expected <code>${json(v.expected, 60)}</code>` : null}${v.note ? html` <span class="quiet">“${v.note}”</span>` : null}</li>`)}</ul>`}`;
}
