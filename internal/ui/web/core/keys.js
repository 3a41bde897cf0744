// The keyboard: '/' searches, j and k walk the rows, Enter opens one, g and a letter lead to a page, '?' lists all this.
import { helping } from './session.js';

/** Pages by the letter after g. */
export const letters = { l: 'live', t: 'tools', i: 'inbox', s: 'sessions', u: 'usage', p: 'policy', a: 'audit', y: 'system' };

let pending = false; // g was pressed

/** @param {EventTarget | null} at */
const typing = (at) => at instanceof HTMLElement && (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName));

const rows = () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll('main [data-row]')].filter((e) => /** @type {HTMLElement} */ (e).offsetParent));

/** walk moves the focus by a number of rows. @param {number} by */
function walk(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((e) => e === document.activeElement || e.contains(document.activeElement));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, at + by))];
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
}

/** open follows the link of the row that has the focus. */
function open() {
  const row = document.activeElement;
  if (!(row instanceof HTMLElement) || !row.hasAttribute('data-row') || row.tagName === 'A') return false;
  const link = /** @type {HTMLElement | null} */ (row.querySelector('a[href], button'));
  link?.click();
  return !!link;
}

/** listen acts on keys that no field takes. @param {(page: string) => void} lead */
export function listen(lead) {
  addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
    if (document.querySelector('dialog[open]')) return;
    if (typing(e.target)) {
      if (e.key !== 'Escape') return;
      e.preventDefault(); // a search would be emptied
      return /** @type {HTMLElement} */ (e.target).blur();
    }
    const page = pending && letters[/** @type {keyof typeof letters} */ (e.key)];
    pending = false;
    if (page) lead(page);
    else if (e.key === 'g') pending = true;
    else if (e.key === 'j') walk(1);
    else if (e.key === 'k') walk(-1);
    else if (e.key === '?') helping.value = true;
    else if (e.key === '/') {
      const field = /** @type {HTMLInputElement | null} */ (document.querySelector('main [data-search]'));
      if (!field) return;
      field.focus();
      field.select?.(); // a list of choices has none
    } else if (e.key !== 'Enter' || !open()) return;
    e.preventDefault();
  });
}
