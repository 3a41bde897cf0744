// What a call answered: text as text, files to be saved, and previews of what has a look of its own.
import { html, useState } from '../core/html.js';
import { looksLike, save } from '../core/files.js';
import { Files, Preview } from './files.js';
import { Json, Long, pretty } from './value.js';

const looks = /** @type {Record<string, string>} */ ({ table: 'As a table', page: 'As a page', drawing: 'As a picture' });

/** Characters of a text that would not be seen. It is shown as JSON then. */
const unseen = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;

/** Result shows a value. @param {{value: any, name: string, lines?: number}} p */
export function Result({ value, name, lines }) {
  const [as, setAs] = useState(false);
  const text = typeof value === 'string' && !unseen.test(value);
  const kind = text ? looksLike(value) : '';
  const store = () => save(new Blob([text ? value : pretty(value) + '\n'], { type: text ? 'text/plain' : 'application/json' }), `${name}.${text ? { table: 'csv', page: 'html', drawing: 'svg' }[kind] || 'txt' : 'json'}`);
  return html`<div class="result">
    ${as && kind ? html`<${Preview} kind=${kind} of=${value} name="Value" />` : text ? html`<${Long} text=${value} lines=${lines} label="Value" />` : html`<${Json} value=${value} lines=${lines} />`}
    <div class="buttons">${kind && html`<button type="button" aria-pressed=${as ? 'true' : 'false'} onClick=${() => setAs(!as)}>${looks[kind]}</button>`}
      <button type="button" onClick=${store}>Download the value</button></div>
    <${Files} of=${value} open />
  </div>`;
}
