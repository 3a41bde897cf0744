// Audit: who did what, and its undo.
import { html, useState } from '../core/html.js';
import { setQuery } from '../core/route.js';
import { ago, fullTime, words } from '../core/format.js';
import { path } from '../core/api.js';
import { Page, Badge } from '../parts/page.js';
import { Empty } from '../parts/load.js';
import { Listing, usePage } from '../parts/table.js';
import { Action } from '../parts/action.js';
import { Dialog } from '../parts/dialog.js';
import { Json } from '../parts/value.js';

/** @param {{query: Record<string, string>}} p */
export default function Audit({ query }) {
  const of = usePage('/v1/maintenance/audit', { principal: query.principal });
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const undone = new Set((of.data?.data || []).map((/** @type {any} */ e) => e.undoes).filter(Boolean));
  const head = of.data?.head;
  return html`<${Page} title="Audit" note=${head?.seq ? html`Entry ${head.seq} is the last of a chain of hashes; its own is <code>${head.hash.slice(0, 16)}…</code>` : undefined}>
    <form class="filters" role="search" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}><label>Who<input type="search" data-search value=${query.principal || ''} spellcheck=${false} onChange=${(/** @type {any} */ e) => setQuery({ principal: e.target.value.trim() })} /></label></form>
    <${Listing} of=${of} label="Audit trail" id=${(/** @type {any} */ e) => e.id} filtered=${!!query.principal} columns=${[
      { title: 'Operation', cell: (/** @type {any} */ e) => html`<button type="button" class="link" onClick=${() => setOpen(e)}>${words(e.action)}</button>${undone.has(e.id) && html` <${Badge} text="undone" />`}` },
      { title: 'Of', wide: true, cell: (/** @type {any} */ e) => html`<span>${e.target}</span>${e.reason && html` <span class="quiet">“${e.reason}”</span>`}` },
      { title: 'Who', cell: (/** @type {any} */ e) => e.principal || e.actor },
      { title: 'When', num: true, minor: true, cell: (/** @type {any} */ e) => html`<time datetime=${e.timestamp} title=${fullTime(e.timestamp)}>${ago(e.timestamp)}</time>` },
      { title: 'Undo', num: true, cell: (/** @type {any} */ e) => e.undo && !undone.has(e.id) && html`<${Action} label="Undo" path=${path`/v1/maintenance/audit/${e.id}/undo`} body=${{}} scope="operate" reason onDone=${of.reload} done="Undone." />` },
    ]} empty=${html`<${Empty} title="Nobody has done anything yet."><p>Operations of people show here: verdicts that count, rollbacks, approvals, changes of the policy.</p></${Empty}>`} />
    ${open && html`<${Dialog} title=${words(open.action)} wide onClose=${() => setOpen(null)}>
      <p>${open.target} <span class="quiet">by ${open.principal || open.actor}, ${fullTime(open.timestamp)}</span></p>
      ${open.erased && html`<p class="quiet">Its body is erased with the session that it was of.</p>`}
      ${open.before !== undefined && open.before !== null && html`<h3>Before</h3><${Json} value=${open.before} />`}
      ${open.after !== undefined && open.after !== null && html`<h3>After</h3><${Json} value=${open.after} />`}
      <form method="dialog" class="buttons"><button type="submit" class="main">Close</button></form></${Dialog}>`}
  </${Page}>`;
}
