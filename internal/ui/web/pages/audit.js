// Audit: who did what, and its undo.
import { html } from '../core/html.js';
import { href, route, setQuery } from '../core/route.js';
import { ago, fullTime, words } from '../core/format.js';
import { get, path } from '../core/api.js';
import { can } from '../core/session.js';
import { Page, Badge } from '../parts/page.js';
import { Empty, Shown, useLoad } from '../parts/load.js';
import { Listing, usePage } from '../parts/listing.js';
import { Search } from '../parts/search.js';
import { Action } from '../parts/action.js';
import { Dialog } from '../parts/dialog.js';
import { Diff } from '../parts/diff.js';
import { Json, pretty } from '../parts/value.js';
import { toMethod, toTool } from '../parts/calls.js';

/** Target leads to what was changed, where its name says what that is. @param {{of: any}} p */
function Target({ of }) {
  const [role, method, more] = of.target.split('.');
  const to = of.target === 'policy' ? href(['policy']) : more !== undefined ? '' : of.action.startsWith('tool.') ? toTool(of.target) : /^(artifact|verdict|examples?|effects)\./.test(of.action) && method ? toMethod(role, method) : '';
  return to ? html`<a href=${to}>${of.target}</a>` : html`<span>${of.target}</span>`;
}

/** shown leads to an entry, beside the list as it is. @param {string} id */
const shown = (id) => href(['audit'], { ...route.value.query, entry: id });

/** Undo offers what takes an operation back; where that would be refused, the entry says why. @param {{of: any, onDone: () => void}} p */
const Undo = ({ of, onDone }) => of.undo_refused ? html`<a class="quiet" href=${shown(of.id)} title=${of.undo_refused}>not possible</a>` : of.undo_request && html`<${Action} label="Undo" method=${of.undo_request.method} path=${of.undo_request.path} body=${of.undo_request.body ?? undefined} scope=${of.undo_request.scopes.join(' ')}
  reason=${of.undo_request.path.endsWith('/undo')} confirm=${of.undo_request.path.endsWith('/undo') ? undefined : html`This sends <code>${of.undo_request.method} ${of.undo_request.path}</code>.`} onDone=${onDone} done="Undone." />`;

/** @param {{query: Record<string, string>}} p */
export default function Audit({ query }) {
  const of = usePage('/v1/maintenance/audit', { principal: query.principal });
  const head = of.data?.head;
  return html`<${Page} title="Audit" note=${html`What people changed, newest first.${head?.seq ? html` Each entry holds the hash of the one before; the last, ${head.seq}, has <code title=${head.hash}>${head.hash.slice(0, 12)}</code>` : ''}`}>
    <form class="filters" role="search" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}><label>By<${Search} placeholder="a person's name" data-search value=${query.principal || ''} onEnter=${(/** @type {string} */ principal) => setQuery({ principal })} /></label></form>
    <${Listing} of=${of} label="Audit trail" id=${(/** @type {any} */ e) => e.id} filtered=${!!query.principal} columns=${[
      { title: 'Operation', cell: (/** @type {any} */ e) => html`<a href=${shown(e.id)}>${words(e.action)}</a>${e.undone_by && html` <${Badge} text="undone" />`}` },
      { title: 'Target', wide: true, cell: (/** @type {any} */ e) => html`<${Target} of=${e} />${e.reason && html` <span class="quiet">“${e.reason}”</span>`}` },
      { title: 'By', cell: (/** @type {any} */ e) => e.principal || e.actor },
      { title: 'When', num: true, cell: (/** @type {any} */ e) => html`<time datetime=${e.timestamp} title=${fullTime(e.timestamp)}>${ago(e.timestamp)}</time>` },
      { title: 'Undo', num: true, cell: (/** @type {any} */ e) => html`<${Undo} of=${e} onDone=${of.reload} />` },
    ]} empty=${html`<${Empty} title="Nobody has done anything yet."><p>Operations show here: verdicts, rollbacks, approvals, changes of the policy.</p></${Empty}>`} />
    ${query.entry && html`<${Entry} key=${query.entry} id=${query.entry} page=${of} onClose=${() => setQuery({ entry: '', after: query.after })} />`}
  </${Page}>`;
}

/** Entry shows one entry, also one that is not on the page. @param {{id: string, page: ReturnType<typeof usePage>, onClose: () => void}} p */
function Entry({ id, page, onClose }) {
  const of = useLoad((signal) => get(path`/v1/maintenance/audit/${id}`, {}, signal), [id, page.data]);
  return html`<${Dialog} title=${of.data ? words(of.data.action) : 'Entry'} wide onClose=${onClose}><${Shown} of=${of}>${(/** @type {any} */ e) => html`
    <p>${e.target} <span class="quiet">by ${e.principal || e.actor}, ${fullTime(e.timestamp)}</span></p>
    ${e.undone_by && html`<p>It was undone: <a href=${shown(e.undone_by)}>${e.undone_by}</a></p>`}
    ${e.undoes && html`<p>It undid <a href=${shown(e.undoes)}>${e.undoes}</a></p>`}
    ${e.undo_refused && html`<p class="quiet">No undo: ${e.undo_refused}.</p>`}
    ${e.undo_request && !can(e.undo_request.scopes.join(' ')) && html`<p class="quiet">Undoing it needs the ${e.undo_request.scopes.length > 1 ? 'scopes' : 'scope'} ${e.undo_request.scopes.join(' and ')}.</p>`}
    ${!e.undo && html`<p class="quiet">There is no undo of such an operation.</p>`}
    ${e.erased && html`<p class="quiet">Its content was erased together with its session.</p>`}
    <${Change} before=${e.before} after=${e.after} />`}</${Shown}>
    <form method="dialog" class="buttons"><button type="submit" class="main">Close</button></form></${Dialog}>`;
}

const there = (/** @type {any} */ v) => v !== undefined && v !== null;

/** Change shows the state before and after, side by side where there are both. @param {{before: any, after: any}} p */
const Change = ({ before, after }) => there(before) && there(after) ? html`<${Diff} before=${pretty(before)} after=${pretty(after)} names=${['before', 'after']} lang="json" />`
  : html`${there(before) && html`<h3>Before</h3><${Json} value=${before} />`}${there(after) && html`<h3>After</h3><${Json} value=${after} />`}`;
