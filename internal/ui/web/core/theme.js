// Light, dark, or as the system has it.
import { signal, effect } from './html.js';

const KEY = 'recurgent.theme';

/** auto, light or dark. */
export const theme = signal(/** @type {string} */ (localStorage.getItem(KEY) || 'auto'));

effect(() => {
  if (theme.value === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
  localStorage.setItem(KEY, theme.value);
});

/** Whether the page is dark now. */
export const isDark = () => theme.value === 'dark' || (theme.value === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches);

export const nextTheme = () => (theme.value = { auto: 'light', light: 'dark', dark: 'auto' }[theme.value] || 'auto');
