// How much waits in the inbox, as the bar shows it.
import { follow } from './stream.js';
import { waiting } from './session.js';

/** watch follows the number while the page is visible, until the function that it returns is called. A hidden page gives its connection
 * back: browsers open few to one daemon. */
export function watch() {
  let stop = /** @type {AbortController | null} */ (null);
  const end = () => (stop?.abort(), (stop = null));
  const look = () => {
    if (document.hidden) return end();
    if (stop) return;
    stop = new AbortController();
    follow('/v1/inbox/events', { signal: stop.signal, onEvent: (e) => (waiting.value = e.data.waiting) });
  };
  document.addEventListener('visibilitychange', look);
  look();
  return () => {
    document.removeEventListener('visibilitychange', look);
    end();
    waiting.value = 0;
  };
}
