// What is around the pages and seldom seen: signing in, and the list of keys.
import { html, useEffect, useRef, useState } from '../core/html.js';
import { can, helping, locked, setToken } from '../core/session.js';
import { letters } from '../core/keys.js';
import { Dialog } from '../parts/dialog.js';

export function SignIn() {
  const [value, setValue] = useState('');
  const [bad, setBad] = useState(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => field.current?.focus(), []);
  const submit = (/** @type {Event} */ e) => {
    e.preventDefault();
    const token = value.trim();
    const sendable = /^[\x21-\x7e]*$/.test(token); // no header carries anything else
    setBad(!sendable);
    if (!token || !sendable) return;
    setToken(token);
    setValue('');
  };
  return html`<form class="signin card" onSubmit=${submit}>
    <h1 tabindex="-1">Sign in</h1>
    <p>This daemon asks for an access token. It stays in this tab until the tab is closed, and goes nowhere else.</p>
    ${bad ? html`<p class="failure" role="alert">No token has blanks or such characters. Copy it again, without what stands around it.</p>` : locked.value && html`<p class="failure" role="alert">${locked.value[0].toUpperCase() + locked.value.slice(1)}. Check it, or ask for another one.</p>`}
    <label>Access token<input ref=${field} type="password" autocomplete="off" spellcheck=${false} value=${value} onInput=${(/** @type {any} */ e) => setValue(e.target.value)} required /></label>
    <div class="buttons"><button type="submit" class="main">Sign in</button></div>
    <p class="quiet">Tokens are lines of the file that <code>--auth-tokens-file</code> names, or come from the issuer of <code>--oidc-issuer</code>.</p>
  </form>`;
}

const keys = () => [
  ['/', 'search in the page'],
  ['j, k', 'next row, previous row'],
  ['Enter', 'open the row'],
  ['g, then a letter', Object.entries(letters).filter(([, p]) => p !== 'audit' || can('operate')).map(([k, p]) => `${k} ${p}`).join(', ')],
  ['Space', 'pause and resume Live'],
  ['Esc', 'leave a field, close a dialog'],
  ['?', 'this list'],
];

export const Help = () => html`<${Dialog} title="Keyboard" onClose=${() => (helping.value = false)}>
  <dl class="facts keys">${keys().map(([k, what]) => html`<div><dt><kbd>${k}</kbd></dt><dd>${what}</dd></div>`)}</dl>
  <p class="quiet">Every address can be bookmarked. The button <kbd>${'>_'}</kbd> beside an operation copies it as a curl command. The REST interface is described at <a href="/docs">/docs</a>.</p>
  <form method="dialog" class="buttons"><button type="submit" class="main" autofocus>Close</button></form>
</${Dialog}>`;
