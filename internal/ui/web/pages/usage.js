// Usage: requests, tokens and cost, by day, role, method and owner, what is left of the caps, and what owners have stored.
import { html, useEffect, useRef } from '../core/html.js';
import { get } from '../core/api.js';
import { present } from '../core/clock.js';
import { setQuery } from '../core/route.js';
import { can } from '../core/session.js';
import { isDark, theme } from '../core/theme.js';
import { ago, bytes, count, money, percent, words } from '../core/format.js';
import { Page, Section } from '../parts/page.js';
import { Shown, useLoad, Empty } from '../parts/load.js';
import { Table } from '../parts/table.js';
import { Listing, usePage } from '../parts/listing.js';
import uPlot from '../vendor/uplot.js';

// Its own stylesheet is needed here alone.
document.head.append(Object.assign(document.createElement('link'), { rel: 'stylesheet', href: new URL('../vendor/uplot.css', import.meta.url).href }));

const groups = ['role', 'method', 'owner', 'day'];
const spans = { 7: '7 days', 30: '30 days', 90: '90 days' };

/** since is the beginning of the day so many days ago, in UTC. @param {string} days */
const since = (days) => new Date(Math.floor(present().getTime() / 86400e3 - Number(days) + 1) * 86400e3).toISOString();

/** @param {{query: Record<string, string>}} p */
export default function Usage({ query }) {
  const by = groups.includes(query.by) ? query.by : 'role';
  const days = Object.hasOwn(spans, query.days) ? query.days : '30';
  const table = usePage('/v1/usage', { by, since: since(days) });
  const daily = useLoad((signal) => get('/v1/usage', { by: 'day', since: since(days) }, signal), [days]);
  return html`<${Page} title="Usage" note=${can('operate') ? 'Days are in UTC. Saved is what calls would have cost had the model written a program for each.' : 'Your own usage. The total is for tokens with the scope operate.'}>
    <form class="filters" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
      <label>By<select data-search onChange=${(/** @type {any} */ e) => setQuery({ by: e.target.value })}>${groups.map((v) => html`<option value=${v} selected=${v === by}>${v}</option>`)}</select></label>
      <label>Over<select onChange=${(/** @type {any} */ e) => setQuery({ days: e.target.value })}>${Object.entries(spans).map(([v, text]) => html`<option value=${v} selected=${v === days}>${text}</option>`)}</select></label>
    </form>
    <${Shown} of=${daily}>${(/** @type {any} */ d) => html`<${Totals} of=${d} />${d.data.length > 0 ? html`<${Plots} rows=${d.data} currency=${d.currency} days=${days} />` : null}`}</${Shown}>
    ${table.data?.limits.length > 0 && html`<${Caps} of=${table.data.limits} />`}
    <${Rows} of=${table} by=${by} />
    ${daily.data?.storage.length > 0 && html`<${Stored} of=${daily.data} />`}
  </${Page}>`;
}

/** @param {any[]} rows @param {string} name the sum, null where one is not known */
const sum = (rows, name) => rows.reduce((all, r) => (all === null || r[name] === null ? null : all + r[name]), 0);

/** @param {{of: any}} p */
function Totals({ of }) {
  const calls = sum(of.data, 'calls');
  const figures = [
    ['Calls', count(calls)], ['Without the model', calls ? percent(sum(of.data, 'warm_calls') / calls) : '–'], ['Model requests', count(sum(of.data, 'model_requests'))],
    ['Tokens', count(sum(of.data, 'prompt_tokens') + sum(of.data, 'completion_tokens'))], of.currency ? ['Cost', money(sum(of.data, 'cost'), of.currency, 2)] : ['Cost: no prices', '–'],
    ['Saved requests', count(sum(of.data, 'saved_requests'))], ['Saved tokens', count(sum(of.data, 'saved_tokens'))],
    ...(of.currency ? [['Saved cost', money(sum(of.data, 'saved_cost'), of.currency, 2)]] : []),
  ];
  return html`<div class="figures">${figures.map(([name, value]) => html`<div class="figure"><strong>${value}</strong><span class="quiet">${name}</span></div>`)}</div>`;
}

/** @param {{of: ReturnType<typeof usePage>, by: string}} p */
const Rows = ({ of, by }) => html`<${Listing} of=${of} label="Usage by ${by}" id=${(/** @type {any} */ r) => r.key} empty=${html`<${Empty} title="Nothing was used in this time."><p>Calls count here as they end.</p></${Empty}>`} columns=${[
  { title: by[0].toUpperCase() + by.slice(1), wide: true, cell: (/** @type {any} */ r) => r.key ? (by === 'role' ? html`<a href="#/tools/${encodeURIComponent(r.key)}">${r.key}</a>` : r.key) : html`<span class="quiet">the rest</span>` },
  { title: 'Calls', num: true, cell: (/** @type {any} */ r) => count(r.calls) },
  { title: 'Stored', num: true, minor: true, cell: (/** @type {any} */ r) => (r.calls ? percent(r.warm_calls / r.calls) : '–') },
  { title: 'Requests', num: true, cell: (/** @type {any} */ r) => count(r.model_requests) },
  { title: 'Tokens in', num: true, minor: true, cell: (/** @type {any} */ r) => count(r.prompt_tokens) },
  { title: 'Tokens out', num: true, minor: true, cell: (/** @type {any} */ r) => count(r.completion_tokens) },
  { title: of.data?.currency ? `Cost, ${of.data.currency}` : 'Cost', num: true, cell: (/** @type {any} */ r) => money(r.cost) },
  { title: 'Saved requests', num: true, cell: (/** @type {any} */ r) => count(r.saved_requests) },
  { title: 'Saved tokens', num: true, minor: true, cell: (/** @type {any} */ r) => count(r.saved_tokens) },
]} />`;

/** @param {{of: any[]}} p */
const Caps = ({ of }) => html`<${Section} title="Caps" note="Tokens. Over a cap nothing is forged; stored programs go on answering.">
  <${Table} label="Caps" rows=${of} columns=${[
    { title: 'Of', wide: true, cell: (l) => `${words(l.scope)} ${l.name || ''}, a ${l.window}` },
    { title: 'Used', cell: (l) => html`<meter min="0" max=${l.limit} value=${l.used + l.reserved} low=${l.limit * 0.8} high=${l.limit} optimum="0" aria-label="Used of the cap"></meter>` },
    { title: 'Tokens', num: true, cell: (l) => `${count(l.used)} of ${count(l.limit)}` },
    { title: 'Starts again', num: true, minor: true, cell: (l) => ago(l.resets_at) }]} /></${Section}>`;

const kinds = ['files', 'contexts', 'histories', 'values', 'tools', 'examples'];

/** @param {{of: any}} p */
const Stored = ({ of }) => html`<${Section} title="Stored" note="By owner. Deleting sessions and files makes room, and archiving tools.${of.storage_next ? ' recurgentd usage lists all owners.' : ''}">
  <${Table} label="Stored" rows=${of.storage} id=${(/** @type {any} */ r) => r.owner} columns=${[
    { title: 'Owner', wide: true, cell: (r) => r.owner },
    ...kinds.map((kind, i) => ({ title: kind[0].toUpperCase() + kind.slice(1), num: true, minor: i > 3, cell: (/** @type {any} */ r) => bytes(r[kind]) }))]} /></${Section}>`;

const nothing = { calls: 0, warm_calls: 0, model_requests: 0, prompt_tokens: 0, completion_tokens: 0, cost: 0, saved_requests: 0, saved_cost: 0 };

/** Plots show every day, those without a call too. @param {{rows: any[], currency?: string, days: string}} p */
function Plots({ rows, currency, days }) {
  const known = new Map(rows.map((r) => [r.key, r]));
  const x = /** @type {number[]} */ ([]);
  for (let at = Date.parse(since(days)); at <= present().getTime(); at += 86400e3) x.push(at / 1000);
  const all = x.map((at) => known.get(new Date(at * 1000).toISOString().slice(0, 10)) || nothing);
  const priced = all.every((r) => r.cost !== null);
  return html`<div class="plots">
    <${Plot} title="Calls a day" x=${x} over series=${[['all', all.map((r) => r.calls)], ['by stored programs', all.map((r) => r.warm_calls)]]} />
    <${Plot} title="Model requests a day" x=${x} series=${[['sent', all.map((r) => r.model_requests)], ['saved', all.map((r) => r.saved_requests ?? 0)]]} />
    ${priced && all.some((r) => r.cost) ? html`<${Plot} title=${`Cost a day, ${currency}`} x=${x} parts series=${[['cost', all.map((r) => r.cost)], ['saved', all.map((r) => r.saved_cost ?? 0)]]} />`
      : html`<${Plot} title="Tokens a day" x=${x} series=${[['in', all.map((r) => r.prompt_tokens)], ['out', all.map((r) => r.completion_tokens)]]} />`}
  </div>`;
}

const whole = [1, 2, 5].flatMap((n) => Array.from({ length: 13 }, (_, i) => n * 10 ** i)).sort((a, b) => a - b);
const marks = { light: ['#5b90de', '#123a7c'], dark: ['#3f6db3', '#b9d4ff'] };
const HEIGHT = 150; // of a plot, in pixels

const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' });

/** Plot draws two bars for each day, beside each other or, where the second is a part of the first, over each other. What it
 * shows stands in the table too, for those who do not see it.
 * @param {{title: string, x: number[], series: [string, number[]][], over?: boolean, parts?: boolean}} p parts: of money, not whole numbers */
function Plot({ title, x, series, over, parts }) {
  const at = useRef(/** @type {HTMLElement | null} */ (null));
  const data = JSON.stringify([x, series]);
  const mode = isDark() ? 'dark' : 'light';
  useEffect(() => {
    const box = at.current;
    if (!box) return;
    const ink = mode === 'dark' ? '#9daab9' : '#566070';
    const grid = mode === 'dark' ? '#2c343f' : '#dfe3e8';
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: '12px system-ui' };
    const plot = new uPlot({
      width: box.clientWidth, height: HEIGHT, cursor: { show: false }, legend: { show: true, live: false },
      scales: { x: { time: true, range: (u, min, max) => [min - 43200, max + 43200] }, y: { range: (u, min, max) => [0, (parts ? max || 1 : Math.max(max || 0, 1)) * 1.1] } },
      tzDate: (ts) => uPlot.tzDate(new Date(ts * 1e3), 'Etc/UTC'),
      axes: [{ ...axis, grid: { show: false }, size: 30, incrs: [1, 2, 7, 14, 28].map((n) => n * 86400), values: (u, ticks) => ticks.map((t) => day.format(t * 1000)), space: 60 }, { ...axis, ...(parts ? { size: 64, values: (u, ticks) => ticks.map((t) => String(Number(t.toPrecision(6)))) } : { size: 48, incrs: whole, values: (u, ticks) => ticks.map((t) => count(t)) }) }],
      series: [{}, ...series.map(([label], i) => ({ label, stroke: marks[mode][i], fill: marks[mode][i], width: 0, points: { show: false }, paths: uPlot.paths.bars?.({ size: over ? [0.7, 28] : [0.36, 14], align: over ? 0 : i ? 1 : -1 }) }))],
    }, [x, ...series.map(([, v]) => v)], box);
    const fit = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: HEIGHT }));
    fit.observe(box);
    return () => (fit.disconnect(), plot.destroy());
  }, [data, mode, theme.value]);
  return html`<figure class="card"><figcaption><h2>${title}</h2></figcaption><div ref=${at} role="img" aria-label="${title}: ${series.map(([name, v]) => `${name} ${(parts ? money : count)(v.reduce((a, b) => a + b, 0))}`).join(', ')} in all"></div></figure>`;
}
