// Policy: its switches, and what each would change now.
import { html } from '../core/html.js';
import { get, send } from '../core/api.js';
import { can } from '../core/session.js';
import { json, plural, words } from '../core/format.js';
import { Page, Section, Badge } from '../parts/page.js';
import { Shown, useLoad, Failure } from '../parts/load.js';
import { Action } from '../parts/action.js';
import { useDraft } from '../parts/draft.js';
import { Table } from '../parts/table.js';
import { toCall, toMethod } from '../parts/calls.js';
import { Approve, approves } from '../parts/approve.js';

const PATCH = { 'Content-Type': 'application/merge-patch+json' };
const LOOKED = 500; // calls that the dry run looks at

/** What each switch does, in groups. Members that are not named here show under Others. @type {[string, Record<string, string>][]} */
const groups = [
  ['Which program answers', {
    artifact_read_enabled: 'Stored programs answer.', artifact_read_roles: 'Roles whose stored programs answer; empty means all.', force_generation: 'The model writes a program at every call.',
    approval_required: 'A new program waits for a person before its first run.', fixtures_enabled: 'A successor must reproduce earlier answers before it serves.',
  }],
  ['Repair and correction', {
    repair_enabled: 'Failing programs are repaired.', correction: 'When the model corrects a program whose answer was judged wrong.', drift_after: 'Failures in a row after good fetches that count as drift.',
    max_repairs_before_regen: 'Repairs before a program is written from scratch.', backoff: 'How long failed forging waits.', degraded: 'When a program counts as degraded.',
  }],
  ['What a call may use', {
    max_generation_attempts: 'Programs that the model may write for one call.', guardrail_recovery_budget: 'Retries after a program that is not allowed.', execution_repair_budget: 'Retries after a failing run.', outcome_repair_budget: 'Retries after a broken contract.',
    delegation_depth: 'How deep calls nest.', nested_call_budget: 'Calls that a program may make.', predict_budget: 'Questions to the model that a program may ask.', fetches_per_call: 'Fetches that a program may make.', file_preview_bytes: 'How much of a file a model is shown; 0: nothing.', effects: 'What is not in a manifest is counted, or denied.',
    new_reach: 'A successor that reaches what the program before it never did waits for a person, or serves.',
  }],
];
const rest = /** @type {Record<string, string>} */ ({
  known_tools_prompt_limit: 'Tools that a prompt shows.', history_preview_limit: 'Turns of the history that a prompt shows.', dispatch_methods: 'Methods whose program is written for each question.', weak_success: 'Values that count as a weak success.',
  user_correction: 'When the same question again counts as a correction.', promotion: 'When a program becomes durable.', redact_keys: 'Names whose values are masked.', retention: 'How long, and how much, is kept; 0 is no bound.',
  storage: 'The part of what may be stored that one owner may use; 0 is half with access tokens, else all.', recommendations: 'How much evidence a recommendation needs.', maintenance: 'When unused tools are archived or deleted; 0 hours is never.', mcp: 'Methods that agents see: all, or those whose program is durable or approved.', native: 'When programs are compiled.', spend: 'Caps of tokens; 0 is none. Changing them needs the scope admin.',
});
const choices = /** @type {Record<string, string[]>} */ ({ correction: ['background', 'next_call', 'manual'], effects: ['observe', 'enforce'], new_reach: ['ask', 'allow'], 'maintenance.mode': ['archive', 'delete'], 'mcp.expose': ['all', 'durable', 'approved'] });
const shares = ['rate', 'weak_rate', 'min_overlap', 'contract_pass', 'owner_share'];

/** member names a part of a switch, with its unit. @param {string} name */
const member = (name) => words(name).replace('mib', 'MiB').replace('cpu', 'CPU') + (shares.includes(name) ? ', 0 to 1' : '');

export default function Policy() {
  const of = useLoad((signal) => get('/v1/policy', {}, signal), []);
  return html`<${Page} title="Policy" note=${can('operate') ? 'Change a switch to see which of the last calls it would have decided differently. Nothing takes effect until you confirm. Every change is in the audit trail and can be undone.' : 'Changing the policy needs the scope operate.'}><${Shown} of=${of}>${(/** @type {any} */ p) => html`<${Switches} policy=${p} reload=${of.reload} />`}</${Shown}></${Page}>`;
}

/** What was typed for a switch: its value, where that is one, its text, where that is JSON, and what was stored when it was begun. @typedef {{value?: any, text?: string, was: any}} Typed */

const some = (/** @type {[string, Typed][]} */ all) => (all.length ? Object.fromEntries(all) : undefined);
const same = (/** @type {any} */ a, /** @type {any} */ b) => JSON.stringify(a) === JSON.stringify(b);

/** @param {{policy: any, reload: () => void}} p */
function Switches({ policy, reload }) {
  const [draft, setDraft] = useDraft('/v1/policy');
  const typed = Object.entries(/** @type {Record<string, Typed>} */ (draft || {}));
  const patch = Object.fromEntries(typed.filter(([, t]) => 'value' in t).map(([k, t]) => [k, t.value]));
  const moved = typed.filter(([k, t]) => !same(t.was, policy[k]));
  const named = groups.flatMap(([, g]) => Object.keys(g));
  const others = Object.fromEntries(Object.keys(policy).filter((k) => !named.includes(k) && k !== 'redact_version').map((k) => [k, rest[k] || '']));
  const set = (/** @type {string} */ k, /** @type {Omit<Typed, 'was'>} */ t) => {
    const others = typed.filter(([name]) => name !== k);
    setDraft(some('value' in t && same(t.value, policy[k]) ? others : [...others, [k, { ...t, was: draft?.[k] ? draft[k].was : policy[k] }]]));
  };
  const sends = Object.keys(patch).length > 0;
  return html`${typed.length > 0 && html`<div class="unsaved"><${Section} title=${`${plural(typed.length, 'change')} not saved yet`} actions=${html`<button type="button" onClick=${() => setDraft(undefined)}>Discard</button>
      ${sends && html`<${Action} label="Change the policy" method="PATCH" path="/v1/policy" body=${patch} headers=${PATCH} scope="operate" main confirm=${html`It takes effect at once: <code>${json(patch, 300)}</code>`} onDone=${() => (setDraft((/** @type {any} */ now) => some(Object.entries(now || {}).filter(([k, t]) => !('value' in t) || !same(t.value, patch[k])))), reload())} />`}`}>
      ${moved.map(([k]) => html`<p class="wrong" role="status">The stored <code>${k}</code> was changed since you typed. It is now <code>${json(policy[k], 300)}</code></p>`)}
      ${sends && html`<${DryRun} patch=${patch} />`}</${Section}></div>`}
    ${[...groups, /** @type {[string, Record<string, string>]} */ (['Others', others])].map(([title, members]) => html`<${Section} title=${title}><div class="switches">
      ${Object.entries(members).filter(([k]) => k in policy).sort(([a], [b]) => broad(policy[a]) - broad(policy[b])).map(([k, what]) => html`<${Switch} key=${k} name=${k} what=${what} typed=${draft?.[k]} was=${policy[k]} onChange=${(/** @type {any} */ t) => set(k, t)} />`)}
    </div></${Section}>`)}`;
}

/** flat says whether a value is an object of numbers, texts and switches, which have a field each. @param {any} v */
const flat = (v) => v && typeof v === 'object' && !Array.isArray(v) && Object.values(v).every((m) => typeof m !== 'object');

/** Scalar is the field of a switch, a choice, a number or a text. @param {{of: string, value: any, off: boolean, onChange: (v: any) => void}} p */
const Scalar = ({ of, value, off, onChange }) => choices[of] ? html`<select disabled=${off} onChange=${(/** @type {any} */ e) => onChange(e.target.value)}>${choices[of].map((v) => html`<option value=${v} selected=${v === value}>${words(v)}</option>`)}</select>`
  : typeof value === 'boolean' ? html`<input type="checkbox" role="switch" checked=${value} disabled=${off} onChange=${(/** @type {any} */ e) => onChange(e.target.checked)} />`
  : typeof value === 'number' ? html`<input type="number" step="any" value=${value} disabled=${off} onInput=${(/** @type {any} */ e) => e.target.value !== '' && onChange(Number(e.target.value))} />`
  : html`<input value=${value} disabled=${off} spellcheck=${false} onInput=${(/** @type {any} */ e) => onChange(e.target.value)} />`;

/** broad ones stand below the others, so that these leave no gaps. @param {any} v */
const broad = (v) => Number(!!v && typeof v === 'object');

/** @param {{name: string, what: string, typed?: Typed, was: any, onChange: (t: Omit<Typed, 'was'>) => void}} p */
function Switch({ name, what, typed, was, onChange }) {
  const bad = !!typed && !('value' in typed);
  const value = typed && !bad ? typed.value : was;
  const off = !can(name === 'spend' ? 'admin' : 'operate');
  const label = html`<span><code>${name}</code>${what && html`<span class="quiet">${what}</span>`}</span>`;
  const differs = !same(value, was);
  const to = (/** @type {any} */ value) => onChange({ value });
  const read = (/** @type {any} */ e) => {
    const text = e.target.value;
    let value;
    try {
      value = JSON.parse(text);
    } catch {
      // It has no type then.
    }
    onChange(typeof value === typeof was ? { text, value } : { text });
  };
  const look = ['switch', differs && 'differs', was && typeof was === 'object' && 'broad'].filter(Boolean).join(' ');
  if (flat(was)) return html`<div class=${look} role="group" aria-label=${name}>${label}<span class="value members">${Object.keys(was).map((k) => html`<label key=${k}>${member(k)}<${Scalar} of="${name}.${k}" value=${value[k]} off=${off} onChange=${(/** @type {any} */ v) => to({ ...value, [k]: v })} /></label>`)}</span></div>`;
  const input = typeof was !== 'object' ? html`<${Scalar} of=${name} value=${value} off=${off} onChange=${to} />`
    : html`<textarea rows=${Math.min(8, Math.ceil(JSON.stringify(value).length / 100))} spellcheck=${false} disabled=${off} value=${typed?.text ?? JSON.stringify(value)} onInput=${read} aria-invalid=${bad ? 'true' : undefined}></textarea>`;
  return html`<label class=${look}>${label}<span class="value">${input}${bad && html`<span class="wrong" role="alert">This is not JSON of the same type.</span>`}</span></label>`;
}

/** DryRun runs the selection of the last calls again under the patch. @param {{patch: Record<string, any>}} p */
function DryRun({ patch }) {
  const of = useLoad((signal) => can('operate') ? send('POST', '/v1/policy/simulate', { body: { patch, calls: LOOKED }, signal }) : Promise.resolve(null), [JSON.stringify(patch)]);
  const d = of.data;
  if (of.error && !of.loading) return html`<${Failure} error=${of.error} />`;
  if (!d || of.loading) return html`<p class="quiet" role="status">Simulating on the last calls …</p>`;
  return html`<p role="status">${d.changed.length ? html`Of the last ${plural(d.looked_at, 'call')}, <strong>${d.changed.length}</strong> would have been decided differently.` : d.looked_at === 0 ? 'There are no calls yet to simulate this on.' : d.looked_at === 1 ? 'The only call would have been decided the same.' : `None of the last ${plural(d.looked_at, 'call')} would have been decided differently.`}
      ${d.not_known > 0 && html` <span class="quiet">For ${d.not_known} too little is kept to decide.</span>`}</p>
    ${d.changed.length > 0 && html`<${Table} label="Calls that would change" rows=${d.changed.slice(0, 20)} id=${(/** @type {any} */ c) => c.call_id} columns=${[
      { title: 'Call', wide: true, cell: (/** @type {any} */ c) => html`<a href=${toCall(c.call_id)}>${c.role}.${c.method}</a>` },
      { title: 'Was', named: true, cell: (/** @type {any} */ c) => decision(c.was) }, { title: 'Would be', named: true, cell: (/** @type {any} */ c) => decision(c.would_be) }]} />`}
    ${d.approval && html`<${Approvals} of=${d.approval} onDone=${of.reload} />`}`;
}

/** Approvals says which programs would wait for a person, and approves those that have proved themselves. @param {{of: any, onDone: () => void}} p */
function Approvals({ of, onDone }) {
  if (!of.waiting) return html`<p role="status">Every program is approved: none would wait.</p>`;
  const durable = of.programs.slice(0, of.durable);
  return html`<p role="status"><strong>${plural(of.waiting, 'program')}</strong> would wait for a person’s approval, and answer no call before. ${of.durable ? `${of.durable} of them ${of.durable === 1 ? 'is' : 'are'} durable.` : 'None of them is durable.'}</p>
    <details><summary>Which</summary><ul>${of.programs.slice(0, 100).map((/** @type {any} */ p) => html`<li><a href=${toMethod(p.role, p.method)}>${p.role}.${p.method}</a> <span class="quiet">${p.generation}</span> <${Badge} text=${p.lifecycle_state} /></li>`)}</ul>${of.waiting > 100 && html`<p class="quiet">The first 100.</p>`}</details>
    ${durable.length > 0 && html`<div class="buttons"><${Approve} label=${durable.length === 1 ? 'Approve the durable one' : `Approve the ${durable.length} durable ones`} of=${durable.map(approves)} onDone=${onDone} /></div>`}`;
}

/** @param {any} s */
const decision = (s) => html`<${Badge} text=${s.decision} /> <span class="quiet">${words(s.reason)} ${s.generation || ''}</span>`;
