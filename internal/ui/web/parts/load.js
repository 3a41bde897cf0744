// Data of a page: loaded when it opens, loaded again on demand, dropped when it closes.
import { html, useEffect, useState, useCallback } from '../core/html.js';
import { Problem } from '../core/api.js';
import { ages } from '../core/format.js';
import { returns } from '../core/returns.js';
import { entry } from '../core/session.js';
import { Failure } from './failure.js';

export { Failure, Empty } from './failure.js';

setInterval(() => document.hidden || ages.value++, 15000);

/** useLoad calls load whenever one of deps changes, when a token is set, and when somebody comes back to the tab. It returns what came of it. Old data stays until new data is there.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load @param {any[]} deps
 * @returns {{data: T | undefined, error: any, loading: boolean, reload: () => void}} */
export function useLoad(load, deps) {
  const [state, setState] = useState(/** @type {{data?: any, error?: any, loading: boolean}} */ ({ loading: true }));
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    setState((s) => ({ ...s, loading: true }));
    load(stop.signal).then(
      (data) => stop.signal.aborted || setState({ data, loading: false }),
      (error) => stop.signal.aborted || setState((s) => ({ data: s.data, error, loading: false })),
    );
    return () => stop.abort();
  }, [...deps, turn, entry.value, returns.value]);
  return { data: state.data, error: state.error, loading: state.loading, reload: useCallback(() => setTurn((n) => n + 1), []) };
}

/** Shown shows what useLoad returned: a sign of progress, the error, or what view makes of the data.
 * @param {{of: {data: any, error: any, loading: boolean, reload: () => void}, children: (data: any) => any}} p */
export function Shown({ of, children }) {
  return html`${of.error && html`<${Failure} error=${of.error} retry=${of.reload} />`}
    ${of.data !== undefined ? children(of.data) : of.loading && !of.error ? html`<p class="quiet" role="status">Loading …</p>` : null}`;
}

/** absent says whether an error is that of a thing that is not there. @param {any} error */
export const absent = (error) => error instanceof Problem && error.status === 404;
