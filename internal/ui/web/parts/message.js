// Messages that pass.
import { html, signal } from '../core/html.js';

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
