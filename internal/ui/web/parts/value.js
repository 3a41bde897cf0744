// Values of programs and code of models, as text.
import { html, useState } from '../core/html.js';
import { tokens } from '../core/highlight.js';
import { count } from '../core/format.js';
import { copy } from './dialog.js';

/** pretty is JSON with every digit, on several lines or, without an indent, on one. @param {any} value @param {number} [indent] */
export const pretty = (value, indent = 2) => JSON.stringify(value, null, indent) ?? '';

/** Json shows a value; a long one is cut until it is asked for whole. @param {{value: any, lines?: number, label?: string}} p */
export function Json({ value, lines = 24, label = 'Value' }) {
  const text = typeof value === 'string' && value.includes('\n') ? value : pretty(value);
  return html`<${Long} text=${text} lines=${lines} lang=${typeof value === 'string' ? 'text' : 'json'} label=${label} />`;
}

/** Long shows text of many lines, coloured by its language. @param {{text: string, lines?: number, lang?: string, label: string, numbers?: boolean}} p */
export function Long({ text, lines = 24, lang = 'text', label, numbers }) {
  const [whole, setWhole] = useState(false);
  const all = text.split('\n');
  const few = lines * 200;
  const cut = !whole && (all.length > lines + 4 || text.length > few * 1.2);
  const shown = cut ? all.slice(0, lines).join('\n').slice(0, few) : text;
  return html`<div class="long">
    <pre tabindex="0" aria-label=${label} class=${numbers ? 'numbered' : undefined}><code>${numbers ? numbered(shown, lang) : coloured(shown, lang)}</code></pre>
    <div class="corner"><button type="button" class="curl" aria-label="Copy ${label}" onClick=${() => copy(text)}>copy</button></div>
    ${(cut || whole) && html`<button type="button" class="link" onClick=${() => setWhole(!whole)}>${!cut ? 'Show less' : all.length > lines + 4 ? `Show all ${count(all.length)} lines` : 'Show all of it'}</button>`}
  </div>`;
}

/** coloured makes spans of text. Beyond 100,000 characters colours are not worth their time. @param {string} text @param {string} lang */
export const coloured = (text, lang) => (text.length > 100000 || lang === 'text' ? text : tokens(text, lang).map(([kind, part]) => (kind ? html`<span class="t-${kind}">${part}</span>` : part)));

/** @param {string} text @param {string} lang */
function numbered(text, lang) {
  const lines = /** @type {[string, string][][]} */ ([[]]);
  for (const [kind, part] of tokens(text, lang))
    part.split('\n').forEach((piece, i) => {
      if (i) lines.push([]);
      lines[lines.length - 1].push([kind, piece]);
    });
  return lines.map((line) => html`<span class="line">${line.map(([kind, part]) => (kind ? html`<span class="t-${kind}">${part}</span>` : part))}${'\n'}</span>`);
}

/** Code shows a program in Go. @param {{code: string, label?: string}} p */
export const Code = ({ code, label = 'Program' }) => html`<${Long} text=${code.replace(/\n$/, '')} lang="go" lines=${60} label=${label} numbers />`;

