// Inbox: what waits for a person's decision.
import { html } from '../core/html.js';
import { setQuery } from '../core/route.js';
import { can } from '../core/session.js';
import { ago, args, fullTime, json, percent, words } from '../core/format.js';
import { Page, Badge, Facts } from '../parts/page.js';
import { Empty, Failure } from '../parts/load.js';
import { Pager, usePage } from '../parts/listing.js';
import { href } from '../core/route.js';
import { Action } from '../parts/action.js';
import { toCall, toMethod } from '../parts/calls.js';

const kinds = [['approval', 'approvals'], ['correction', 'corrections'], ['proposal', 'proposals'], ['recommendation', 'recommendations'], ['effects', 'effects']];

/** @param {{query: Record<string, string>}} p */
export default function Inbox({ query }) {
  const of = usePage('/v1/inbox', { kind: query.kind }, 20);
  const data = of.data;
  return html`<${Page} title="Inbox" note="What waits for a decision. An entry goes away by itself once it is decided.">
    <form class="filters" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}><label>Kind<select data-search onChange=${(/** @type {any} */ e) => setQuery({ kind: e.target.value })}>${[['', 'all'], ...kinds].map(([v, text]) => html`<option value=${v} selected=${(query.kind || '') === v}>${text}</option>`)}</select></label></form>
    ${of.error && html`<${Failure} error=${of.error} retry=${of.reload} />`}
    ${!data && of.loading && html`<p class="quiet" role="status">Loading …</p>`}
    ${data && (data.data.length ? html`<ul class="entries">${data.data.map((/** @type {any} */ e) => html`<${Entry} key=${e.id} of=${e} onDone=${of.reload} />`)}</ul>`
      : html`<${Empty} title=${query.kind ? 'Nothing of this kind waits.' : 'Nothing waits for a decision.'}><p>Programs that wait for approval, corrections that failed, proposals, recommendations and new effects show here.</p></${Empty}>`)}
    ${(data || of.error) && html`<${Pager} next=${data?.next_cursor} />`}
  </${Page}>`;
}

/** @param {{of: any, onDone: () => void}} p */
const Entry = ({ of, onDone }) => html`<li class="card" data-row tabindex="0">
  <div class="headline"><h2><${Badge} text=${of.kind} kind="info" /> <a href=${of.method ? toMethod(of.role, of.method) : href(['tools', of.role])}>${of.role}${of.method ? `.${of.method}` : ''}</a></h2><span class="quiet" title=${fullTime(of.since)}>${ago(of.since)}</span></div>
  <p class="prose">${of.summary.charAt(0).toUpperCase() + of.summary.slice(1)}.</p>
  <${Evidence} of=${of} />
  <div class="buttons">${of.operations.map((/** @type {any} */ o, /** @type {number} */ i) => html`<${Action} label=${o.name[0].toUpperCase() + o.name.slice(1)} method=${o.method} path=${o.path} body=${o.body ?? undefined} scope=${o.scopes.join(' ')} main=${!i} danger=${i > 0 && /quarantine|archive|reject/.test(`${o.path} ${o.name}`)}
      confirm=${html`This sends <code>${o.method} ${o.path}</code>.`} onDone=${onDone} />`)}
    ${!can(of.operations[0].scopes.join(' ')) && html`<span class="quiet">Deciding needs the ${of.operations[0].scopes.length > 1 ? 'scopes' : 'scope'} ${of.operations[0].scopes.join(' and ')}.</span>`}</div>
</li>`;

/** @param {{of: any}} p */
function Evidence({ of }) {
  const e = of.evidence;
  const verdicts = e.wrong || (e.verdict ? [e.verdict] : []);
  const beyond = e.beyond ? ['hosts', 'methods', 'tools', 'files'].filter((k) => e.beyond[k]?.length).map((k) => `${k}: ${e.beyond[k].join(', ')}`).join('; ') : '';
  return html`<${Facts} of=${[
      ['Program', e.generation && html`<a href=${toMethod(of.role, of.method, { tab: 'generations', generation: e.generation })}>${e.generation}</a>${e.parent ? html` <span class="quiet">after ${e.parent}</span>` : null}${e.trigger ? html` <span class="quiet">${words(e.trigger)}</span>` : null}`],
      ['Answers now', e.answers_now],
      ['Changed', e.changed_answers > 0 && `${e.changed_answers} earlier answers`],
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
