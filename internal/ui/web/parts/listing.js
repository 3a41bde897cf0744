// Lists, one page at a time, however long they are.
import { html } from '../core/html.js';
import { href, route } from '../core/route.js';
import { get } from '../core/api.js';
import { Empty, Failure, useLoad } from './load.js';
import { Table } from './table.js';

/** @typedef {import('./table.js').Column} Column */

/** usePage loads the page of a list that the address names by its after.
 * @param {string} path @param {Record<string, any>} query @param {number} [limit] */
export function usePage(path, query, limit = 50) {
  const after = route.value.query.after;
  return useLoad((signal) => get(path, { limit, ...query, after }, signal), [path, JSON.stringify(query), after, limit]);
}

/** Listing shows such a page, what to do where there is nothing, and the links to the other pages.
 * @param {{of: ReturnType<typeof usePage>, columns: Column[], label: string, id?: (row: any) => string, empty: any, filtered?: boolean, rows?: (data: any) => any[]}} p */
export function Listing({ of, columns, label, id, empty, filtered, rows }) {
  const list = of.data && (rows ? rows(of.data) : of.data.data);
  const { parts, query } = route.value;
  return html`${of.error && html`<${Failure} error=${of.error} retry=${of.reload} />`}
    ${!list && of.loading && html`<p class="quiet" role="status">Loading …</p>`}
    ${list && list.length > 0 && html`<${Table} columns=${columns} rows=${list} label=${label} id=${id} busy=${of.loading} />`}
    ${list && !list.length && (query.after ? html`<${Empty} title="This page of the list is empty." />`
      : filtered ? html`<${Empty} title="Nothing matches."><p><a href=${href(parts)}>Clear the filters</a></p></${Empty}>` : empty)}
    ${(list || of.error) && html`<${Pager} next=${of.data?.next_cursor} />`}`;
}

/** Where each page of a list was reached from, by its address. */
const before = /** @type {Map<string, string>} */ (new Map());

/** Pager links to the other pages of a list; to the one before where this tab came from there. @param {{next?: string | null}} p */
export function Pager({ next }) {
  const { parts, query } = route.value;
  if (!next && !query.after) return null;
  const here = href(parts, query);
  const first = href(parts, { ...query, after: '' });
  const following = href(parts, { ...query, after: next });
  const previous = before.get(here);
  return html`<nav class="pager" aria-label="Pages of the list">
    ${query.after ? html`<a href=${first}>First page</a>` : null}
    ${previous && previous !== first && html`<a href=${previous} rel="prev">Previous page</a>`}
    ${next && html`<a href=${following} rel="next" onClick=${() => before.set(following, here)}>Next page</a>`}
  </nav>`;
}
