// Lines side by side.

/** A row: a line of the old text with its number, one of the new text, or both where they are the same.
 * @typedef {{old?: string, oldAt?: number, now?: string, nowAt?: number, same: boolean, gap?: number}} Row */

const MOST = 3000; // lines of which the shortest difference is looked for

/** diff pairs the lines of two texts. @param {string} before @param {string} after @returns {Row[]} */
export function diff(before, after) {
  const a = before.replace(/\n$/, '').split('\n');
  const b = after.replace(/\n$/, '').split('\n');
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const rows = /** @type {Row[]} */ ([]);
  const same = (/** @type {number} */ i, /** @type {number} */ j) => rows.push({ old: a[i], oldAt: i + 1, now: b[j], nowAt: j + 1, same: true });
  for (let i = 0; i < head; i++) same(i, i);
  let removed = /** @type {Row[]} */ ([]);
  let added = /** @type {Row[]} */ ([]);
  const flush = () => {
    for (let i = 0; i < Math.max(removed.length, added.length); i++) rows.push({ ...removed[i], ...added[i], same: false });
    removed = [];
    added = [];
  };
  for (const [i, j] of middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail))) {
    if (i >= 0 && j >= 0) {
      flush();
      same(head + i, head + j);
    } else if (i >= 0) removed.push({ old: a[head + i], oldAt: head + i + 1, same: false });
    else added.push({ now: b[head + j], nowAt: head + j + 1, same: false });
  }
  flush();
  for (let i = tail; i > 0; i--) same(a.length - i, b.length - i);
  return rows;
}

/** middle pairs indexes by the longest common sequence; -1 where a side has none. @param {string[]} a @param {string[]} b @returns {[number, number][]} */
function middle(a, b) {
  if (a.length > MOST || b.length > MOST || a.length * b.length > 4e6) return [...a.map((_, i) => /** @type {[number, number]} */ ([i, -1])), ...b.map((_, j) => /** @type {[number, number]} */ ([-1, j]))];
  const w = b.length + 1;
  const best = new Uint16Array((a.length + 1) * w);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) best[i * w + j] = a[i] === b[j] ? best[(i + 1) * w + j + 1] + 1 : Math.max(best[(i + 1) * w + j], best[i * w + j + 1]);
  const out = /** @type {[number, number][]} */ ([]);
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) out.push([i++, j++]);
    else if (i < a.length && (j === b.length || best[(i + 1) * w + j] >= best[i * w + j + 1])) out.push([i++, -1]);
    else out.push([-1, j++]);
  }
  return out;
}

/** folded leaves out runs of equal lines, but for some around each change. @param {Row[]} rows @param {number} [around] @returns {Row[]} */
export function folded(rows, around = 3) {
  const near = new Set();
  rows.forEach((r, i) => {
    if (!r.same) for (let d = -around; d <= around; d++) near.add(i + d);
  });
  for (let i = 0; i < rows.length; i++) if (!near.has(i) && (i === 0 || near.has(i - 1)) && (i + 1 === rows.length || near.has(i + 1))) near.add(i); // a line takes no more room than its mention
  const out = /** @type {Row[]} */ ([]);
  rows.forEach((r, i) => {
    if (near.has(i)) return out.push(r);
    const last = out[out.length - 1];
    if (last?.gap) last.gap++;
    else out.push({ same: true, gap: 1 });
  });
  return out;
}
