// Approvals of many programs at once.
import { html, useState } from '../core/html.js';
import { exchange, get, path, send } from '../core/api.js';
import { can } from '../core/session.js';
import { plural } from '../core/format.js';
import { takingBack } from './action.js';
import { Dialog, say } from './dialog.js';

/** A program that waits, and the request that approves it. @typedef {{name: string, path: string, body: any}} Program */

/** approves is the request that approves a generation of a method. @param {{role: string, method: string, generation: string}} p @returns {Program} */
export const approves = (p) => ({ name: `${p.role}.${p.method}, ${p.generation}`, path: path`/v1/tools/${p.role}/methods/${p.method}/approve`, body: { generation: p.generation } });

/** Approve asks once for several programs, and answers for each: those that could not be approved stay in the dialog, with why.
 * @param {{of: Program[], label: string, onDone: () => void, onEnd?: () => void}} p onEnd is called when the dialog closes after something was sent */
export function Approve({ of, label, onDone, onEnd }) {
  const [asking, setAsking] = useState(/** @type {Program[] | null} */ (null));
  const [why, setWhy] = useState('');
  const [at, setAt] = useState(-1);
  const [failed, setFailed] = useState(/** @type {Map<Program, string>} */ (new Map()));
  if (!can('operate')) return null;
  const busy = at >= 0;
  const left = asking ? (failed.size ? asking.filter((p) => failed.has(p)) : asking) : [];
  const close = () => {
    if (busy) return;
    setAsking(null);
    if (failed.size) onEnd?.();
  };
  const run = async (/** @type {Event} */ e) => {
    e.preventDefault();
    if (busy) return;
    const bad = /** @type {Map<Program, string>} */ (new Map());
    const audits = /** @type {string[]} */ ([]);
    for (const [i, p] of left.entries()) {
      setAt(i);
      try {
        const reply = await exchange('POST', p.path, { body: why ? { ...p.body, reason: why } : p.body });
        audits.push(reply.headers.get('Recurgent-Audit-Id') || '');
      } catch (error) {
        bad.set(p, /** @type {Error} */ (error).message);
      }
    }
    setAt(-1);
    setFailed(bad);
    if (!bad.size) (setAsking(null), onEnd?.());
    if (audits.length) say(`${plural(audits.length, 'program')} approved${bad.size ? `, ${bad.size} not` : ''}.`, takingBack(() => undoAll(audits), onDone));
    onDone();
  };
  return html`<button type="button" class="main" disabled=${!of.length} onClick=${() => (setFailed(new Map()), setAsking(of))}>${label}</button>
    ${asking && html`<${Dialog} title=${label} onClose=${close}>
      <form method="dialog" onSubmit=${run}>
        <p>${failed.size ? 'These were not approved:' : `${left.length === 1 ? 'This program answers' : 'These programs answer'} calls from then on, also where the policy asks for approval:`}</p>
        <ul class="many" tabindex="0" aria-label="Programs">${left.map((p) => html`<li key=${p.name}>${p.name}${failed.has(p) && html` <span class="wrong" role="alert">${failed.get(p)}</span>`}</li>`)}</ul>
        <label><span>Reason <span class="quiet">optional, kept in the audit trail</span></span><input value=${why} maxlength="2000" onInput=${(/** @type {any} */ e) => setWhy(e.target.value)} autofocus /></label>
        ${busy && html`<p class="quiet" role="status">${at + 1} of ${left.length} …</p>`}
        <div class="buttons"><button type="submit" class="main" aria-busy=${busy ? 'true' : undefined} aria-disabled=${busy ? 'true' : undefined}>${failed.size ? 'Try again' : 'Approve'}</button>
          <button type="button" onClick=${close}>${failed.size ? 'Close' : 'Cancel'}</button></div>
      </form></${Dialog}>`}`;
}

/** undoAll takes operations back, the last one first. @param {string[]} audits their entries */
async function undoAll(audits) {
  for (const id of audits.filter(Boolean).reverse()) {
    const { undo_request: u } = await get(path`/v1/maintenance/audit/${id}`);
    if (u) await send(u.method, u.path, { body: u.body ?? undefined });
  }
}
