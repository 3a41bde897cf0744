// Two programs side by side.
import { html, useState } from '../core/html.js';
import { diff, folded } from '../core/diff.js';
import { plural } from '../core/format.js';
import { coloured } from './value.js';

/** @param {{before: string, after: string, names: [string, string], lang?: string}} p */
export function Diff({ before, after, names, lang = 'go' }) {
  const [whole, setWhole] = useState(false);
  const all = diff(before, after);
  const changed = all.filter((r) => !r.same).length;
  if (!changed) return html`<p class="quiet">${names[0]} and ${names[1]} are the same.</p>`;
  const rows = whole ? all : folded(all);
  const side = (/** @type {string | undefined} */ text, /** @type {number | undefined} */ at, /** @type {string} */ kind) => text === undefined ? html`<td class="at none"></td><td class="none"></td>`
    : html`<td class="at">${at}</td><td class=${kind}>${coloured(text, lang)}</td>`;
  return html`<div class="scroll"><table class="diff" aria-label="Differences of ${names[0]} and ${names[1]}">
      <colgroup><col class="at" /><col /><col class="at" /><col /></colgroup>
      <thead><tr><th colspan="2" scope="col">${names[0]}</th><th colspan="2" scope="col">${names[1]}</th></tr></thead>
      <tbody>${rows.map((r) => r.gap ? html`<tr class="gap"><td colspan="4">${plural(r.gap, 'equal line')}</td></tr>`
        : html`<tr>${side(r.old, r.oldAt, r.same ? '' : 'removed')}${side(r.now, r.nowAt, r.same ? '' : 'added')}</tr>`)}</tbody>
    </table></div>
    <button type="button" class="link" onClick=${() => setWhole(!whole)}>${whole ? 'Changed lines only' : 'Show every line'}</button>`;
}
