// What a form made from a method's interface has: kinds of parameters, and the arguments that its texts stand for.
import { decode } from '../core/api.js';

/** kind is what a parameter takes: a type of JSON Schema, a list of choices, or '' for any JSON. Its schema wins over its type, and one that takes all
 * arguments from its place on takes a list by name. @param {any} p @returns {string | any[]} */
export function kind(p) {
  if (p.variadic) return 'array';
  if (Array.isArray(p.schema?.enum)) return p.schema.enum;
  const type = p.schema?.type ?? p.type;
  return typeof type === 'string' ? type : '';
}

/** own is what a record has of a name, which may be any, such as constructor. @template T @param {Record<string, T>} record @param {string} name @returns {T | undefined} */
export const own = (record, name) => (Object.hasOwn(record, name) ? record[name] : undefined);

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
