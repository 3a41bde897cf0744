// What is shown where there is no data: an error, or nothing yet.
import { html } from '../core/html.js';
import { Problem } from '../core/api.js';

/** Failure shows an error with the problem detail's hint.
 * @param {{error: any, retry?: () => void}} p */
export function Failure({ error, retry }) {
  const p = error instanceof Problem ? error : new Problem({ title: 'The console failed', detail: String(error?.message || error), hint: 'Load the page again.' });
  return html`<div class="failure" role="alert">
    <p><strong>${p.title}</strong></p>
    ${p.message !== p.title && html`<p>${p.message}</p>`}
    ${p.errors.filter((e) => !p.message.includes(e.detail || '')).map((e) => html`<p><code>${e.pointer}</code> ${e.detail}</p>`)}
    ${p.hint && html`<p class="hint">${p.hint}</p>`}
    ${p.retryAfter > 0 && html`<p>Try again in ${p.retryAfter} s.</p>`}
    <p class="quiet">${p.code && html`<a href="/problems/${p.code}" target="_blank" rel="noreferrer">${p.code}</a>`} ${p.requestId && html` request ${p.requestId}`}</p>
    ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
  </div>`;
}

/** Empty says what there would be, and what to do about it.
 * @param {{title: string, children?: any}} p */
export const Empty = ({ title, children }) => html`<div class="empty"><p><strong>${title}</strong></p>${children}</div>`;
