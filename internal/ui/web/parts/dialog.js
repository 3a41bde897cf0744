// Dialogs, and what buttons say when they have copied something.
import { html, useLayoutEffect, useRef } from '../core/html.js';
import { locked } from '../core/session.js';
import { say } from './message.js';

export { say };

/** Dialog is modal; Escape and Cancel close it. While a token is asked for, it makes room for that. @param {{title: string, onClose: () => void, children?: any, wide?: boolean}} p */
export function Dialog({ title, onClose, children, wide }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const gone = useRef(false);
  const aside = locked.value !== null;
  useLayoutEffect(() => {
    const before = document.activeElement;
    return () => {
      gone.current = true;
      ref.current?.close(); // while it is open nothing else takes the focus
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  useLayoutEffect(() => (aside ? ref.current?.close() : ref.current?.showModal()), [aside]);
  return html`<dialog ref=${ref} class=${wide ? 'broad' : undefined} aria-labelledby="dialog-title" onClose=${() => gone.current || locked.value !== null || onClose()}
    onClick=${(/** @type {MouseEvent} */ e) => e.target === ref.current && ref.current?.close()}>
    <div class="inside"><h2 id="dialog-title">${title}</h2>${children}</div>
  </dialog>`;
}

/** copy puts text on the clipboard, and says so. @param {string} text */
export async function copy(text) {
  const done = await navigator.clipboard?.writeText(text).then(() => true, () => false) || copySelected(text);
  say(done ? 'Copied.' : 'This browser does not let the page copy. Select the text and copy it by hand.');
}

/** copySelected is the older way, the only one where the page is neither encrypted nor of this machine. @param {string} text */
function copySelected(text) {
  const before = document.activeElement;
  const field = Object.assign(document.createElement('textarea'), { value: text });
  (document.querySelector('dialog[open]') || document.body).append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return done;
}
