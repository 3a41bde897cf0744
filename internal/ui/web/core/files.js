// Files of calls: references in values, what they can be shown as, and their bytes.
import { headers, path, refuse, Problem, exchange } from './api.js';
import { token } from './session.js';

/** @typedef {{id: string, name: string, media_type: string, bytes: number}} File */

const most = 20; // references of a value that are looked up

/** references are the ids of the files that a value refers to, each once. @param {any} value @returns {string[]} */
export function references(value) {
  const ids = /** @type {Set<string>} */ (new Set());
  const look = (/** @type {any} */ v) => {
    if (!v || typeof v !== 'object' || ids.size >= most) return;
    if (typeof v.$file === 'string') ids.add(v.$file);
    else for (const m of Object.values(v)) look(m);
  };
  look(value);
  return [...ids];
}

/** How much of a file is read to be shown, by what it is shown as. */
export const bounds = /** @type {Record<string, number>} */ ({ text: 256 << 10, table: 256 << 10, page: 2 << 20, drawing: 5 << 20, picture: 20 << 20 });

/** shows says what a file can be shown as, '' for none: a text, a table, a page, a drawing, which is SVG, or a picture.
 * @param {string} type @param {string} name */
export function shows(type, name) {
  const [media] = type.toLowerCase().split(';');
  const ending = (/\.([a-z0-9]+)$/i.exec(name)?.[1] || '').toLowerCase();
  const generic = /^(text\/plain|application\/octet-stream|)$/.test(media);
  if (/^text\/(csv|tab-separated-values)$/.test(media) || (generic && /^(csv|tsv)$/.test(ending))) return 'table';
  if (/^(text\/html|application\/xhtml\+xml)$/.test(media) || (generic && /^html?$/.test(ending))) return 'page';
  if (media === 'image/svg+xml' || (generic && ending === 'svg')) return 'drawing';
  if (/^image\/(png|jpeg|gif|webp|avif|bmp)$/.test(media)) return 'picture';
  if (/^text\//.test(media) || /^application\/(.*\+)?(json|xml|yaml|x-ndjson|jsonl)$/.test(media) || (generic && /^(txt|md|log|json|xml|ya?ml|ics|ini|sql)$/.test(ending))) return 'text';
  return '';
}

/** looksLike says what a text can be shown as besides text, '' for nothing else. @param {string} text */
export function looksLike(text) {
  const start = text.slice(0, 1000).trimStart().toLowerCase();
  if (/^<(!doctype html|html)\b/.test(start)) return 'page';
  if (/^(<\?xml[^>]*\?>\s*)?(<!--[^]*?-->\s*)?<svg\b/.test(start)) return 'drawing';
  const [first, second] = table(text.slice(0, 10000));
  return first && second && first.length > 1 && first.length === second.length && /[,;\t]/.test(text) && !/^[[{]/.test(start) ? 'table' : '';
}

/** table reads rows of cells, with the separator that its first line has most of. @param {string} text @returns {string[][]} */
export function table(text) {
  const line = text.replace(/"[^"]*"/g, '').split('\n', 1)[0];
  const separator = [',', ';', '\t'].reduce((a, b) => (line.split(b).length > line.split(a).length ? b : a));
  const rows = /** @type {string[][]} */ ([]);
  let row = /** @type {string[]} */ ([]), cell = '', quoted = false, begun = false;
  const end = () => (row.push(cell), (cell = ''), (begun = false));
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') (cell += c), i++;
      else quoted = false;
    } else if (c === '"' && !begun) (quoted = true), (begun = true);
    else if (c === separator) end();
    else if (c === '\n') end(), rows.push(row), (row = []);
    else if (c !== '\r') (cell += c), (begun = true);
  }
  if (cell || begun || row.length) end(), rows.push(row);
  return rows.filter((r) => r.length > 1 || r[0]);
}

/** textOf decodes the bytes of a text: by its byte order mark, as UTF-8 where it can be that, else as windows-1252. @param {Uint8Array} bytes the beginning of a text, perhaps */
export function textOf(bytes) {
  const [a, b] = bytes;
  if ((a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff)) return new TextDecoder(a === 0xff ? 'utf-16le' : 'utf-16be').decode(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true });
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

/** What a browser connects for to where it points, by itself or when it is clicked, before it looks at the policy that refuses it. */
const ahead = /<(?=(?:link|iframe|frame|fencedframe|portal|object|embed|a|area)\b)/gi;

/** framed is a page as it is shown in a frame that runs no script: it asks nobody for anything. Its styles have the nonce, as no other style may be there.
 * @param {string} text @param {string} nonce */
export function framed(text, nonce) {
  const { page, rules } = styled(text.replace(/^\ufeff/, '').replace(ahead, '<no-'), nonce);
  return `<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}'"><meta http-equiv="x-dns-prefetch-control" content="off"><style nonce="${nonce}">${rules}</style>${page}`;
}

// They stop at a "<", so that reading takes as long as the text is, whatever it holds.
const sheet = /<style\b[^<>]*>/gi, sheetEnd = /<\/style/gi, tags = /<[a-z](?:[^"'<>]|"[^"]*"|'[^']*')*/gi;
const attribute = /\sstyle\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i;
const entities = /** @type {Record<string, string>} */ ({ quot: '"', '#34': '"', '#39': "'", apos: "'", amp: '&' });

/** styled has a page's style elements under the nonce, and its style attributes as rules, since an attribute has no nonce. They win over the page's sheets, as attributes do.
 * @param {string} text @param {string} nonce */
function styled(text, nonce) {
  const rules = /** @type {string[]} */ ([]);
  const ruled = (/** @type {string} */ tag) => tag.replace(attribute, (all, a, b, c) => {
    const of = (a ?? b ?? c).replace(/&(#?\w+);/g, (/** @type {string} */ e, /** @type {string} */ name) => entities[name.toLowerCase()] ?? e);
    if (/[{}<]/.test(of)) return all; // it would end the rule or the sheet
    return ` data-styled="${rules.push(of) - 1}"`;
  });
  let page = '', at = 0;
  while (at < text.length) {
    sheet.lastIndex = at;
    const begin = sheet.exec(text);
    page += text.slice(at, begin?.index).replace(tags, ruled);
    if (!begin) break;
    sheetEnd.lastIndex = sheet.lastIndex;
    at = sheetEnd.exec(text)?.index ?? text.length;
    page += `<style nonce="${nonce}"${text.slice(begin.index + '<style'.length, at)}`;
  }
  return { page, rules: rules.map((of, i) => `[data-styled="${i}"]:not(#a#a#a){${of}}`).join('\n') };
}

/** nonce is what the policy of this page lets styles have. */
export const nonce = () => /** @type {HTMLLinkElement | null} */ (document.querySelector('link[rel=stylesheet]'))?.nonce || '';

/** content reads the bytes of a file, or no more than the first ones. @param {string} id @param {{most?: number, signal?: AbortSignal}} [o] @returns {Promise<Blob>} */
export async function content(id, { most, signal } = {}) {
  const sent = token.value;
  let reply;
  try {
    reply = await fetch(path`/v1/files/${id}/content`, { headers: headers(most ? { Range: `bytes=0-${most - 1}` } : {}), signal, cache: 'no-store' });
    if (reply.status === 416) return new Blob([]); // it is empty
    await refuse(reply, sent);
    return await reply.blob();
  } catch (e) {
    if (signal?.aborted || e instanceof Problem) throw e;
    throw new Problem({ title: reply ? 'The connection broke' : 'The daemon does not answer', detail: 'The file was not read to its end.', hint: 'Try again.' });
  }
}

/** save has the browser store bytes under a name. @param {Blob} bytes @param {string} name */
export function save(bytes, name) {
  const address = URL.createObjectURL(bytes);
  Object.assign(document.createElement('a'), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000); // it may be asked where to, first
}

/** upload stores a file, which is erased with the session. @param {globalThis.File} file @param {string} [session] @returns {Promise<File>} */
export const upload = async (file, session) => (await exchange('POST', '/v1/files', { raw: file, query: { name: file.name, session_id: session } })).body;
