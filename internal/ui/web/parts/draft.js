// What somebody typed and has not saved. It is kept in the memory of this tab alone, for when they come back to the page.
import { computed, effect, html, signal, useLayoutEffect, useState } from '../core/html.js';
import { entry, who } from '../core/session.js';

/** Drafts by who typed them and the address that they would be sent to; asks is whether the browser asks before the tab goes with them. */
const drafts = signal(/** @type {Record<string, {typed: any, asks: boolean}>} */ ({}));

/** The keys of those on the page that is shown. */
const shown = /** @type {Set<string>} */ (new Set());

const person = computed(() => (who.value ? `${who.value.namespace} ${who.value.name}` : ''));

/** useDraft returns what was typed for an address, undefined where nothing is unsaved, and what sets it, or has a function do so. The browser
 * asks before the tab goes with it, unless asks is false.
 * @param {string} to @returns {[any, (typed: any, asks?: boolean) => void]} */
export function useDraft(to) {
  const [key] = useState(() => `${person.peek()} ${to}`);
  useLayoutEffect(() => {
    shown.add(key);
    return () => void shown.delete(key);
  }, []);
  const set = (/** @type {any} */ to, asks = true) => {
    const { [key]: now, ...others } = drafts.peek();
    const typed = typeof to === 'function' ? to(now?.typed) : to;
    drafts.value = typed === undefined ? others : { ...others, [key]: { typed, asks } };
  };
  return [drafts.value[key]?.typed, set];
}

/** useForm is useDraft of a form: it returns what the form has, what changes members of that, and what useDraft returns.
 * @template {Record<string, any>} F
 * @param {string} to @param {F} blank what the form has before somebody types @returns {[F, (changes: Partial<F>) => void, any, (typed: any, asks?: boolean) => void]} */
export function useForm(to, blank) {
  const [typed, setTyped] = useDraft(to);
  const set = (/** @type {Partial<F>} */ c) => setTyped(JSON.stringify({ ...blank, ...typed, ...c }) === JSON.stringify(blank) ? undefined : { ...typed, ...c });
  return [{ ...blank, ...typed }, set, typed, setTyped];
}

// Another token may be somebody else's. What is shown stays, so that whose token has expired goes on where they were.
effect(() => {
  void entry.value;
  const own = `${person.value} `;
  drafts.value = Object.fromEntries(Object.entries(drafts.peek()).filter(([key]) => shown.has(key) && key.startsWith(own)));
});

const ask = (/** @type {Event} */ e) => e.preventDefault();
effect(() => (Object.values(drafts.value).some((d) => d.asks) ? addEventListener : removeEventListener)('beforeunload', ask));

/** Unsaved says that what was typed is not saved, and discards it. @param {{onDiscard: () => void}} p */
export const Unsaved = ({ onDiscard }) => html`<span class="quiet" role="status" title="It stays in this tab while you look at other pages, until you sign out or close the tab.">Not saved</span><button type="button" onClick=${onDiscard}>Discard</button>`;
