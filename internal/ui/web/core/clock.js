// The time as the daemon has it: a browser's clock may be off by hours, and every time that a page shows is the daemon's.

const SLACK = 5000; // ms: the daemon names whole seconds, and its reply takes its time

let ahead = 0; // ms that the daemon's clock is ahead of the browser's

/** hear reads the clock of a reply. @param {string | null} date its header Date */
export function hear(date) {
  const off = date ? Date.parse(date) - Date.now() : NaN;
  if (!Number.isNaN(off)) ahead = Math.abs(off) > SLACK ? off : 0;
}

/** present is the time now. */
export const present = () => new Date(Date.now() + ahead);
