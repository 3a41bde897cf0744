// A form made from a method's interface.
import { html } from '../core/html.js';
import { decode } from '../core/api.js';

/** field returns the value of what somebody typed for a parameter: text as it is where a string is asked for, else JSON.
 * @param {any} parameter @param {string} text */
export function field(parameter, text) {
  if (parameter.type === 'string') return text;
  return decode(text);
}

/** kwargs are the values of all fields that have something, and what is wrong with the others.
 * @param {any[]} parameters @param {Record<string, string>} values */
export function kwargs(parameters, values) {
  const out = /** @type {Record<string, any>} */ ({});
  const wrong = /** @type {Record<string, string>} */ ({});
  for (const p of parameters) {
    const text = values[p.name];
    if (text === undefined || (text === '' && p.type !== 'string')) {
      if (p.required) wrong[p.name] = 'is required';
      continue;
    }
    try {
      out[p.name] = field(p, text);
    } catch {
      wrong[p.name] = `is not ${({ integer: 'an integer', array: 'a JSON array', object: 'a JSON object' })[/** @type {string} */ (p.type)] || (p.type ? `a ${p.type}` : 'JSON')}`;
    }
  }
  return { out, wrong };
}

/** Fields has one for each parameter. @param {{of: any[], values: Record<string, string>, onChange: (v: Record<string, string>) => void, wrong?: Record<string, string>}} p */
export const Fields = ({ of, values, onChange, wrong = {} }) => html`${of.map((p) => {
  const set = (/** @type {any} */ e) => onChange({ ...values, [p.name]: e.target.value });
  const value = values[p.name] ?? '';
  const hint = html`<span class="quiet">${[p.type || 'any', p.required ? 'required' : 'optional', p.description].filter(Boolean).join(', ')}</span>`;
  const input = p.type === 'boolean' ? html`<select value=${value} onChange=${set}><option value="">–</option><option value="true">true</option><option value="false">false</option></select>`
    : p.type === 'object' || p.type === 'array' || !p.type ? html`<textarea rows="2" spellcheck=${false} value=${value} onInput=${set} placeholder="JSON"></textarea>`
    : html`<input value=${value} onInput=${set} inputmode=${p.type === 'number' || p.type === 'integer' ? 'decimal' : undefined} />`;
  return html`<label key=${p.name}><span>${p.name} ${hint}</span>${input}${wrong[p.name] && html`<span class="wrong" role="alert">${p.name} ${wrong[p.name]}</span>`}</label>`;
})}`;
