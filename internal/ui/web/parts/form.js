// A form made from a method's interface.
import { html } from '../core/html.js';
import { decode } from '../core/api.js';
import { json } from '../core/format.js';

/** kind is what a parameter takes: a type of JSON Schema, a list of choices, or '' for any JSON. Its schema wins over its type, and one that takes all
 * arguments from its place on takes a list by name. @param {any} p @returns {string | any[]} */
export function kind(p) {
  if (p.variadic) return 'array';
  if (Array.isArray(p.schema?.enum)) return p.schema.enum;
  const type = p.schema?.type ?? p.type;
  return typeof type === 'string' ? type : '';
}

/** own is what a record has of a name, which may be any, such as constructor. @template T @param {Record<string, T>} record @param {string} name @returns {T | undefined} */
const own = (record, name) => (Object.hasOwn(record, name) ? record[name] : undefined);

const wanted = /** @type {Record<string, string>} */ ({ '': 'JSON. Put text in double quotes', string: 'text', integer: 'an integer', array: 'a JSON array', object: 'a JSON object' });

/** kwargs are the values of all fields that have something, and what is wrong with the others: text as it is where a string is asked for, else JSON.
 * @param {any[]} parameters @param {Record<string, string>} values */
export function kwargs(parameters, values) {
  const out = /** @type {[string, any][]} */ ([]);
  const wrong = /** @type {Record<string, string>} */ ({});
  for (const p of parameters) {
    const type = kind(p);
    const text = own(values, p.name);
    if (text === undefined || (text === '' && type !== 'string')) {
      if (p.required) wrong[p.name] = 'is required';
      continue;
    }
    try {
      out.push([p.name, type === 'string' ? text : decode(text)]);
    } catch {
      wrong[p.name] = `is not ${own(wanted, String(type)) || `a ${type}`}`;
    }
  }
  return { out: Object.fromEntries(out), wrong };
}

/** about says what a parameter takes, and what a missing one stands for. @param {any} p */
const about = (p) => [[p.schema?.type ?? p.type].flat().filter(Boolean).join(' or ') || (p.schema?.enum ? '' : 'any'), p.required ? 'required' : 'default' in p ? `${json(p.default, 40)} if empty` : 'optional', p.description].filter(Boolean).join(', ');

/** Fields has one for each parameter. @param {{of: any[], values: Record<string, string>, onChange: (v: Record<string, string>) => void, wrong?: Record<string, string>}} p */
export const Fields = ({ of, values, onChange, wrong = {} }) => html`${of.map((p) => {
  const set = (/** @type {any} */ e) => onChange({ ...values, [p.name]: e.target.value });
  const value = own(values, p.name) ?? '';
  const type = kind(p);
  const choices = Array.isArray(type) ? type.map((v) => json(v, Infinity)) : type === 'boolean' ? ['true', 'false'] : null;
  const input = choices ? html`<select value=${value} onChange=${set}><option value="">–</option>${choices.map((v) => html`<option value=${v}>${v}</option>`)}</select>`
    : type === 'object' || type === 'array' || !type ? html`<textarea rows="2" spellcheck=${false} value=${value} onInput=${set} placeholder=${shape(p)}></textarea>`
    : html`<input value=${value} onInput=${set} inputmode=${type === 'number' || type === 'integer' ? 'decimal' : undefined} />`;
  return html`<label key=${p.name}><span>${p.name} <span class="quiet">${about(p)}</span></span>${input}${own(wrong, p.name) && html`<span class="wrong" role="alert">${p.name} ${wrong[p.name]}</span>`}</label>`;
})}`;

/** shape is what JSON for a parameter looks like, as far as its schema names members. @param {any} p */
const shape = (p) => (p.schema?.properties ? `{${Object.keys(p.schema.properties).map((k) => `${JSON.stringify(k)}: …`).join(', ')}}` : 'JSON');
