// Tools: all of them, one of them, and its methods.
import { html } from '../core/html.js';
import { get, path } from '../core/api.js';
import { href, setQuery } from '../core/route.js';
import { ago, count, money, percent, plural, used, words } from '../core/format.js';
import { can } from '../core/session.js';
import { Page, Section, Facts, Badge } from '../parts/page.js';
import { absent, Shown, useLoad, Empty } from '../parts/load.js';
import { Table } from '../parts/table.js';
import { Listing, usePage } from '../parts/listing.js';
import { Search } from '../parts/search.js';
import { Action } from '../parts/action.js';
import { Json } from '../parts/value.js';
import { toMethod, toTool } from '../parts/calls.js';
import Method from './method.js';

/** @param {{parts: string[], query: Record<string, string>}} p */
export default function Tools({ parts, query }) {
  if (parts.length >= 2) return html`<${Method} role=${parts[0]} method=${parts[1]} query=${query} />`;
  return parts.length ? html`<${Tool} role=${parts[0]} />` : html`<${All} query=${query} />`;
}

/** health says how a tool's programs do, the worst first. @param {any} h */
const health = (h) => !h ? '' : html`${h.quarantined > 0 && html`<${Badge} text="${h.quarantined} quarantined" kind="bad" /> `}${h.degraded > 0 && html`<${Badge} text="${h.degraded} degraded" kind="bad" /> `}
  ${h.doubted > 0 && html`<${Badge} text="${h.doubted} doubted" kind="warn" /> `}${h.stale > 0 && html`<${Badge} text="${h.stale} stale" kind="warn" /> `}${!h.quarantined && !h.degraded && !h.doubted && !h.stale && h.methods > 0 ? html`<${Badge} text="healthy" kind="good" />` : null}`;

/** @param {string | undefined} currency of the costs, where they are known */
const columns = (currency) => [
  { title: 'Tool', wide: true, cell: (/** @type {any} */ t) => html`<a href=${toTool(t.role)}>${t.role}</a>${t.purpose && html` <span class="quiet">${t.purpose}</span>`}` },
  { title: 'Health', cell: (/** @type {any} */ t) => health(t.health) },
  { title: 'Recent failures', num: true, cell: (/** @type {any} */ t) => (t.health ? percent(t.health.recent_failure_rate) : '–') },
  { title: 'Last failure', named: true, cell: (/** @type {any} */ t) => t.health?.last_failure ? html`<span title=${t.health.last_failure.reason || ''}>${t.health.last_failure.method}, ${t.health.last_failure.class}${t.health.last_failure.at ? html` <span class="quiet">${ago(t.health.last_failure.at)}</span>` : null}</span>` : html`<span class="quiet">none</span>` },
  { title: 'Uses', num: true, cell: (/** @type {any} */ t) => count(t.usage_count) },
  ...(can('operate') ? [
    { title: currency ? `Cost in ${currency}, 30 days` : 'Cost, 30 days', num: true, cell: (/** @type {any} */ t) => (t.usage ? (t.usage.cost !== null ? money(t.usage.cost) : `${count(t.usage.prompt_tokens + t.usage.completion_tokens)} tokens`) : '–') },
    { title: 'Saved', num: true, cell: (/** @type {any} */ t) => (t.usage?.saved_requests != null ? plural(t.usage.saved_requests, 'request') : '–') },
  ] : []),
  { title: 'Last used', num: true, minor: true, cell: (/** @type {any} */ t) => used(t.last_used_at) },
];

/** @param {{query: Record<string, string>}} p */
function All({ query }) {
  const of = usePage('/v1/tools', { q: query.q, sort: query.sort });
  const priced = !!of.data?.data.some((/** @type {any} */ t) => t.usage && t.usage.cost !== null);
  const prices = useLoad((signal) => (priced ? get('/v1/usage', { by: 'day', limit: 1 }, signal) : Promise.resolve(null)), [priced]); // they name their currency
  const sorts = [['name', 'name'], ['used', 'most used'], ['failed', 'failing first'], ...(can('operate') ? [['cost', 'most expensive']] : [])];
  return html`<${Page} title="Tools">
    <form class="filters" role="search" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
      <label>Search<${Search} data-search value=${query.q || ''} placeholder="role, method or purpose" onEnter=${(/** @type {string} */ q) => setQuery({ q })} /></label>
      <label>Order<select onChange=${(/** @type {any} */ e) => setQuery({ sort: e.target.value })}>${sorts.map(([v, text]) => html`<option value=${v} selected=${(query.sort || 'name') === v}>${text}</option>`)}</select></label>
    </form>
    <${Listing} of=${of} columns=${columns(prices.data?.currency)} label="Tools" id=${(/** @type {any} */ t) => t.role} filtered=${!!query.q}
      empty=${html`<${Empty} title="No tools yet."><p>The first call of a method makes its tool.</p>${can('call') && html`<p><a href="#/sessions/new">Make a call</a></p>`}</${Empty}>`} />
  </${Page}>`;
}

/** @param {{role: string}} p */
function Tool({ role }) {
  const of = useLoad((signal) => get(path`/v1/tools/${role}`, {}, signal), [role]);
  const list = usePage(path`/v1/tools/${role}/methods`, {});
  const patterns = useLoad((signal) => get(path`/v1/patterns/${role}`, {}, signal), [role]);
  const rows = [
    { title: 'Method', wide: true, cell: (/** @type {any} */ m) => html`<a href=${toMethod(role, m.method_name)}>${m.method_name}</a>` },
    { title: 'State', cell: (/** @type {any} */ m) => html`<${Badge} text=${m.quarantined ? 'quarantined' : m.lifecycle_state} />${m.pinned && html` <${Badge} text="pinned" />`}` },
    { title: 'Program', minor: true, cell: (/** @type {any} */ m) => m.current_generation || html`<span class="quiet">none</span>` },
    { title: 'Calls ok', num: true, cell: (/** @type {any} */ m) => count(m.success_count) },
    { title: 'Failed', num: true, cell: (/** @type {any} */ m) => count(m.failure_count) },
    { title: 'Returned an error', num: true, cell: (/** @type {any} */ m) => html`<span title="The program answered with an error of its own, such as invalid_input">${count(m.authored_error_count)}</span>` },
    { title: 'Recent failures', num: true, minor: true, cell: (/** @type {any} */ m) => percent(m.recent_failure_rate) },
    { title: 'Last used', num: true, minor: true, cell: (/** @type {any} */ m) => used(m.last_used_at) },
  ];
  if (absent(of.error) && !list.data?.data?.length) return html`<${Page} title=${role} crumbs=${[{ href: href(['tools']), text: 'Tools' }]}>
    <${Empty} title="There is no tool of this name."><p>Nobody called it, no program of it has passed yet, or it is archived: then Audit has its undo.</p><p><a href=${href(['live'], { log: 1, role })}>Its calls</a></p></${Empty}></${Page}>`;
  return html`<${Page} title=${role} crumbs=${[{ href: href(['tools']), text: 'Tools' }]}
      actions=${html`<a class="button" href=${href(['live'], { role })}>Calls</a><${Action} label="Archive" method="DELETE" path=${path`/v1/tools/${role}`} scope="operate" reason danger
        confirm="The tool, its methods and their programs are archived. This can be undone until a call has a new program written." onDone=${(/** @type {any} */ reply) => { location.hash = reply?.undoes ? toTool(role) : href(['tools']); }} />`}>
    <${Listing} of=${list} columns=${rows} label="Methods" id=${(/** @type {any} */ m) => m.method_name} empty=${html`<${Empty} title="No method has a program."><p>The model writes one at the first call of a method.</p></${Empty}>`} />
    <${Shown} of=${of}>${(/** @type {any} */ t) => html`<${Contract} tool=${t} />`}</${Shown}>
    ${patterns.data?.patterns?.length > 0 && html`<${Section} title="Patterns" note="What its programs do repeatedly."><${Table} label="Patterns" rows=${patterns.data.patterns} columns=${[
      { title: 'Capability', wide: true, cell: (/** @type {any} */ p) => words(p.capability) }, { title: 'Seen', num: true, cell: (/** @type {any} */ p) => `${count(p.count)} of ${count(p.window)}` }, { title: 'Last', num: true, cell: (/** @type {any} */ p) => ago(p.last_seen) }]} /></${Section}>`}
  </${Page}>`;
}

/** @param {{tool: any}} p */
function Contract({ tool }) {
  const own = Object.keys(tool.methods || {}).length;
  if (!tool.purpose && !tool.deliverable && !own) return html`<p class="quiet">This tool has no contract. <code>recurgentd tools put ${tool.role}</code> registers one.</p>`;
  return html`<${Section} title="Contract" note=${tool.by_person ? 'Registered by a person.' : 'Registered by programs.'}>
    <${Facts} of=${[['Purpose', tool.purpose]]} />
    ${tool.deliverable && html`<h3>Deliverable</h3><${Json} value=${tool.deliverable} />`}
    ${tool.acceptance && html`<h3>Acceptance</h3><${Json} value=${tool.acceptance} />`}
    ${own > 0 && html`<h3>${plural(own, 'method')} with a contract of its own</h3><${Json} value=${tool.methods} />`}
  </${Section}>`;
}
