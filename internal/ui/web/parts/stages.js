// The stages of a call as bars: those that were seen as they happened, with their times.
import { html, useEffect, useState } from '../core/html.js';
import { path } from '../core/api.js';
import { entry } from '../core/session.js';
import { follow } from '../core/stream.js';
import { duration, words, plural } from '../core/format.js';
import { stageNames } from './calls.js';

/** useStages follows a call that runs until it ends. @param {string} id @param {boolean} running @param {() => void} onEnd */
export function useStages(id, running, onEnd) {
  const [stages, setStages] = useState(/** @type {{type: string, data: any, at: number}[]} */ ([]));
  useEffect(() => {
    if (!running) return;
    const stop = new AbortController();
    setStages([]);
    follow(path`/v1/calls/${id}/events`, {
      signal: stop.signal, once: true,
      onEvent: (e) => {
        setStages((s) => [...s, { type: e.type, data: e.data, at: performance.now() }]);
        if (e.type === 'call.finished') onEnd();
      },
    });
    return () => stop.abort();
  }, [id, running, entry.value]);
  return stages;
}

/** Stages shows them. @param {{of: {type: string, data: any, at: number}[], running: boolean}} p */
export function Stages({ of, running }) {
  const [now, setNow] = useState(performance.now());
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => setNow(performance.now()), 250);
    return () => clearInterval(timer);
  }, [running]);
  if (!of.length) return html`<p role="status">It runs. No stage has been reported yet.</p>`;
  const start = of[0].at;
  const end = running ? Math.max(now, of[of.length - 1].at) : of[of.length - 1].at;
  const whole = Math.max(end - start, 1);
  return html`<ol class="stages" aria-label="Stages">${of.filter((s) => s.type !== 'call.finished').map((s, i) => {
    const to = of[i + 1]?.at ?? end;
    const live = running && i === of.length - 1;
    return html`<li><span class="name">${stageNames[s.type] || s.type} <span class="quiet">${detail(s.data)}</span></span>
      <span class="track"><span class="stage ${s.type.replace('call.', '')}" style=${{ marginLeft: `${((s.at - start) / whole) * 100}%`, width: `${Math.max(((to - s.at) / whole) * 100, 0.5)}%` }}></span></span>
      <span class="num" aria-live=${live ? 'off' : undefined}>${duration(to - s.at)}${live ? ' …' : ''}</span></li>`;
  })}</ol><p class="quiet">Times as this page saw them.</p>`;
}

/** @param {any} d */
const detail = (d) => words([d?.trigger || d?.kind || d?.decision || d?.stage, d?.error_message || d?.reason].filter((v) => typeof v === 'string' && v).join(': '));

/** What a log entry has of the stages, in their order. @type {[string, string, string][]} */
const recorded = [['queue_ms', 'Waiting for its turn', 'queued'], ['select_ms', 'Selecting', 'selected'], ['forge_ms', 'Asking the model', 'forging'], ['gate_ms', 'Checking the program', 'gate'], ['run_ms', 'Running', 'running'], ['judge_ms', 'Judging the value', 'judge']];

/** Recorded shows how long each stage of an ended call took, one after the other. @param {{of: Record<string, number>}} p */
export function Recorded({ of }) {
  const all = recorded.filter(([k]) => of[k] > 0);
  const whole = Math.max(all.reduce((sum, [k]) => sum + of[k], 0), 0.001);
  let start = 0;
  return html`<ol class="stages" aria-label="Stages">${all.map(([k, name, kind]) => {
    const at = start;
    start += of[k];
    return html`<li><span class="name">${name}</span><span class="track"><span class="stage ${kind}" style=${{ marginLeft: `min(${(at / whole) * 100}%, 100% - 2px)`, width: `${(of[k] / whole) * 100}%` }}></span></span><span class="num">${duration(of[k])}</span></li>`;
  })}</ol>`;
}

/** Attempts shows what an ended call records of its stages: which attempts failed, and where. @param {{call: any}} p */
export const Attempts = ({ call }) => html`${call.stages && html`<${Recorded} of=${call.stages} />`}
  ${call.attempt_failures?.length > 0 && html`<ol class="attempts">
    ${call.attempt_failures.map((/** @type {any} */ f, /** @type {number} */ i) => html`<li><strong>Attempt ${i + 1} failed at ${words(f.stage)}</strong> <span class="quiet">${words(f.error_type)}${f.failure_class ? `, ${f.failure_class}` : ''}</span><pre>${f.error_message}</pre></li>`)}
  </ol>`}
  <p>${call.generation_attempt > 0 ? `The model was asked for ${plural(call.generation_attempt, 'program')}` : call.usage?.model_requests ? 'The model wrote no program' : 'The model was not asked for a program'}; ${duration(call.duration_ms)} in all.</p>`;
