// The frame of a page's content.
import { html, useEffect } from '../core/html.js';

/** Page has a heading, the way to it, operations, and the content. It names the tab.
 * @param {{title: any, name?: string, crumbs?: {href: string, text: string}[], actions?: any, note?: any, children?: any}} p */
export function Page({ title, name, crumbs, actions, note, children }) {
  const tab = name || (typeof title === 'string' ? title : '');
  useEffect(() => {
    document.title = tab ? `${tab} · recurgentd` : 'recurgentd';
  }, [tab]);
  return html`<header class="head">
      ${crumbs && html`<nav class="crumbs" aria-label="Path">${crumbs.map((c, i) => html`${i > 0 && html`<span aria-hidden="true"> / </span>`}<a href=${c.href}>${c.text}</a>`)}</nav>`}
      <div class="headline"><h1 tabindex="-1">${title}</h1><div class="tools">${actions}</div></div>
      ${note && html`<p class="quiet">${note}</p>`}
    </header>
    ${children}`;
}

/** Section is a part of a page under a heading of its own.
 * @param {{title: string, actions?: any, note?: any, children?: any}} p */
export const Section = ({ title, actions, note, children }) => html`<section class="card">
  <div class="headline"><h2>${title}</h2><div class="tools">${actions}</div></div>
  ${note && html`<p class="quiet">${note}</p>`}
  ${children}
</section>`;

/** Facts is a list of names and values; those without a value are left out.
 * @param {{of: [string, any][]}} p */
export const Facts = ({ of }) => html`<dl class="facts">
  ${of.filter(([, v]) => v !== undefined && v !== null && v !== '' && v !== false).map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`)}
</dl>`;

/** Tabs are links, so that each has an address.
 * @param {{of: {id: string, text: string, href: string}[], at: string, label: string}} p */
export const Tabs = ({ of, at, label }) => html`<nav class="tabs" aria-label=${label}>
  ${of.map((t) => html`<a href=${t.href} aria-current=${t.id === at ? 'page' : undefined}>${t.text}</a>`)}
</nav>`;

const kinds = /** @type {Record<string, string>} */ ({
  ok: 'good', active: 'good', durable: 'good', approved: 'good', adopted: 'good', right: 'good', passed: 'good', on: 'good', full: 'good', denied: 'good',
  error: 'bad', failed: 'bad', wrong: 'bad', quarantined: 'bad', degraded: 'bad', off: 'warn', partial: 'warn',
  running: 'busy', queued: 'busy', forging: 'busy', generated: 'busy', repaired: 'warn', weak: 'warn', doubted: 'warn', stale: 'warn', proposed: 'warn', backing_off: 'warn', awaiting_approval: 'warn', pinned: 'info', probation: 'info', candidate: 'info',
});

/** What words of the lifecycle mean, shown while the pointer rests on one. */
const meanings = /** @type {Record<string, string>} */ ({
  candidate: 'Written, and without a successful call yet', probation: 'It answers; enough good calls make it durable', durable: 'It has proved itself over many calls', degraded: 'It fails too often and is replaced at the next call',
  quarantined: 'It answers no calls until a person releases it', doubted: 'A person judged an answer of it wrong', stale: 'A person has changed the purpose since the program was made', pinned: 'It stays the current program, whatever fails', weak: 'A value that counts as a weak success, such as an empty list',
});

/** Badge is a short word with the colour of what it says. @param {{text: string, kind?: string}} p */
export const Badge = ({ text, kind }) => html`<span class="badge ${kind || kinds[text] || ''}" title=${meanings[text]}>${text.replaceAll('_', ' ')}</span>`;
