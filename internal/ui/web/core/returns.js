// Coming back to this tab, and what other tabs do: what this one shows may have been changed elsewhere.
import { signal } from './html.js';
import { changes } from './api.js';

/** How often somebody came back to this tab, or changed something in another one that is open beside it. */
export const returns = signal(0);

let due = 0;
const again = () => {
  if (document.hidden) return; // it is read when somebody comes back
  clearTimeout(due); // becoming visible and getting the focus are one return
  due = setTimeout(() => returns.value++, 100);
};
document.addEventListener('visibilitychange', again);
addEventListener('focus', again);

// Tabs of one browser say to each other that they have changed something, and nothing else.
const others = new BroadcastChannel('recurgentd');
others.onmessage = again;
changes.subscribe((n) => n && others.postMessage(null));
