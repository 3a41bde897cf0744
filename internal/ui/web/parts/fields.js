// A form made from a method's interface.
import { html } from '../core/html.js';
import { json } from '../core/format.js';
import { Attach, refer } from './files.js';
import { kind, own } from './form.js';

/** about says what a parameter takes, and what a missing one stands for. @param {any} p */
const about = (p) => [[p.schema?.type ?? p.type].flat().filter(Boolean).join(' or ') || (p.schema?.enum ? '' : 'any'), p.required ? 'required' : 'default' in p ? `${json(p.default, 40)} if empty` : 'optional', p.description].filter(Boolean).join(', ');

/** Fields has one for each parameter. @param {{of: any[], values: Record<string, string>, onChange: (v: Record<string, string>) => void, wrong?: Record<string, string>}} p */
export const Fields = ({ of, values, onChange, wrong = {} }) => html`${of.map((p) => {
  const set = (/** @type {any} */ e) => onChange({ ...values, [p.name]: e.target.value });
  const value = own(values, p.name) ?? '';
  const type = kind(p);
  const choices = Array.isArray(type) ? type.map((v) => json(v, Infinity)) : type === 'boolean' ? ['true', 'false'] : null;
  const input = choices ? html`<select value=${value} onChange=${set}><option value="">–</option>${choices.map((v) => html`<option value=${v}>${v}</option>`)}</select>`
    : type === 'object' || type === 'array' || type === 'file' || !type ? html`<textarea rows="2" spellcheck=${false} value=${value} onInput=${set} placeholder=${shape(p)}></textarea>`
    : html`<input value=${value} onInput=${set} inputmode=${type === 'number' || type === 'integer' ? 'decimal' : undefined} />`;
  const takesFile = type === 'file' || type === 'object' || type === '';
  const field = html`<label key=${p.name}><span>${p.name} <span class="quiet">${about(p)}</span></span>${input}${own(wrong, p.name) && html`<span class="wrong" role="alert">${p.name} ${wrong[p.name]}</span>`}</label>`;
  return takesFile ? html`<div class="field" key=${p.name}>${field}<${Attach} of=${p.name} one onFile=${(/** @type {any} */ file) => onChange({ ...values, [p.name]: refer(file) })} /></div>` : field;
})}`;

/** shape is what JSON for a parameter looks like, as far as its schema names members. @param {any} p */
const shape = (p) => (p.schema?.properties ? `{${Object.keys(p.schema.properties).map((k) => `${JSON.stringify(k)}: …`).join(', ')}}` : 'JSON');
