// Operations: a button that sends one request, and the same request as a command to copy.
import { html, useState } from '../core/html.js';
import { exchange, get, send, path as address, withQuery } from '../core/api.js';
import { can } from '../core/session.js';
import { curl } from '../core/curl.js';
import { plural } from '../core/format.js';
import { Dialog, say, copy } from './dialog.js';
import { Failure } from './load.js';

/** Curl copies a request as a command. @param {{method: string, path: string, body?: any, headers?: Record<string, string>, of: string, text?: string}} p */
export const Curl = ({ method, path, body, headers, of, text }) => html`<button type="button" class="curl" title="Copy as curl: ${method} ${path}" aria-label=${text ? undefined : `Copy “${of}” as curl`}
  onClick=${() => copy(curl(method, path, body, headers))}>${text || '>_'}</button>`;

/** Submit is the button of a form, or of a table that is edited. While its request is under way, and while off, it does nothing but keeps the focus, which a button that is disabled would lose: whoever
 * sends the request ignores it then. @param {{busy?: boolean, off?: boolean, onClick?: () => void, children?: any}} p */
export const Submit = ({ busy, off, onClick, children }) => html`<button type=${onClick ? 'button' : 'submit'} class="main" aria-busy=${busy ? 'true' : undefined} aria-disabled=${busy || off ? 'true' : undefined} onClick=${onClick}>${children}</button>`;

/** Action is a button with its Curl beside it. It is shown only to those whom the daemon lets do it. A dialog asks first where
 * reason or confirm is set.
 * @param {{label: string, method?: string, path: string, body?: any, headers?: Record<string, string>, scope: string, reason?: boolean, confirm?: any,
 *   danger?: boolean, main?: boolean, disabled?: boolean, done?: string, onDone?: (reply: any) => void, undo?: () => Promise<any>}} p
 *   The message after it offers its undo, where it has one: undo, or else that of its audit entry. */
export function Action(p) {
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const [why, setWhy] = useState('');
  if (!can(p.scope)) return null;
  const method = p.method || 'POST';
  const withReason = p.reason && why && method !== 'DELETE';
  const body = withReason ? { ...p.body, reason: why } : p.body;
  const path = p.reason && why && method === 'DELETE' ? withQuery(p.path, { reason: why }) : p.path;
  const run = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      const reply = await exchange(method, path, { body, headers: p.headers });
      setAsking(false);
      p.onDone?.(reply.body);
      const failed = reply.body?.broken_examples?.length;
      say(`${p.done || `${p.label}: done.`}${failed ? ` The program fails ${plural(failed, 'example')}.` : ''}`, p.undo ? takingBack(p.undo, p.onDone) : await undoing(reply.headers.get('Recurgent-Audit-Id'), p.onDone));
    } catch (e) {
      setError(e);
      if (!p.reason && !p.confirm) setAsking(true);
    }
    setBusy(false);
  };
  const ask = p.reason || p.confirm;
  return html`<span class="action">
    <button type="button" class=${p.danger ? 'danger' : p.main ? 'main' : undefined} disabled=${p.disabled} aria-busy=${busy ? 'true' : undefined} aria-disabled=${busy ? 'true' : undefined}
      onClick=${() => (ask ? (setError(null), setAsking(true)) : run())}>${p.label}</button><${Curl} method=${method} path=${path} body=${body} headers=${p.headers} of=${p.label} />
    ${asking && html`<${Dialog} title=${p.label} onClose=${() => setAsking(false)}>
      <form method="dialog" onSubmit=${(/** @type {Event} */ e) => (e.preventDefault(), run())}>
        ${p.confirm && html`<p>${p.confirm}</p>`}
        ${p.reason && html`<label><span>Reason <span class="quiet">optional, kept in the audit trail</span></span><input value=${why} maxlength="2000" onInput=${(/** @type {any} */ e) => setWhy(e.target.value)} autofocus /></label>`}
        ${error && html`<${Failure} error=${error} />`}
        <div class="buttons"><button type="submit" class=${p.danger ? 'danger' : 'main'} aria-busy=${busy ? 'true' : undefined} aria-disabled=${busy ? 'true' : undefined}>${p.label}</button>
          <button type="button" onClick=${() => setAsking(false)}>Cancel</button></div>
      </form></${Dialog}>`}
  </span>`;
}

/** undoing returns what takes an operation back, undefined where nothing does.
 * @param {string | null} id of its audit entry @param {((reply: any) => void) | undefined} after */
async function undoing(id, after) {
  if (!id || !can('operate')) return undefined;
  const { undo_request: u } = await get(address`/v1/maintenance/audit/${id}`).catch(() => ({}));
  if (!u || !can(u.scopes.join(' '))) return undefined;
  return takingBack(() => send(u.method, u.path, { body: u.body ?? undefined }), after);
}

/** takingBack makes what a message offers of an undo: it says what came of it. @param {() => Promise<any>} undo @param {((reply: any) => void) | undefined} after */
export const takingBack = (undo, after) => async () => {
  try {
    const reply = await undo();
    after?.(reply);
    say('Undone.');
  } catch (e) {
    say(`Not undone: ${/** @type {Error} */ (e).message}`);
  }
};
