// Addresses within the page: #/tools/calculator/add?tab=code. Links are plain ones, so that back, copy and new tabs work.
import { signal } from './html.js';

/** parse reads the part of an address after '#'.
 * @param {string} hash */
export function parse(hash) {
  const [where, query = ''] = hash.replace(/^#?\/?/, '').split('?', 2);
  return { parts: where.split('/').filter(Boolean).map(unescapeOr), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** @param {string} s */
function unescapeOr(s) {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}

/** href makes an address of path segments, which it escapes, and a query, whose empty members are left out.
 * @param {string[]} parts @param {Record<string, any>} [query] */
export function href(parts, query) {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(query || {})) if (v !== undefined && v !== null && v !== '' && v !== false) q.set(k, String(v));
  return '#/' + parts.map(encodeURIComponent).join('/') + (q.size ? '?' + q : '');
}

/** Where the page is. */
export const route = signal(parse(location.hash));

addEventListener('hashchange', () => (route.value = parse(location.hash)));

/** go leads to an address of href.
 * @param {string} to @param {{replace?: boolean}} [o] replace: back does not lead here again */
export function go(to, o) {
  if (to === location.hash) return;
  if (o?.replace) history.replaceState(history.state, '', to);
  else history.pushState(null, '', to);
  route.value = parse(to);
}

/** setQuery changes members of the query in place, and begins lists anew.
 * @param {Record<string, any>} changes */
export function setQuery(changes) {
  const { parts, query } = route.value;
  go(href(parts, { ...query, after: '', ...changes }), { replace: true });
}
