// What lists of calls show of each.
import { html } from '../core/html.js';
import { href } from '../core/route.js';
import { args, duration, fullTime, source, time, words } from '../core/format.js';
import { Badge } from './page.js';

/** @typedef {import('../core/types').LogEntry} LogEntry */

/** toCall, toMethod and toTool are addresses. @param {string} id */
export const toCall = (id) => href(['calls', id]);
/** @param {string} role @param {string} method @param {Record<string, any>} [query] */
export const toMethod = (role, method, query) => href(['tools', role, method], query);
/** @param {string} role */
export const toTool = (role) => href(['tools', role]);

/** named is a method as programs write it. @param {{role: string, method: string}} c */
export const named = (c) => `${c.role}.${c.method}`;

/** erased says whether a call's arguments and value are gone with its session. @param {any} c */
export const erased = (c) => c.replayable_code === 'erased';

/** asked is a call's arguments as one writes them. @param {any} c @param {number} most */
export const asked = (c, most) => (erased(c) ? '…' : args(c.args, c.kwargs, most));

/** What a call does, by the type of its newest event. */
export const stageNames = /** @type {Record<string, string>} */ ({ 'call.queued': 'Waiting for a place', 'call.selected': 'Selected', 'call.forging': 'Forging', 'call.gate': 'Checking the program', 'call.building': 'Compiling the program', 'call.running': 'Running', 'call.attempt_failed': 'Attempt failed', 'call.finished': 'Ended' });

/** State is how a call ended, with the beginning of its value where a list has it, or that it runs, and how far it is. @param {{of: LogEntry}} p */
export const State = ({ of }) => html`<${Badge} text=${of.outcome_status} />
  ${of.stage && of.stage !== 'call.running' && html` <span class="quiet">${stageNames[of.stage] || of.stage}</span>`}
  ${of.value_preview ? html` <code class="value" title=${of.value_preview}>${of.value_preview}</code>` : (of.outcome_error_type || of.outcome_value_class) && html` <span class="quiet">${words(of.outcome_error_type || of.outcome_value_class)}</span>`}
  ${of.weak_success && html` <${Badge} text="weak" />`}
  ${of.verdict && html` <${Badge} text=${of.verdict} />`}`;

/** origin says where the program came from, in a word. @param {LogEntry} c */
export const origin = (c) => (c.outcome_status === 'running' && !c.program_source ? '' : source(c.program_source || 'none'));

/** columns of a table of calls. @type {import('./table.js').Column[]} */
export const columns = [
  { title: 'Call', wide: true, cell: (c) => html`<span style=${{ paddingLeft: `${(c.indent || 0) * 18}px` }}>${c.indent ? html`<span class="branch" aria-hidden="true">└ </span>` : null}<a href=${toCall(c.call_id)}>${named(c)}</a><span class="args">(${asked(c, 90)})</span></span>` },
  { title: 'Outcome', cell: (c) => html`<${State} of=${c} />` },
  { title: 'Program', minor: true, cell: (c) => html`${origin(c)} ${c.generation && html`<span class="quiet">${c.generation}</span>`}` },
  { title: 'Took', num: true, cell: (c) => (c.outcome_status === 'running' ? '' : duration(c.duration_ms)) },
  { title: 'When', num: true, cell: (c) => html`<time datetime=${c.timestamp} title=${fullTime(c.timestamp)}>${time(c.timestamp)}</time>` },
];
