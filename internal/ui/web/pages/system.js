// System: the daemon itself.
import { html, useState } from '../core/html.js';
import { exchange, get, Problem, withQuery } from '../core/api.js';
import { href, setQuery } from '../core/route.js';
import { can, who } from '../core/session.js';
import { ago, bytes, count, plural, source, words } from '../core/format.js';
import { Page, Section, Facts, Badge } from '../parts/page.js';
import { Shown, useLoad } from '../parts/load.js';
import { Table } from '../parts/table.js';
import { Action } from '../parts/action.js';

/** optional is what a route answers, null where the daemon has none. @param {string} path @param {AbortSignal} signal */
const optional = (path, signal) => get(path, {}, signal).catch((e) => {
  if (e instanceof Problem && [403, 404].includes(e.status)) return null;
  throw e;
});

/** @param {{query: Record<string, string>}} p */
export default function System({ query }) {
  const asked = { replica: query.replica };
  const of = useLoad((signal) => exchange('GET', '/v1/version', { query: asked, signal }).then(({ body, headers }) => ({ ...body, replica: headers.get('Recurgent-Replica') })), [query.replica]);
  const ready = useLoad(async (signal) => (query.replica ? undefined : (await fetch('/readyz', { signal })).ok), [query.replica]);
  const replicas = useLoad((signal) => (can('operate') ? optional('/v1/replicas', signal) : Promise.resolve(null)), []);
  const now = useLoad((signal) => (can('admin') ? optional(withQuery('/v1/system', asked), signal) : Promise.resolve(null)), [query.replica]);
  const trends = useLoad((signal) => get('/v1/reports/trends', { window: '24h' }, signal), []);
  const several = replicas.data?.data.length > 1;
  const answers = of.data?.replica;
  const isReady = now.data ? now.data.ready : ready.data;
  return html`<${Page} title="System" actions=${html`<a class="button" href="/docs">REST reference</a>`} note=${answers && `Replica ${answers} answers: version, sandbox and figures are its own. Calls of the last 24 hours are those of all replicas.`}>
    ${several && html`<form class="filters" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}><label>Replica<select data-search onChange=${(/** @type {any} */ e) => setQuery({ replica: e.target.value })}>
      <option value="">whichever answers</option>${replicas.data.data.map((/** @type {any} */ r) => html`<option value=${r.id} selected=${r.id === query.replica}>${r.id}${r.address ? `, ${r.address}` : ''}</option>`)}</select></label></form>`}
    <${Shown} of=${of}>${(/** @type {any} */ v) => html`<div class="columns"><div>
        <${Section} title="Daemon" actions=${isReady !== undefined && html`<${Badge} text=${isReady ? 'ready' : 'not ready'} kind=${isReady ? 'good' : 'bad'} />`}><${Facts} of=${[
          ['Version', `${v.version}${v.revision ? `, ${v.revision.slice(0, 12)}` : ''}`], ['Go', v.go_version], ['Engine', v.engine], ['Tier', v.tier],
          ['Compiled', v.native && `${v.native.state}${v.native.toolchain ? `, by ${v.native.toolchain}` : ''}${v.native.why ? `: ${v.native.why}` : ''}`],
          ['You', who.value && `${who.value.name} in ${who.value.namespace}: ${who.value.scopes.join(', ')}`],
        ]} /></${Section}>
        ${now.data && html`<${Now} of=${now.data} />`}
        ${replicas.data?.data.length > 0 && html`<${Section} title="Replicas"><${Table} label="Replicas" rows=${replicas.data.data} columns=${[
          { title: 'Replica', wide: true, cell: (/** @type {any} */ r) => html`<a href=${href(['system'], { replica: r.id })}>${r.id}</a> <span class="quiet">${r.address}</span>${r.id === answers && html` <${Badge} text="shown" kind="info" />`}` }, { title: 'Version', minor: true, cell: (/** @type {any} */ r) => r.version },
          { title: 'Started', num: true, minor: true, cell: (/** @type {any} */ r) => ago(r.started_at) }, { title: 'Sessions', num: true, cell: (/** @type {any} */ r) => count(r.sessions_owned) }, { title: 'Calls', num: true, cell: (/** @type {any} */ r) => count(r.calls_in_flight) }]} /></${Section}>`}
        <${Section} title="Last 24 hours"><${Shown} of=${trends}>${(/** @type {any} */ t) => html`<${Facts} of=${[
          ['Calls', count(t.total.calls)], ['Errors', count(t.total.errors)], ['Weak successes', count(t.total.weak_successes)], ['Corrections', count(t.total.corrections)],
          ['Programs', tally(t.total.program_source, source)], ['Error types', tally(t.total.error_type)], ['Tools', `${count(t.known_tools.tools)}, ${plural(t.known_tools.new, 'new one')}`]]} />`}</${Shown}></${Section}>
      </div><div>
        <${Model} version=${v} status=${now.data?.model} onChecked=${now.reload} />
        <${Section} title="Store"><${Facts} of=${[['Kind', v.store], ['Durability', v.durability], ['Schema', count(v.toolstore_schema_version)]]} /></${Section}>
        <${Section} title="Sandbox" actions=${html`<${Badge} text=${v.sandbox.level} kind=${v.sandbox.level === 'full' ? 'good' : 'warn'} />`} note="What confines programs. Tested at every start.">
          <${Table} label="Layers" rows=${Object.entries(v.sandbox.layers || {})} columns=${[{ title: 'Layer', wide: true, cell: (/** @type {any} */ l) => words(l[0]) }, { title: 'State', cell: (/** @type {any} */ l) => html`<${Badge} text=${l[1].split(' ')[0]} kind=${v.sandbox.level === 'full' && l[1].startsWith('off') ? 'plain' : undefined} /> <span class="quiet">${l[1].split(' ').slice(1).join(' ')}</span>` }]} />
          <details><summary>${plural(Object.keys(v.sandbox.probes || {}).length, 'probe')}, ${plural(Object.values(v.sandbox.probes || {}).filter((p) => String(p).startsWith('denied')).length, 'denial')}</summary>
            <${Table} label="Probes" rows=${Object.entries(v.sandbox.probes || {})} columns=${[{ title: 'Probe', wide: true, cell: (/** @type {any} */ p) => p[0] }, { title: 'Result', cell: (/** @type {any} */ p) => p[1] }]} /></details>
        </${Section}>
      </div></div>`}</${Shown}>
  </${Page}>`;
}

/** Now is what the daemon does, all namespaces together. @param {{of: any}} p */
const Now = ({ of }) => html`<${Section} title="Now" note="Counts are since the daemon's start, ${ago(of.started_at)}."><${Facts} of=${[
  ['Calls', `${count(of.calls.running)} running, ${count(of.calls.waiting)} waiting`],
  ['Runners', `${count(of.runners.busy)} busy, ${count(of.runners.warm)} warm (${bytes(of.runners.warm_bytes)}), ${count(of.runners.idle)} idle, ${count(of.runners.started)} started`],
  ['Ended', tally(of.runners.ended)],
  ['Engine failures', count(of.runners.engine_failures)],
  ['Compiled', tally(of.native)],
  ['Model', tally(of.provider) || 'not asked yet'],
  ['Store', `${plural(of.store.sessions, 'session')}, ${plural(of.store.tools, 'tool')}, programs: ${tally(of.store.programs) || 'none'}`],
  ['Journal', `${bytes(of.store.journal_bytes)}, ${plural(of.store.commits, 'commit')}, ${plural(of.store.fsyncs, 'fsync')}, ${count(of.store.checkpoint_lag_entries)} behind`],
  ['Corrupt files', of.store.quarantined_files > 0 && count(of.store.quarantined_files)],
]} /></${Section}>`;

/** Model is the daemon's model: how it did of late, how it is asked, and a check. @param {{version: any, status: any, onChecked?: () => void}} p */
const Model = ({ version: v, status, onChecked }) => {
  const [check, setCheck] = useState(/** @type {any} */ (null));
  const of = check?.model || status;
  const failing = of?.last_error && !(of.last_ok_at && Date.parse(of.last_ok_at) >= Date.parse(of.last_error.at));
  return html`<${Section} title="Model" actions=${of && html`<${Badge} text=${failing ? 'fails' : of.last_ok_at ? 'answers' : 'not asked yet'} kind=${failing ? 'bad' : of.last_ok_at ? 'good' : 'plain'} />`}>
    <${Facts} of=${[['Provider', v.provider], ['Model', v.model], ['Server', of?.base_url], ['Answered', of?.last_ok_at && ago(of.last_ok_at)],
      ['Failed', of?.last_error && `${ago(of.last_error.at)}: ${of.last_error.message}`], ['Prompt', v.prompt_version], ['Tools in a prompt', count(v.known_tools_prompt_limit)]]} />
    ${of && html`<details><summary>How it is asked</summary><${Table} label="How it is asked" rows=${Object.entries(of.profile)} columns=${[
      { title: 'What', cell: (/** @type {any} */ f) => words(f[0]) }, { title: 'How', cell: (/** @type {any} */ f) => (f[0] === 'context' && !f[1].value ? 'unknown' : String(f[1].value)) },
      { title: 'Learned from', wide: true, cell: (/** @type {any} */ f) => f[1].learned_from && html`${f[1].learned_from} <span class="quiet">${ago(f[1].at)}</span>` }]} /></details>`}
    ${v.provider !== 'replay' && html`<${Action} label="Check the model" path="/v1/system/model/check" scope="operate" confirm="The model writes a small program, which costs about 3,000 tokens." done="The model was checked." onDone=${(/** @type {any} */ reply) => { setCheck(reply); onChecked?.(); }} />`}
    ${check && html`<${Table} label="Check of the model" rows=${check.steps} columns=${[{ title: 'Step', cell: (/** @type {any} */ s) => words(s.name) },
      { title: 'Result', cell: (/** @type {any} */ s) => html`<${Badge} text=${s.result} kind=${({ ok: 'good', warn: 'warn', failed: 'bad' })[/** @type {string} */ (s.result)] || 'plain'} />` }, { title: 'Detail', wide: true, cell: (/** @type {any} */ s) => s.detail }]} />`}
  </${Section}>`;
};

/** @param {Record<string, number>} counts */
const tally = (counts, name = words) => Object.entries(counts || {}).map(([k, n]) => `${count(n)} ${name(k)}`).join(', ');
