// Values as people read them.
import { Exact } from './api.js';
import { present } from './clock.js';
import { signal } from './html.js';

const hourCycle = 'h23'; // midnight is 00:00
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle });
const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle });
const date = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', hourCycle });
const counts = new Intl.NumberFormat('en'); // as all other numbers here: 1,234 stands beside 1.234

/** time is the clock's today, the date with it this year, else the date. @param {string | undefined | null} at @param {Date} [now] */
export function time(at, now = present()) {
  if (!at) return '–';
  const t = new Date(at);
  return t.toDateString() === now.toDateString() ? clock.format(t) : (t.getFullYear() === now.getFullYear() ? day : date).format(t);
}

/** @param {string | undefined | null} at */
export const fullTime = (at) => (at ? full.format(new Date(at)) : '–');

/** How often ages were looked at anew. */
export const ages = signal(0);

/** ago is how long ago a time was. What shows it is drawn again as time passes. @param {string | undefined | null} at @param {Date} [now] */
export function ago(at, now = present()) {
  void ages.value;
  if (!at) return 'never';
  const s = Math.round((now.getTime() - new Date(at).getTime()) / 1000);
  const size = Math.abs(s);
  const text = size < 60 ? `${size} s` : size < 3600 ? `${Math.floor(size / 60)} min` : size < 86400 ? `${Math.floor(size / 3600)} h` : `${Math.floor(size / 86400)} d`;
  return s < 0 ? `in ${text}` : size < 5 ? 'just now' : `${text} ago`;
}

/** used is ago, but for the year 1, which the interface shows for what nobody used. @param {string | undefined | null} at */
export const used = (at) => ago(at?.startsWith('0001') ? null : at);

/** duration of milliseconds. @param {number | undefined | null} ms */
export function duration(ms) {
  if (ms === undefined || ms === null) return '–';
  if (ms < 0.1) return '< 0.1 ms';
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59950) return `${(ms / 1000).toFixed(1)} s`;
  const s = Math.round(ms / 1000);
  return `${Math.floor(s / 60)} min ${s % 60} s`;
}

/** @param {number | undefined | null} n */
export const count = (n) => (n === undefined || n === null ? '–' : counts.format(n));

/** @param {number | undefined | null} n */
export function bytes(n) {
  if (n === undefined || n === null) return '–';
  for (const [size, unit] of /** @type {[number, string][]} */ ([[1 << 30, 'GiB'], [1 << 20, 'MiB'], [1 << 10, 'KiB']])) if (n >= size) return `${(n / size).toFixed(1)} ${unit}`;
  return `${n} B`;
}

/** money has four digits after the point, so that those of a column stand below each other; a sum is read with two.
 * @param {number | undefined | null} amount @param {string} [currency] @param {number} [digits] */
export const money = (amount, currency, digits = 4) => (amount === undefined || amount === null ? '–' : `${amount.toFixed(amount && Math.abs(amount) < 0.1 ? 4 : digits)}${currency ? ' ' + currency : ''}`);

/** @param {number | undefined | null} part from 0 to 1 */
export const percent = (part) => (part === undefined || part === null ? '–' : `${(part * 100).toFixed(part && part < 0.1 ? 1 : 0)} %`);

/** cut is the beginning of a text that is longer than most, and never half a character. @param {string} s @param {number} most */
const cut = (s, most) => (s.length > most ? s.slice(0, most).replace(/[\ud800-\udbff]$/, '') + '…' : s);

/** json is a value on one line, cut to a length. @param {any} value @param {number} [most] */
export function json(value, most = 120) {
  return cut(value instanceof Exact ? value.text : JSON.stringify(value) ?? '–', most);
}

/** args are a call's arguments as one writes them. @param {any[] | null | undefined} list @param {Record<string, any> | null | undefined} named @param {number} [most] */
export function args(list, named, most = 120) {
  return cut([...(list || []).map((v) => json(v, most)), ...Object.entries(named || {}).map(([k, v]) => `${k}: ${json(v, most)}`)].join(', '), most);
}

/** words makes a stored name readable. @param {string | undefined | null} name */
export const words = (name) => (name || '').replaceAll('_', ' ').replace(/:(?=[a-z])/g, ': ');

/** source says in a word where a program came from. @param {string | undefined | null} name as the log has it */
export const source = (name) => (name === 'persisted' ? 'stored' : name === 'generated' ? 'forged' : words(name));

/** plural is a number with its noun. @param {number} n @param {string} noun @param {string} [many] */
export const plural = (n, noun, many) => `${count(n)} ${n === 1 ? noun : many || noun + 's'}`;

/** returned says how many calls a program answered with an error of its own, which is neither ok nor a failure. @param {any} of an artifact or a generation */
export const returned = (of) => (of.authored_error_count ? `, ${count(of.authored_error_count)} answered with an error that the program returned` : '');
