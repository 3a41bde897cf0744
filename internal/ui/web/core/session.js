// What all of the page shares: who looks, by the access token, which is kept in the tab's session storage alone, and what it may do.
import { signal } from './html.js';

const KEY = 'recurgent.token';

/** The token, '' without one. */
export const token = signal(sessionStorage.getItem(KEY) || '');

/** Whether the daemon wants a token that this tab does not have, and why. */
export const locked = signal(/** @type {string | null} */ (null));

/** What the daemon says of whoever looks; null before it has answered. */
export const who = signal(/** @type {import('./types').Me | null} */ (null));

/** How much waits in the inbox; 0 where that is not known. */
export const waiting = signal(0);

/** Whether the list of keys is shown. */
export const helping = signal(false);

/** @param {string} value '' signs out */
export function setToken(value) {
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
  token.value = value;
  who.value = null;
}

/** can reports whether a request that needs the scope would be allowed.
 * @param {string} [scope] read, call, operate or admin, or several with blanks between; none is always allowed */
export function can(scope) {
  return !scope || scope.split(' ').every((s) => who.value?.scopes.includes(/** @type {any} */ (s)));
}
