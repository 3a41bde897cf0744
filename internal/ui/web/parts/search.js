// Fields of filters.
import { html, useLayoutEffect, useRef } from '../core/html.js';

/** Search is a field whose text counts once it is entered. What somebody has begun to type stays there while the page around it is drawn again, as it is with every call that comes.
 * @param {{value: string, onEnter: (v: string) => void, [more: string]: any}} p */
export function Search({ value, onEnter, ...more }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useLayoutEffect(() => {
    if (field.current) field.current.value = value;
  }, [value]);
  return html`<input ref=${field} type="search" spellcheck=${false} onChange=${(/** @type {any} */ e) => onEnter(e.target.value.trim())} ...${more} />`;
}
