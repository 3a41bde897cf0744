// Method: its program, where that comes from, what it shall answer, and what a person can do with it.
import { html } from '../core/html.js';
import { get, path } from '../core/api.js';
import { href } from '../core/route.js';
import { ago, count, fullTime, percent, plural, returned, used, words } from '../core/format.js';
import { Page, Section, Facts, Badge, Tabs } from '../parts/page.js';
import { absent, Shown, useLoad, Empty } from '../parts/load.js';
import { Action } from '../parts/action.js';
import { Code, Json } from '../parts/value.js';
import { Table } from '../parts/table.js';
import { Listing, usePage } from '../parts/listing.js';
import { columns as calls, toMethod, toTool } from '../parts/calls.js';
import { Generations } from '../parts/generations.js';
import { Examples } from '../parts/examples.js';
import { Try } from '../parts/try.js';

/** @param {{role: string, method: string, query: Record<string, string>}} p */
export default function Method({ role, method, query }) {
  const url = path`/v1/tools/${role}/methods/${method}`;
  const of = useLoad((signal) => get(url, {}, signal), [url]);
  const tab = query.tab || 'program';
  const tabs = [['program', 'Program'], ['generations', 'Generations'], ['examples', 'Examples'], ['try', 'Try'], ['effects', 'Effects'], ['calls', 'Calls']]
    .map(([id, text]) => ({ id, text, href: toMethod(role, method, { tab: id === 'program' ? '' : id }) }));
  const m = of.data;
  if (absent(of.error)) return html`<${Page} title="${role}.${method}" crumbs=${[{ href: href(['tools']), text: 'Tools' }, { href: toTool(role), text: role }]}>
    <${Empty} title="This method has no program."><p>Nobody called it, no program for it has passed yet, or it is archived: then Audit has its undo.</p><p><a href=${href(['live'], { log: 1, role, method })}>Its calls</a></p></${Empty}>
    <${Examples} of=${{ role, method_name: method }} url=${url} /></${Page}>`;
  return html`<${Page} title="${role}.${method}" crumbs=${[{ href: href(['tools']), text: 'Tools' }, { href: toTool(role), text: role }]}
      actions=${m && html`<${Operations} of=${m} url=${url} onDone=${of.reload} />`}>
    <${Tabs} of=${tabs} at=${tab} label="Parts of the method" />
    <${Shown} of=${of}>${(/** @type {any} */ a) =>
      tab === 'generations' ? html`<${Generations} of=${a} url=${url} query=${query} onDone=${of.reload} />`
      : tab === 'examples' ? html`<${Examples} of=${a} url=${url} />`
      : tab === 'try' ? html`<${Try} of=${a} url=${url} />`
      : tab === 'effects' ? html`<${Effects} url=${url} onDone=${of.reload} />`
      : tab === 'calls' ? html`<${Calls} role=${role} method=${method} />`
      : html`<${Program} of=${a} />`}</${Shown}>
  </${Page}>`;
}

/** Operations are what a person can do with the method now. @param {{of: any, url: string, onDone: () => void}} p */
function Operations({ of, url, onDone }) {
  const act = (/** @type {string} */ label, /** @type {string} */ name, /** @type {any} */ more = {}) => html`<${Action} label=${label} path="${url}/${name}" body=${{}} scope="operate" reason onDone=${onDone} ...${more} />`;
  return html`${of.code && !of.approved && act('Approve', 'approve', { confirm: 'Agents of everybody are shown an approved method. With approval_required in the policy, programs answer only once they are approved.' })}
    ${of.quarantined && act('Release', 'release', { main: true })}
    ${of.pinned ? act('Unpin', 'unpin') : act('Pin', 'pin', { confirm: 'The current program stays, whatever fails, until it is unpinned.' })}
    ${act('Regenerate', 'regenerate', { confirm: 'At the next call the model writes a new program.' })}
    ${!of.quarantined && act('Quarantine', 'quarantine', { danger: true, confirm: 'Its program answers no calls until it is released.' })}
    <${Action} label="Archive" method="DELETE" path=${url} scope="operate" reason danger confirm="The method and its programs are archived. This can be undone until a call has a new program written." onDone=${(/** @type {any} */ reply) => { location.hash = reply?.undoes ? toMethod(of.role, of.method_name) : toTool(of.role); }} />`;
}

/** @param {{of: any}} p */
function Program({ of }) {
  const c = of.correction;
  return html`<div class="columns"><div>
      <${Section} title="Program" actions=${html`${of.current_generation && html`<a href=${toMethod(of.role, of.method_name, { tab: 'generations', generation: of.current_generation })}>${of.current_generation}</a>`}`}>
        ${of.code ? html`<${Code} code=${of.code} />` : html`<${Empty} title="There is no program yet."><p>The model writes one at the first call. Examples that you add before that have to pass.</p></${Empty}>`}</${Section}>
    </div><div>
      <${Section} title="State"><${Facts} of=${[
        ['State', html`<${Badge} text=${of.quarantined ? 'quarantined' : of.lifecycle_state} />${of.pinned ? html` <${Badge} text="pinned" />` : null}${of.doubted ? html` <${Badge} text="doubted" />` : null}${of.stale ? html` <${Badge} text="stale" />` : null}${of.approved ? html` <${Badge} text="approved" />` : null}`],
        ['Quarantined', of.quarantine_reason],
        ['Purpose', of.stale ? 'changed since this program was made; the next call asks the model' : of.purpose_checked_at && html`changed, and the program kept for it <time datetime=${of.purpose_checked_at} title=${fullTime(of.purpose_checked_at)}>${ago(of.purpose_checked_at)}</time>`],
        ['Correction', c && c.state !== 'none' && html`<${Badge} text=${c.state} /> ${c.last_error || ''} ${c.next_try_at ? `next ${ago(c.next_try_at)}` : ''}`],
        ['Calls', `${count(of.success_count)} ok, ${count(of.failure_count)} failed${returned(of)}; of the recent ones ${percent(of.recent_failure_rate)} failed`],
        ['Last failure', of.last_failure_reason && html`${of.last_failure_class && html`<span class="quiet">${of.last_failure_class}: </span>`}${of.last_failure_reason}`],
        ['Reuse', of.cacheable ? 'answers later calls without the model' : `no: ${words(of.cacheability_reason)}`],
        ['Compiled', of.native && !['idle', 'off'].includes(of.native.state) && html`${of.native.state}${of.native.checks ? `, ${of.native.checked} of ${of.native.checks} calls reproduced` : ''}${of.native.why ? `: ${of.native.why}` : ''}`],
        ['Made', html`<time datetime=${of.created_at} title=${fullTime(of.created_at)}>${ago(of.created_at)}</time>, by ${of.model || 'a person'}`],
        ['Agents', of.shown_to === 'owner' ? 'shown to those of its owner, until its program is approved or a person registers the role' : 'shown to everybody\'s'],
        ['Last used', used(of.last_used_at)],
        ['Repairs', of.repair_count_since_regen > 0 && plural(of.repair_count_since_regen, 'repair') + ' since it was last written from scratch'],
      ]} /></${Section}>
      <${Section} title="Interface">${of.interface ? html`<${Interface} of=${of.interface} />` : html`<p class="quiet">Its parameters are not known.</p>`}</${Section}>
      ${of.rejections?.length > 0 && html`<${Section} title="Discarded candidates" note="Programs that were written and did not pass."><ul>${of.rejections.slice(-5).reverse().map((/** @type {any} */ r) => html`<li><strong>${words(r.stage)}</strong> <span class="quiet">${ago(r.at)}, ${r.trigger}</span><br />${r.reason}</li>`)}</ul></${Section}>`}
    </div></div>`;
}

/** plainly says whether a schema is no more than a type. @param {any} schema */
const plainly = (schema) => typeof schema.type === 'string' && Object.keys(schema).every((k) => k === 'type' || k === 'description');

/** kind names what a schema takes, in a word or two. @param {any} schema @returns {string} */
const kind = (schema) => {
  if (schema.enum?.length > 0 && schema.enum.length <= 6) return schema.enum.map((/** @type {any} */ v) => JSON.stringify(v)).join(', ');
  if (Array.isArray(schema.type)) return schema.type.join(' or ');
  return schema.type === 'array' && typeof schema.items?.type === 'string' ? `${schema.items.type}[]` : schema.type || 'any';
};

/** @param {{of: any}} p */
const Interface = ({ of }) => html`${of.summary && html`<p>${of.summary}</p>`}
  ${of.parameters?.length > 0 ? html`<${Table} label="Parameters" rows=${of.parameters} columns=${[
    { title: 'Parameter', cell: (/** @type {any} */ p) => html`<code>${p.name}</code>${p.variadic ? ' …' : ''}` },
    { title: 'Type', cell: (/** @type {any} */ p) => kind(p.schema || p) },
    { title: 'Needed', cell: (/** @type {any} */ p) => (p.required ? 'required' : html`<span class="quiet">${'default' in p ? JSON.stringify(p.default) : 'optional'}</span>`) },
    ...(of.parameters.some((/** @type {any} */ p) => p.description) ? [{ title: 'Meaning', wide: true, cell: (/** @type {any} */ p) => p.description || '' }] : [])]} />` : !of.open && html`<p class="quiet">It takes no parameters.</p>`}
  ${of.open && html`<p class="quiet">It takes ${of.parameters?.length > 0 ? 'other arguments, too' : 'any arguments'}: its program does not name them.</p>`}
  ${of.returns && (plainly(of.returns) ? html`<p>Returns <code>${of.returns.type}</code>${of.returns.description ? `: ${of.returns.description}` : ''}</p>` : html`<h3>Returns</h3><${Json} value=${of.returns} lines=${12} />`)}
  <p class="quiet">${of.origin === 'declared' ? 'Who wrote the program declared this interface.' : 'This interface is inferred from the program.'}</p>`;

/** @param {{url: string, onDone: () => void}} p */
function Effects({ url, onDone }) {
  const of = useLoad((signal) => get(`${url}/effects`, {}, signal), [url]);
  const reached = (/** @type {any} */ e) => ['hosts', 'methods', 'tools', 'files'].filter((k) => e?.[k]?.length).map((k) => html`<div><span class="quiet">${k}</span> ${e[k].join(', ')}</div>`);
  return html`<${Shown} of=${of}>${(/** @type {any} */ e) => {
    const current = e.generations.find((/** @type {any} */ g) => g.current);
    const lacks = current && reached(current.lacks).length > 0;
    const join = (/** @type {string} */ k) => [...new Set([...(e[k] || []), ...(current?.lacks[k] || [])])];
    return html`<${Section} title="Manifest" note=${e.policy === 'enforce' ? 'What the method may touch. The policy denies everything else.' : 'What the method touches. The policy only observes: anything else is counted and logged.'}
        actions=${lacks && html`<${Action} label="Allow what it lacks" method="PUT" path="${url}/effects" body=${{ hosts: join('hosts'), methods: join('methods'), tools: join('tools'), files: join('files') }} scope="operate" reason main onDone=${() => (of.reload(), onDone())} />`}>
        ${reached(e).length ? reached(e) : html`<p class="quiet">${e.origin === 'none' ? 'No call has been observed yet.' : 'Nothing external, and no other tool.'}</p>`}
        ${e.origin === 'approved' && html`<p class="quiet">Approved by ${e.approved_by}, ${ago(e.approved_at)}.</p>`}
      </${Section}>
      <${Table} label="What each generation reached" rows=${e.generations} columns=${[
        { title: 'Generation', cell: (/** @type {any} */ g) => html`${g.id} ${g.current ? html`<${Badge} text="current" kind="info" />` : null}` },
        { title: 'Reached', wide: true, named: true, cell: (/** @type {any} */ g) => { const all = reached(g.did); return all.length ? all : html`<span class="quiet">nothing</span>`; } },
        { title: 'Not in the manifest', named: true, cell: (/** @type {any} */ g) => { const all = reached(g.lacks); return all.length ? all : html`<span class="quiet">nothing</span>`; } },
        { title: 'New hosts', named: true, cell: (/** @type {any} */ g) => g.new_hosts.join(', ') }]} />`;
  }}</${Shown}>`;
}

/** @param {{role: string, method: string}} p */
function Calls({ role, method }) {
  const of = usePage('/v1/calls', { role, method, previews: true });
  return html`<${Listing} of=${of} columns=${calls} label="Calls" id=${(/** @type {any} */ c) => c.call_id} empty=${html`<${Empty} title="The log has no call of this method." />`} />`;
}
