// The libraries, under the names that every module here uses.
import { h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';

export { render } from '../vendor/preact.js';
export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback } from '../vendor/hooks.js';
export { signal, computed, effect, batch } from '../vendor/signals.js';

/** html makes elements of a template. What is put in by ${} becomes text, never markup. */
export const html = htm.bind(h);
