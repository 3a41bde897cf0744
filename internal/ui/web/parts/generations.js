// Generations as a line of descent, with their differences.
import { html } from '../core/html.js';
import { go } from '../core/route.js';
import { ago, args, count, fullTime, json, plural, returned, words } from '../core/format.js';
import { Section, Facts, Badge } from './page.js';
import { Action } from './action.js';
import { Code } from './value.js';
import { Diff } from './diff.js';
import { Table } from './table.js';
import { toMethod, toCall } from './calls.js';
import { Empty } from './load.js';

/** @param {{of: any, url: string, query: Record<string, string>, onDone: () => void}} p */
export function Generations({ of, url, query, onDone }) {
  const all = /** @type {any[]} */ (of.history || []);
  if (!all.length) return html`<${Empty} title="There is no program yet."><p>The model writes one at the first call.</p></${Empty}>`;
  const newest = [...all].sort((a, b) => number(b.id) - number(a.id));
  const asked = all.find((g) => g.id === query.generation);
  const chosen = asked || all.find((g) => g.id === of.current_generation) || newest[0];
  const to = (/** @type {any} */ q) => toMethod(of.role, of.method_name, { tab: 'generations', generation: chosen.id, ...q });
  const against = query.against === 'none' ? null : all.find((g) => g.id === (query.against || chosen.parent_id));
  return html`<div class="descent">
      <nav aria-label="Generations"><ol class="lineage">${newest.map((g) => html`<li class=${g.id === chosen.id ? 'at' : undefined}>
        <a data-row href=${to({ generation: g.id })} aria-current=${g.id === chosen.id ? 'true' : undefined}><strong>${g.id}</strong> ${g.id === of.current_generation && html`<${Badge} text="current" kind="info" />`} ${g.aside && html`<${Badge} text="quarantined" />`}${g.approved && html` <${Badge} text="approved" />`}
          <span class="quiet">${words(g.trigger)}</span><span class="quiet">${g.parent_id ? `from ${g.parent_id}, ` : ''}${ago(g.created_at)}</span></a></li>`)}</ol></nav>
      <div>
        ${query.generation && !asked && html`<p class="failure" role="status">${query.generation} is not kept any more. This is ${chosen.id}.</p>`}
        <${Section} title=${chosen.id} actions=${chosen.id !== of.current_generation && html`<${Action} label="Roll back to ${chosen.id}" path="${url}/rollback" body=${{ generation: chosen.id }} scope="operate" reason main onDone=${onDone} confirm="It becomes the current program, even if it fails examples: the message afterwards says how many." />`}>
          <${Facts} of=${[
            ['State', html`<${Badge} text=${chosen.lifecycle_state || 'kept'} />`],
            ['Made', html`<time datetime=${chosen.created_at} title=${fullTime(chosen.created_at)}>${ago(chosen.created_at)}</time>, ${words(chosen.trigger)}, by ${chosen.model || 'a person'}`],
            ['Written with', chosen.forge_usage && `${plural(chosen.forge_usage.model_requests, 'request')}, ${plural(chosen.forge_usage.prompt_tokens + chosen.forge_usage.completion_tokens, 'token')}`],
            ['Calls', `${count(chosen.success_count)} ok, ${count(chosen.intrinsic_failure_count + chosen.adaptive_failure_count)} failed${chosen.extrinsic_failure_count ? `, ${count(chosen.extrinsic_failure_count)} by outages` : ''}${returned(chosen)}`],
            ['Fixtures', chosen.fixture_count],
            ['New hosts', (chosen.new_hosts || []).join(', ')],
            ['Runs on', chosen.interpreter],
          ]} /></${Section}>
        ${chosen.changed_answers?.length > 0 && html`<${Section} title="Changed answers" note="What it answers differently from the program before it."><${Table} label="Changed answers" rows=${chosen.changed_answers} columns=${[
          { title: 'Input', wide: true, cell: (/** @type {any} */ c) => html`<a href=${toCall(c.call_id)}>(${args(c.args, c.kwargs, 80)})</a>` },
          { title: 'Was', named: true, cell: (/** @type {any} */ c) => html`<code>${json(c.was, 60)}</code>` },
          { title: 'Now', named: true, cell: (/** @type {any} */ c) => html`<code>${c.error_type ? words(c.error_type) : json(c.now, 60)}</code>` }]} /></${Section}>`}
        <${Section} title=${against ? `${against.id} → ${chosen.id}` : 'Code'} actions=${all.length > 1 && html`<label class="check">Compare with <select onChange=${(/** @type {any} */ e) => go(to({ against: e.target.value }))}>
            <option value="none" selected=${!against}>nothing</option>${newest.filter((g) => g.id !== chosen.id).map((g) => html`<option value=${g.id} selected=${g === against}>${g.id}</option>`)}</select></label>`}>
          ${against ? html`<${Diff} before=${against.code} after=${chosen.code} names=${[against.id, chosen.id]} />` : html`<${Code} code=${chosen.code} />`}</${Section}>
      </div></div>`;
}

/** @param {string} id gen-12 */
const number = (id) => Number(id.replace(/^\D+/, '')) || 0;
