// Parts of the console that are loaded when they are first shown, so that the first page is there soon.
import { html, useEffect, useState } from './html.js';
import { Problem } from './api.js';
import { Failure } from '../parts/failure.js';

/** What those parts look like. It is loaded once. @type {Promise<any> | undefined} */
let sheet;

/** styled returns when the sheet is there, or cannot be had. */
const styled = () => (sheet ||= new Promise((done) => {
  document.head.append(Object.assign(document.createElement('link'), { rel: 'stylesheet', href: new URL('../style/pages.css', import.meta.url).href, onload: done, onerror: done }));
}));

/** later makes a component of the default export of a module. The component calls onShown once what it shows is there.
 * @param {() => Promise<{default: any}>} load @param {boolean} [plain] it needs no more than the first stylesheet */
export function later(load, plain) {
  let Part = /** @type {any} */ (null);
  return function Later(/** @type {any} */ props) {
    const [, setTurn] = useState(0);
    const [error, setError] = useState(/** @type {any} */ (null));
    useEffect(() => {
      if (!Part) Promise.all([load(), plain || styled()]).then(([m]) => ((Part = m.default), setTurn(1)), () => setError(new Problem({ title: 'The page could not be loaded', detail: 'The daemon does not answer, or has been updated.', hint: 'Check that recurgentd is running, then load the page again.' })));
    }, []);
    useEffect(() => void (Part && props.onShown?.()), [Part]);
    if (error) return html`<${Failure} error=${error} retry=${() => location.reload()} />`;
    return Part ? html`<${Part} ...${props} />` : html`<p class="quiet" role="status">Loading …</p>`;
  };
}
