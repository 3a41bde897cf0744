// Delegation trees of calls.

/** Calls arrive in the order in which they end, nested ones before the one that made them.
 * forest orders them newest tree first, each nested call below its parent, with its depth below the first shown as indent. A nested
 * call whose parent is not there is a tree of its own.
 * @template {{call_id: string, parent_call_id?: string, timestamp: string}} C
 * @param {C[]} calls @returns {(C & {indent: number})[]} */
export function forest(calls) {
  const known = new Map(calls.map((c) => [c.call_id, c]));
  const below = /** @type {Map<string, C[]>} */ (new Map());
  const roots = [];
  for (const c of calls) {
    const parent = c.parent_call_id && known.has(c.parent_call_id) ? c.parent_call_id : '';
    if (!parent) roots.push(c);
    else below.set(parent, [...(below.get(parent) || []), c]);
  }
  const out = /** @type {(C & {indent: number})[]} */ ([]);
  const add = (/** @type {C} */ c, /** @type {number} */ indent) => {
    out.push({ ...c, indent });
    for (const child of (below.get(c.call_id) || []).sort(byTime)) add(child, indent + 1);
  };
  for (const c of roots.sort((a, b) => byTime(b, a))) add(c, 0);
  return out;
}

/** @param {{timestamp: string, call_id: string}} a @param {{timestamp: string, call_id: string}} b */
const byTime = (a, b) => (a.timestamp < b.timestamp ? -1 : a.timestamp > b.timestamp ? 1 : a.call_id < b.call_id ? -1 : 1);
