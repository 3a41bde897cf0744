// Where the focus goes when what had it is taken from the page: to the heading of the part around it, so that whoever works by keyboard goes on from there.

/** What has the focus, or had it when it was taken away. */
let at = /** @type {HTMLElement | null} */ (null);

/** The parts around that, the nearest first. */
let around = /** @type {HTMLElement[]} */ ([]);

/** lead moves the focus to the heading of the nearest part that is still there. */
function lead() {
  if (!at || at.isConnected || document.activeElement !== document.body) return;
  at = null;
  const part = around.find((e) => e.isConnected && e.getClientRects().length) || document.querySelector('main:not([hidden])');
  const heading = /** @type {HTMLElement | null | undefined} */ (part?.querySelector('h1, h2'));
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

/** keep watches over the focus. */
export function keep() {
  addEventListener('focusin', (e) => {
    at = /** @type {HTMLElement} */ (e.target);
    around = [];
    for (let part = at.closest('dialog, section, li.card, main'); part; part = part.parentElement?.closest('dialog, section, li.card, main') || null) around.push(/** @type {HTMLElement} */ (part));
  });
  addEventListener('focusout', (e) => queueMicrotask(() => {
    if (e.target === at && at?.isConnected) at = null; // somebody left it
  }));
  new MutationObserver(lead).observe(document.body, { childList: true, subtree: true });
}
