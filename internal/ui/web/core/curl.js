// Requests as commands for a shell.
import { token } from './session.js';

/** quote makes one word of a POSIX shell. @param {string} s */
export const quote = (s) => (/^[A-Za-z0-9_/:.,=@%+-]+$/.test(s) ? s : `'${s.replaceAll("'", `'\\''`)}'`);

/** curl is the command that sends the request. The token is named, not shown.
 * @param {string} method @param {string} path @param {any} [body] @param {Record<string, string>} [headers] @param {string} [origin] */
export function curl(method, path, body, headers = {}, origin = location.origin) {
  const words = ['curl', '-sS'];
  if (method !== (body === undefined ? 'GET' : 'POST')) words.push('-X', method);
  if (token.value) words.push('-H', '"Authorization: Bearer $RECURGENT_TOKEN"');
  if (body !== undefined && !headers['Content-Type']) headers = { 'Content-Type': 'application/json', ...headers };
  for (const [k, v] of Object.entries(headers)) words.push('-H', quote(`${k}: ${v}`));
  if (body !== undefined) words.push('-d', quote(JSON.stringify(body)));
  words.push(quote(origin + path));
  return words.join(' ');
}
