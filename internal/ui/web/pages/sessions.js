// Sessions: their context and history, and calls by hand.
import { html, useRef, useState } from '../core/html.js';
import { decode, get, path, send, Exact } from '../core/api.js';
import { href, go } from '../core/route.js';
import { can } from '../core/session.js';
import { ago, args, count, duration, fullTime, source, time, words } from '../core/format.js';
import { Page, Section, Facts, Badge } from '../parts/page.js';
import { absent, Shown, useLoad, Empty, Failure } from '../parts/load.js';
import { Listing, usePage } from '../parts/listing.js';
import { Action, Curl, Submit } from '../parts/action.js';
import { Unsaved, useDraft, useForm } from '../parts/draft.js';
import { Json } from '../parts/value.js';
import { Attach, refer } from '../parts/files.js';
import { Result } from '../parts/result.js';
import { State, toCall } from '../parts/calls.js';

/** @param {{parts: string[]}} p */
export default function Sessions({ parts }) {
  if (parts[0] === 'new') return can('call') ? html`<${New} />` : html`<${Page} title="New session"><${Empty} title="Starting a session needs the scope call." /></${Page}>`;
  return parts.length ? html`<${Session} id=${parts[0]} />` : html`<${All} />`;
}

const toSession = (/** @type {string} */ id) => href(['sessions', id]);
const start = () => can('call') && html`<a class="button" href="#/sessions/new">New session</a>`;

function All() {
  const of = usePage('/v1/sessions', {});
  return html`<${Page} title="Sessions" note="A session is a conversation with a role: it keeps a context and the history of its calls." actions=${start()}>
    <${Listing} of=${of} label="Sessions" id=${(/** @type {any} */ s) => s.id} columns=${[
      { title: 'Role', wide: true, cell: (/** @type {any} */ s) => html`<a href=${toSession(s.id)}>${s.role || s.id}</a> ${s.ephemeral ? html`<${Badge} text="ephemeral" />` : null}` },
      { title: 'Session', minor: true, cell: (/** @type {any} */ s) => html`<code class="quiet">${s.id}</code>` },
      { title: 'Owner', minor: true, cell: (/** @type {any} */ s) => s.owner || '' },
      { title: 'Calls', num: true, cell: (/** @type {any} */ s) => count(s.history_size) },
      { title: 'Last change', num: true, cell: (/** @type {any} */ s) => ago(s.updated_at) },
    ]} empty=${html`<${Empty} title="No sessions yet."><p>A session keeps a context and a history of its calls.</p>${can('call') && html`<p><a href="#/sessions/new">Start one</a></p>`}</${Empty}>`} />
  </${Page}>`;
}

function New() {
  const [role, setRole] = useState('calculator');
  const [state, setState] = useState(/** @type {{busy?: boolean, error?: any}} */ ({}));
  const submit = async (/** @type {Event} */ e) => {
    e.preventDefault();
    if (state.busy) return;
    setState({ busy: true });
    try {
      const session = await send('POST', '/v1/sessions', { body: { role } });
      go(toSession(session.id), { replace: true });
    } catch (error) {
      setState({ error });
    }
  };
  return html`<${Page} title="New session" crumbs=${[{ href: href(['sessions']), text: 'Sessions' }]}>
    <form class="fields card narrow" onSubmit=${submit}>
      <label><span>Role <span class="quiet">the tool whose methods you call, any name</span></span><input value=${role} required maxlength="200" onInput=${(/** @type {any} */ e) => setRole(e.target.value)} autofocus /></label>
      ${state.error && html`<${Failure} error=${state.error} />`}
      <div class="buttons"><span class="action"><${Submit} busy=${state.busy}>Start</${Submit}><${Curl} method="POST" path="/v1/sessions" body=${{ role }} of="Start" /></span></div>
    </form></${Page}>`;
}

/** @param {{id: string}} p */
function Session({ id }) {
  const of = useLoad((signal) => get(path`/v1/sessions/${id}`, {}, signal), [id]);
  const context = useLoad((signal) => get(path`/v1/sessions/${id}/context`, {}, signal), [id]);
  const history = usePage(path`/v1/sessions/${id}/history`, { order: 'desc', previews: true }, 30);
  const again = () => (of.reload(), context.reload(), history.reload());
  const [, setTyped] = useDraft(calls(id));
  return html`<${Page} title=${of.data?.role || 'Session'} crumbs=${[{ href: href(['sessions']), text: 'Sessions' }]}
      actions=${of.data && html`<a class="button" href=${href(['live'], { log: 1, session: id })}>Calls</a><${Action} label="Delete" method="DELETE" path=${path`/v1/sessions/${id}`} scope="call" danger confirm="The session is deleted, and the arguments and values of its calls are erased everywhere. This cannot be undone." onDone=${() => (setTyped(undefined), go(href(['sessions']), { replace: true }))} />`}>
    ${absent(of.error) ? html`<${Empty} title="There is no such session."><p>It was deleted or has expired, or it belongs to somebody else.</p><p><a href=${href(['sessions'])}>Sessions</a></p></${Empty}>`
    : html`<${Shown} of=${of}>${(/** @type {any} */ s) => html`<div class="columns"><div>
        ${can('call') && html`<${Talk} session=${s} onDone=${again} />`}
        <${Section} title="History"><${Listing} of=${history} label="History" id=${(/** @type {any} */ r) => String(r.seq)} columns=${[
          { title: 'Call', wide: true, cell: (/** @type {any} */ r) => html`<span style=${{ paddingLeft: `${(r.depth || 0) * 14}px` }}><a href=${toCall(r.call_id)}>${r.role === s.role ? '' : `${r.role}.`}${r.method_name}</a><span class="args">(${args(r.args, r.kwargs, 50)})</span></span>` },
          { title: 'Outcome', cell: (/** @type {any} */ r) => html`<${State} of=${{ outcome_status: r.outcome_summary.status, outcome_error_type: r.outcome_summary.error_type, outcome_value_class: r.outcome_summary.value_class, value_preview: r.value_preview }} />` },
          { title: 'Took', num: true, minor: true, cell: (/** @type {any} */ r) => duration(r.duration_ms) },
          { title: 'When', num: true, minor: true, cell: (/** @type {any} */ r) => html`<time datetime=${r.timestamp} title=${fullTime(r.timestamp)}>${time(r.timestamp)}</time>` },
        ]} empty=${html`<p class="quiet">It has no calls yet.</p>`} /></${Section}>
      </div><div>
        <${Section} title="Facts"><${Facts} of=${[['Session', html`<code>${s.id}</code>`], ['Owner', s.owner], ['Model', s.model], ['Began', fullTime(s.created_at)], ['Last change', ago(s.updated_at)], ['Calls', count(s.history_size)], ['Kept', s.ephemeral ? 'a short time: it is ephemeral' : 'as the policy says']]} /></${Section}>
        <${Section} title="Context" note="What programs remember between calls."><${Shown} of=${context}>${(/** @type {any} */ { conversation_history: _, ...c }) => Object.keys(c).length ? html`<${Json} value=${c} />` : html`<p class="quiet">It is empty.</p>`}</${Shown}></${Section}>
        ${s.contract && Object.values(s.contract).some(Boolean) && html`<${Section} title="Contract"><${Json} value=${s.contract} /></${Section}>`}
      </div></div>`}</${Shown}>`}
  </${Page}>`;
}

const calls = (/** @type {string} */ id) => path`/v1/sessions/${id}/calls`;

/** byName says whether a JSON value is the arguments by name, and not a single one, as the reference to a file is. @param {any} v */
const byName = (v) => v && typeof v === 'object' && !Array.isArray(v) && !(v instanceof Exact) && !('$file' in v);

/** @param {string} text */
const safely = (text) => {
  try {
    return decode(text);
  } catch {
    return undefined;
  }
};

/** Talk makes a call in the session, and leads to it while it runs. @param {{session: any, onDone: () => void}} p */
function Talk({ session, onDone }) {
  const [called, setCalled] = useState({ method: '', input: '', role: '' });
  const url = calls(session.id);
  const [{ method, input, role }, change, typed, setTyped] = useForm(url, called);
  const [state, setState] = useState(/** @type {{busy?: boolean, error?: any, reply?: any}} */ ({}));
  const text = useRef(input);
  text.current = input;
  let list = /** @type {any} */ ([]);
  let named = /** @type {any} */ ({});
  let bad = '';
  try {
    list = decode(`[${input}]`);
    if (list.length === 1 && byName(list[0])) [named, list] = [list[0], []];
  } catch {
    if (/["[\]{},]/.test(input)) bad = 'Arguments are JSON values with commas between, such as 2, "text", or an object for arguments by name.';
    else list = [input.trim()]; // as on the command line
  }
  const body = { method: method.trim(), args: list, kwargs: named, ...(role.trim() && { role: role.trim() }) };
  const submit = async (/** @type {Event} */ e) => {
    e.preventDefault();
    if (state.busy) return;
    if (bad) return setState({});
    setState({ busy: true });
    try {
      const reply = await send('POST', url, { body, headers: { Prefer: 'respond-async, wait=2' } });
      setCalled({ method, input, role });
      setTyped((/** @type {any} */ now) => (now === typed ? undefined : now));
      if (reply.status) return go(toCall(reply.call_id));
      setState({ reply });
      onDone();
    } catch (error) {
      setState({ error });
    }
  };
  const set = (/** @type {string} */ name) => (/** @type {any} */ e) => change({ [name]: e.target.value });
  const attach = (/** @type {any} */ file) => {
    const now = text.current.trim();
    change({ input: (text.current = now.endsWith('}') && now.startsWith('{') && byName(safely(now)) ? `${now.slice(0, -1).trimEnd()}${now.length > 2 ? ', ' : ''}${JSON.stringify(file.name || 'file')}: ${refer(file)}}` : now ? `${now}, ${refer(file)}` : refer(file)) });
  };
  const o = state.reply?.outcome;
  return html`<${Section} title="Call a method">
    <form class="talk" onSubmit=${submit}>
      <label>Method<input value=${method} required placeholder="add" spellcheck=${false} onInput=${set('method')} data-search /></label>
      <label class="grow">Arguments<input value=${input} placeholder='2, 3 or some text' spellcheck=${false} onInput=${set('input')} aria-invalid=${bad ? 'true' : undefined} /></label>
      <label>Role<input value=${role} placeholder=${session.role} spellcheck=${false} onInput=${set('role')} /></label>
      <${Attach} session=${session.id} onFile=${attach} />
      <span class="action"><${Submit} busy=${state.busy}>Call</${Submit}><${Curl} method="POST" path=${url} body=${body} of="Call" /></span>${typed && html`<${Unsaved} onDiscard=${() => setTyped(undefined)} />`}
    </form>
    ${bad && html`<p class="wrong" role="alert">${bad}</p>`}
    <p class="quiet">A file can be dropped on the form, too: it is uploaded, and erased with the session.</p>
    ${state.busy && html`<p class="quiet" role="status">Running. After two seconds the page of the call opens.</p>`}
    ${state.error && html`<${Failure} error=${state.error} />`}
    ${state.reply && html`<div class="reply" role="status"><p><${Badge} text=${o.status} /> <a href=${toCall(state.reply.call_id)}>${state.reply.role}.${state.reply.method}</a> <span class="quiet">${source(state.reply.program?.source)} ${duration(state.reply.duration_ms)}</span></p>
      ${o.ok ? html`<${Result} value=${o.value} name=${state.reply.method} lines=${10} />` : html`<p><strong>${words(o.error_type)}</strong> ${o.error_message}</p>`}</div>`}
  </${Section}>`;
}
