// The call log: older calls, page by page and standing still.
import { html } from '../core/html.js';
import { href } from '../core/route.js';
import { Page } from '../parts/page.js';
import { Listing, usePage } from '../parts/listing.js';
import { columns } from '../parts/calls.js';
import { filter, Filters, Nothing } from './live.js';

/** @param {{query: Record<string, string>}} p */
export default function Log({ query }) {
  const of = usePage('/v1/calls', { ...filter(query), previews: true });
  return html`<${Page} title="Call log" note="Older calls, page by page." actions=${html`<a class="button" href=${href(['live'], { ...query, log: '', after: '' })}>Follow live</a>`}>
    <${Filters} query=${query} />
    <${Listing} of=${of} columns=${columns} label="Calls" id=${(/** @type {any} */ c) => c.call_id} empty=${html`<${Nothing} />`} filtered=${Object.keys(query).some((k) => k !== 'log' && k !== 'after')} />
  </${Page}>`;
}
