// Audit: who did what, and its undo.
import { html, useState } from '../core/html.js';
import { href, setQuery } from '../core/route.js';
import { ago, fullTime, words } from '../core/format.js';
import { path } from '../core/api.js';
import { Page, Badge } from '../parts/page.js';
import { Empty } from '../parts/load.js';
import { Listing, usePage } from '../parts/table.js';
import { Action } from '../parts/action.js';
import { Dialog } from '../parts/dialog.js';
import { Json } from '../parts/value.js';
import { toMethod, toTool } from '../parts/calls.js';

/** Target leads to what was changed, where its name says what that is. @param {{of: any}} p */
function Target({ of }) {
  const [role, method, more] = of.target.split('.');
  const to = of.target === 'policy' ? href(['policy']) : more !== undefined ? '' : of.action.startsWith('tool.') ? toTool(of.target) : /^(artifact|verdict|examples?|effects)\./.test(of.action) && method ? toMethod(role, method) : '';
  return to ? html`<a href=${to}>${of.target}</a>` : html`<span>${of.target}</span>`;
}

/** scopeOf is the scope that taking an operation back needs, which is that of the operation. @param {any} e */
const scopeOf = (e) => (e.action.startsWith('connection.') || JSON.stringify(e.before?.spend) !== JSON.stringify(e.after?.spend) ? 'admin' : 'operate');

/** @param {{query: Record<string, string>}} p */
export default function Audit({ query }) {
  const of = usePage('/v1/maintenance/audit', { principal: query.principal });
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const undone = new Set((of.data?.data || []).map((/** @type {any} */ e) => e.undoes).filter(Boolean));
  const head = of.data?.head;
  return html`<${Page} title="Audit" note=${html`What people changed, newest first.${head?.seq ? html` Each entry holds the hash of the one before; the last, ${head.seq}, has <code title=${head.hash}>${head.hash.slice(0, 12)}</code>` : ''}`}>
    <form class="filters" role="search" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}><label>By<input type="search" placeholder="a person's name" data-search value=${query.principal || ''} spellcheck=${false} onChange=${(/** @type {any} */ e) => setQuery({ principal: e.target.value.trim() })} /></label></form>
    <${Listing} of=${of} label="Audit trail" id=${(/** @type {any} */ e) => e.id} filtered=${!!query.principal} columns=${[
      { title: 'Operation', cell: (/** @type {any} */ e) => html`<button type="button" class="link" onClick=${() => setOpen(e)}>${words(e.action)}</button>${undone.has(e.id) && html` <${Badge} text="undone" />`}` },
      { title: 'Target', wide: true, cell: (/** @type {any} */ e) => html`<${Target} of=${e} />${e.reason && html` <span class="quiet">“${e.reason}”</span>`}` },
      { title: 'By', cell: (/** @type {any} */ e) => e.principal || e.actor },
      { title: 'When', num: true, cell: (/** @type {any} */ e) => html`<time datetime=${e.timestamp} title=${fullTime(e.timestamp)}>${ago(e.timestamp)}</time>` },
      { title: 'Undo', num: true, cell: (/** @type {any} */ e) => e.undo && !undone.has(e.id) && html`<${Action} label="Undo" path=${path`/v1/maintenance/audit/${e.id}/undo`} body=${{}} scope=${scopeOf(e)} reason onDone=${of.reload} done="Undone." />` },
    ]} empty=${html`<${Empty} title="Nobody has done anything yet."><p>Operations show here: verdicts, rollbacks, approvals, changes of the policy.</p></${Empty}>`} />
    ${open && html`<${Dialog} title=${words(open.action)} wide onClose=${() => setOpen(null)}>
      <p>${open.target} <span class="quiet">by ${open.principal || open.actor}, ${fullTime(open.timestamp)}</span></p>
      ${open.erased && html`<p class="quiet">Its content was erased together with its session.</p>`}
      ${open.before !== undefined && open.before !== null && html`<h3>Before</h3><${Json} value=${open.before} />`}
      ${open.after !== undefined && open.after !== null && html`<h3>After</h3><${Json} value=${open.after} />`}
      <form method="dialog" class="buttons"><button type="submit" class="main">Close</button></form></${Dialog}>`}
  </${Page}>`;
}
