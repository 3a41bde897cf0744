// The shell: what is around every page.
import { html, render, useEffect, useState } from './html.js';
import { route, href, go } from './route.js';
import { listen, helping } from './keys.js';
import { theme, nextTheme } from './theme.js';
import { token, who, locked, setToken, can } from './session.js';
import { get } from './api.js';
import { Messages } from '../parts/dialog.js';
import { Failure } from '../parts/load.js';

/** Pages by the first part of the address. Each is loaded when it is first opened. */
const pages = /** @type {Record<string, {title: string, scope?: string, load: () => Promise<{default: any}>}>} */ ({
  live: { title: 'Live', load: () => import('../pages/live.js') },
  tools: { title: 'Tools', load: () => import('../pages/tools.js') },
  inbox: { title: 'Inbox', load: () => import('../pages/inbox.js') },
  sessions: { title: 'Sessions', load: () => import('../pages/sessions.js') },
  usage: { title: 'Usage', load: () => import('../pages/usage.js') },
  policy: { title: 'Policy', load: () => import('../pages/policy.js') },
  audit: { title: 'Audit', scope: 'operate', load: () => import('../pages/audit.js') },
  system: { title: 'System', load: () => import('../pages/system.js') },
});
const others = /** @type {typeof pages} */ ({ calls: { title: 'Call', load: () => import('../pages/call.js') } });

const loaded = /** @type {Record<string, any>} */ ({});

/** Content shows the page of the address. */
function Content() {
  const { parts } = route.value;
  const name = parts[0] || 'live';
  const page = pages[name] || others[name];
  const [, setTurn] = useState(0);
  const [error, setError] = useState(/** @type {any} */ (null));
  useEffect(() => {
    setError(null);
    if (!page || loaded[name]) return;
    page.load().then((m) => ((loaded[name] = m.default), setTurn((n) => n + 1)), () => setError(new Error('The page could not be loaded. The daemon may have been updated.')));
  }, [name]);
  const where = parts.join('/');
  useEffect(() => {
    scrollTo(0, 0);
    if (where !== first) /** @type {HTMLElement | null} */ (document.querySelector('main h1'))?.focus({ preventScroll: true });
    first = null;
  }, [where, loaded[name]]);
  if (!page) return html`<h1 tabindex="-1">There is no such page</h1><p><a href=${href(['live'])}>Go to Live</a></p>`;
  if (error) return html`<${Failure} error=${error} retry=${() => location.reload()} />`;
  const Shown = loaded[name];
  return Shown ? html`<${Shown} key=${where} parts=${parts.slice(1)} query=${route.value.query} />` : html`<p class="quiet" role="status">Loading …</p>`;
}
let first = /** @type {string | null} */ (route.value.parts.join('/'));

function Nav() {
  const at = route.value.parts[0] || 'live';
  return html`<nav class="pages" aria-label="Pages">
    ${Object.entries(pages).filter(([, p]) => can(p.scope)).map(([name, p]) =>
      html`<a href=${href([name])} aria-current=${name === at || (name === 'live' && at === 'calls') ? 'page' : undefined}>${p.title}</a>`)}
  </nav>`;
}

function Bar() {
  const label = /** @type {Record<string, string>} */ ({ auto: 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' })[theme.value];
  return html`<header class="bar">
    <a class="brand" href=${href(['live'])}>recurgentd</a>
    ${locked.value === null ? html`<${Nav} />` : html`<span class="pages"></span>`}
    <div class="self">
      ${who.value && token.value && html`<span class="quiet" title=${`May: ${who.value.scopes.join(', ')}`}>${who.value.name}${who.value.namespace === 'default' ? '' : ` in ${who.value.namespace}`}</span>
        <button type="button" onClick=${() => setToken('')}>Sign out</button>`}
      <button type="button" onClick=${nextTheme}>${label}</button>
      <button type="button" onClick=${() => (helping.value = true)} aria-label="Help: keyboard">?</button>
    </div>
  </header>`;
}

/** useWho asks the daemon who the token's owner is. */
function useWho() {
  const [error, setError] = useState(/** @type {any} */ (null));
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let dropped = false;
    setError(null);
    get('/v1/me').then(
      (w) => dropped || ((who.value = w), (locked.value = null)),
      (e) => dropped || setError(e),
    );
    return () => void (dropped = true);
  }, [token.value, turn]);
  return { error, retry: () => setTurn((n) => n + 1) };
}

function App() {
  const { error, retry } = useWho();
  const [Extra, setExtra] = useState(/** @type {any} */ (null));
  const extra = locked.value !== null ? 'signin' : helping.value ? 'help' : '';
  useEffect(() => {
    if (extra) import('../pages/extra.js').then((m) => setExtra(m));
  }, [extra]);
  if (locked.value !== null) return html`<${Bar} /><main id="main">${Extra && html`<${Extra.SignIn} />`}</main>`;
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${Bar} />
    <main id="main">${who.value ? html`<${Content} />` : error ? html`<${Failure} error=${error} retry=${retry} />` : html`<p class="quiet" role="status">Loading …</p>`}</main>
    ${helping.value && Extra && html`<${Extra.Help} />`}
    <${Messages} />`;
}

/** skip moves the focus without changing the address. @param {Event} e */
function skip(e) {
  e.preventDefault();
  /** @type {HTMLElement | null} */ (document.querySelector('main h1'))?.focus();
}

listen((page) => go(href([page])));
render(html`<${App} />`, document.body);
