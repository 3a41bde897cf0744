// What all of the page shares: who looks, by the access token, which is kept in the tab's session storage alone, and what it may do.
import { signal } from './html.js';

const KEY = 'recurgent.token';

/** The token, '' without one. */
export const token = signal(sessionStorage.getItem(KEY) || '');

/** How often a token was set, the same one again included. */
export const entry = signal(0);

/** Whether the daemon wants a token that this tab does not have, and why. Until there is one, nothing else is sent. */
export const locked = signal(/** @type {string | null} */ (null));

/** What the daemon says of whoever looks; null before it has answered. Where a token is refused in the middle, it is that of the last one. */
export const who = signal(/** @type {import('./types').Me | null} */ (null));

/** How much waits in the inbox; 0 where that is not known. */
export const waiting = signal(0);

/** Whether the list of keys is shown. */
export const helping = signal(false);

/** @param {string} value '' signs out, and forgets what is on the page */
export function setToken(value) {
  if (value) sessionStorage.setItem(KEY, value);
  else {
    sessionStorage.removeItem(KEY);
    who.value = null;
  }
  locked.value = null;
  token.value = value;
  entry.value++;
}

/** can reports whether a request that needs the scope would be allowed.
 * @param {string} [scope] read, call, operate or admin, or several with blanks between; none is always allowed */
export function can(scope) {
  return !scope || scope.split(' ').every((s) => who.value?.scopes.includes(/** @type {any} */ (s)));
}
