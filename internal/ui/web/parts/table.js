// Tables.
import { html } from '../core/html.js';

/** @typedef {{title: string, cell: (row: any) => any, num?: boolean, wide?: boolean, minor?: boolean, named?: boolean}} Column
 * num aligns right, wide takes the rest of the width, minor is left out on a phone, where named shows its title beside the value. */

/** Table shows rows. The first column's link opens a row, by a click anywhere in it too.
 * @param {{columns: Column[], rows: any[], label: string, id?: (row: any) => string, busy?: boolean}} p */
export function Table({ columns, rows, label, id, busy }) {
  return html`<div class="scroll"><table class="rows" aria-label=${label} aria-busy=${busy ? 'true' : undefined}>
    <thead><tr>${columns.map((c) => html`<th scope="col" class=${kind(c)}>${c.title}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${id ? id(row) : undefined} data-row tabindex="0" onClick=${openRow}>
      ${columns.map((c) => html`<td class=${kind(c)} data-label=${c.title}>${c.cell(row)}</td>`)}
    </tr>`)}</tbody>
  </table></div>`;
}

/** @param {Column} c */
const kind = (c) => [c.num && 'num', c.wide && 'wide', c.minor && 'minor', c.named && 'named'].filter(Boolean).join(' ') || undefined;

/** @param {MouseEvent} e */
function openRow(e) {
  const at = /** @type {HTMLElement} */ (e.target);
  if (at.closest('a, button, input, select, textarea, label') || getSelection()?.toString()) return;
  /** @type {HTMLElement | null} */ (/** @type {HTMLElement} */ (e.currentTarget).querySelector('td a[href]'))?.click();
}
