// The shell: what is around every page.
import { html, render, useEffect, useRef, useState } from './html.js';
import { later } from './later.js';
import { route, href, go } from './route.js';
import { theme, nextTheme } from './theme.js';
import { token, entry, who, waiting, helping, locked, setToken, can } from './session.js';
import { get } from './api.js';
import { Messages } from '../parts/message.js';
import { Failure } from '../parts/failure.js';
import { Page } from '../parts/page.js';

/** Pages by the first part of the address. */
const pages = /** @type {Record<string, {title: string, scope?: string, page: any}>} */ ({
  live: { title: 'Live', page: later(() => import('../pages/live.js'), true) },
  tools: { title: 'Tools', page: later(() => import('../pages/tools.js')) },
  inbox: { title: 'Inbox', page: later(() => import('../pages/inbox.js')) },
  sessions: { title: 'Sessions', page: later(() => import('../pages/sessions.js')) },
  usage: { title: 'Usage', page: later(() => import('../pages/usage.js')) },
  policy: { title: 'Policy', page: later(() => import('../pages/policy.js')) },
  audit: { title: 'Audit', scope: 'operate', page: later(() => import('../pages/audit.js')) },
  system: { title: 'System', page: later(() => import('../pages/system.js')) },
});
const all = new Map(Object.entries({ ...pages, calls: { page: later(() => import('../pages/call.js')) } }));
const SignIn = later(() => import('../pages/extra.js').then((m) => ({ default: m.SignIn })));
const Help = later(() => import('../pages/extra.js').then((m) => ({ default: m.Help })));

/** Content shows the page of the address. */
function Content() {
  const { parts, query } = route.value;
  const where = parts.join('/');
  useEffect(() => scrollTo(0, 0), [where]);
  const shown = () => {
    if (where !== first) heading()?.focus({ preventScroll: true });
    first = null;
  };
  return html`<${all.get(parts[0] || 'live')?.page || Missing} key=${where} parts=${parts.slice(1)} query=${query} onShown=${shown} />`;
}
let first = /** @type {string | null} */ (route.value.parts.join('/'));

const heading = () => /** @type {HTMLElement | null} */ (document.querySelector('main:not([hidden]) h1'));

/** @param {{onShown: () => void}} p */
function Missing({ onShown }) {
  useEffect(onShown, []);
  return html`<${Page} title="There is no such page"><p><a href=${href(['live'])}>Go to Live</a></p></${Page}>`;
}

function Nav() {
  const at = route.value.parts[0] || 'live';
  return html`<nav class="pages" aria-label="Pages">
    ${Object.entries(pages).filter(([, p]) => can(p.scope)).map(([name, p]) =>
      html`<a href=${href([name])} aria-current=${name === at || (name === 'live' && at === 'calls') ? 'page' : undefined}>${p.title}${name === 'inbox' && waiting.value > 0 && html` <span class="badge info" title="${waiting.value} to decide">${waiting.value}</span>`}</a>`)}
  </nav>`;
}

function Bar() {
  const label = /** @type {Record<string, string>} */ ({ auto: 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' })[theme.value];
  return html`<header class="bar">
    <a class="brand" href=${href(['live'])}>recurgentd</a>
    ${locked.value === null ? html`<${Nav} />` : html`<span class="pages"></span>`}
    <div class="self">
      ${token.value && locked.value === null && html`${who.value && html`<span class="quiet" title=${`May: ${who.value.scopes.join(', ')}`}>${who.value.name}${who.value.namespace === 'default' ? '' : ` in ${who.value.namespace}`}</span>`}
        <button type="button" onClick=${() => setToken('')}>Sign out</button>`}
      <button type="button" onClick=${nextTheme}>${label}</button>
      ${locked.value === null && html`<button type="button" onClick=${() => (helping.value = true)} aria-label="Help: keyboard">?</button>`}
    </div>
  </header>`;
}

/** useWho asks the daemon who the token's owner is. */
function useWho() {
  const [answer, setAnswer] = useState(/** @type {{of?: number, error?: any}} */ ({}));
  const [turn, setTurn] = useState(0);
  const of = entry.value;
  useEffect(() => {
    let dropped = false;
    setAnswer({});
    get('/v1/me').then(
      (w) => dropped || ((who.value = w), setAnswer({ of })),
      (error) => dropped || setAnswer({ of, error }),
    );
    return () => void (dropped = true);
  }, [of, turn]);
  const current = answer.of === of;
  return { known: current && !answer.error, error: current ? answer.error : null, retry: () => setTurn((n) => n + 1) };
}

/** useWaiting keeps the number of those things that wait, for whoever may decide them. */
function useWaiting() {
  const decides = can('operate');
  useEffect(() => {
    if (!decides) return;
    const watched = import('./waiting.js').then((m) => m.watch(), () => () => {});
    return () => void watched.then((end) => end());
  }, [decides, entry.value]);
}

/** App keeps the page while it asks for another token, with what somebody typed in it, for the same person. */
function App() {
  const { known, error, retry } = useWho();
  useWaiting();
  const asks = locked.value !== null;
  const open = known && !asks;
  const asked = useRef(false);
  useEffect(() => {
    if (open && asked.current && document.activeElement === document.body) heading()?.focus();
    asked.current = asks || (asked.current && !open);
  }, [open, asks]);
  return html`${!asks && html`<a class="skip" href="#main" onClick=${skip}>Skip to the content</a>`}
    <${Bar} />
    ${!open && html`<main>${asks ? html`<${SignIn} />` : error ? html`<${Failure} error=${error} retry=${retry} />` : html`<p class="quiet" role="status">Loading …</p>`}</main>`}
    ${who.value && html`<main id="main" hidden=${!open}><${Content} key=${`${who.value.namespace} ${who.value.name}`} /></main>`}
    ${helping.value && !asks && html`<${Help} />`}
    <${Messages} />`;
}

/** skip moves the focus without changing the address. @param {Event} e */
function skip(e) {
  e.preventDefault();
  heading()?.focus();
}

render(html`<${App} />`, document.body);
import('./keys.js').then((m) => m.listen((page) => can(pages[page].scope) && go(href([page]))), () => {});
import('./focus.js').then((m) => m.keep(), () => {});
