// Dialogs, and messages that pass.
import { html, signal, useEffect, useRef } from '../core/html.js';

/** Dialog is modal; Escape and Cancel close it. @param {{title: string, onClose: () => void, children?: any, wide?: boolean}} p */
export function Dialog({ title, onClose, children, wide }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    return () => before instanceof HTMLElement && before.focus();
  }, []);
  return html`<dialog ref=${ref} class=${wide ? 'broad' : undefined} aria-labelledby="dialog-title" onClose=${onClose}
    onClick=${(/** @type {MouseEvent} */ e) => e.target === ref.current && ref.current?.close()}>
    <div class="inside"><h2 id="dialog-title">${title}</h2>${children}</div>
  </dialog>`;
}

/** @typedef {{text: string, undo?: () => void}} Message */
export const message = signal(/** @type {Message | null} */ (null));

/** say shows a message for a while. @param {string} text @param {() => void} [undo] */
export function say(text, undo) {
  const m = { text, undo };
  message.value = m;
  setTimeout(() => message.value === m && (message.value = null), undo ? 15000 : 4000);
}

/** Messages is where they are shown, and read out. */
export const Messages = () => html`<div class="messages" role="status" aria-live="polite">
  ${message.value && html`<div class="message"><span>${message.value.text}</span>
    ${message.value.undo && html`<button type="button" class="link" onClick=${() => { const m = message.value; message.value = null; m?.undo?.(); }}>Undo</button>`}
    <button type="button" class="link" aria-label="Dismiss" onClick=${() => (message.value = null)}>×</button></div>`}
</div>`;

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
