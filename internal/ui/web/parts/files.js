// Files: what a value refers to, to be saved and looked at, and files that are given to a call.
import { html, useEffect, useMemo, useRef, useState } from '../core/html.js';
import { get, path } from '../core/api.js';
import { bounds, content, framed, nonce, references, save, shows, table, textOf, upload } from '../core/files.js';
import { can } from '../core/session.js';
import { bytes, count } from '../core/format.js';
import { Failure, useLoad } from './load.js';
import { Long } from './value.js';

/** Files lists the files that a value refers to; a single small one is shown at once. @param {{of: any, open?: boolean}} p */
export function Files({ of, open }) {
  const ids = useMemo(() => references(of), [of]);
  if (!ids.length) return null;
  return html`<ul class="plain files" aria-label="Files">${ids.map((id) => html`<${Entry} key=${id} id=${id} open=${open && ids.length === 1} />`)}</ul>`;
}

/** @param {{id: string, open?: boolean}} p */
function Entry({ id, open }) {
  const of = useLoad((signal) => get(path`/v1/files/${id}`, {}, signal), [id]);
  const [shown, setShown] = useState(/** @type {boolean | undefined} */ (undefined));
  const [state, setState] = useState(/** @type {{busy?: boolean, error?: any}} */ ({}));
  const file = of.data;
  if (!file) return html`<li>${of.error ? html`<code>${id}</code> <span class="quiet">It is not kept any more, or belongs to somebody else.</span>` : html`<span class="quiet">Loading …</span>`}</li>`;
  const name = file.name || file.id;
  const kind = shows(file.media_type, file.name);
  const large = (kind === 'page' || kind === 'drawing' || kind === 'picture') && file.bytes > bounds[kind];
  const visible = shown ?? (open && file.bytes <= 1 << 20);
  const download = async () => {
    if (state.busy) return;
    setState({ busy: true });
    try {
      save(await content(id), name);
      setState({});
    } catch (error) {
      setState({ error });
    }
  };
  return html`<li><div class="buttons"><strong>${name}</strong> <span class="quiet">${file.media_type}, ${bytes(file.bytes)}</span>
      ${kind && !large && html`<button type="button" aria-expanded=${visible ? 'true' : 'false'} aria-label="${visible ? 'Hide' : 'Show'} ${name}" onClick=${() => setShown(!visible)}>${visible ? 'Hide' : 'Show'}</button>`}
      <button type="button" aria-label="Download ${name}" aria-busy=${state.busy ? 'true' : undefined} onClick=${download}>Download</button></div>
    ${state.error && html`<${Failure} error=${state.error} />`}
    ${visible && kind && !large && html`<${Read} file=${file} kind=${kind} />`}</li>`;
}

/** Read reads what is shown of a file. @param {{file: any, kind: string}} p */
function Read({ file, kind }) {
  const part = kind === 'text' || kind === 'table';
  const of = useLoad(async (signal) => {
    const blob = await content(file.id, { most: part ? bounds[kind] : undefined, signal });
    return kind === 'picture' || kind === 'drawing' ? blob : textOf(new Uint8Array(await blob.arrayBuffer()));
  }, [file.id, kind]);
  if (of.error) return html`<${Failure} error=${of.error} retry=${of.reload} />`;
  if (of.data === undefined) return html`<p class="quiet" role="status">Loading …</p>`;
  return html`<${Preview} kind=${kind} of=${of.data} name=${file.name || file.id} type=${file.media_type} />
    ${part && file.bytes > bounds[kind] && html`<p class="quiet">These are the first ${bytes(bounds[kind])} of it.</p>`}`;
}

/** Preview shows a text or bytes as what they are; see shows. @param {{kind: string, of: any, name: string, type?: string}} p */
export function Preview({ kind, of, name, type }) {
  if (kind === 'table') return html`<${Cells} text=${of} name=${name} />`;
  if (kind === 'page') return html`<${Frame} text=${of} name=${name} />`;
  if (kind === 'drawing' || kind === 'picture') return html`<${Picture} of=${of} name=${name} type=${kind === 'drawing' ? 'image/svg+xml' : type || ''} />`;
  return html`<${Long} text=${of} label=${name} />`;
}

const rowsMost = 200, cellsMost = 40;

/** @param {{text: string, name: string}} p */
function Cells({ text, name }) {
  const [head = [], ...rows] = useMemo(() => table(text.replace(/^\ufeff/, '')), [text]);
  return html`<div class="scroll cells" tabindex="0" role="region" aria-label=${name}><table><thead><tr>${head.slice(0, cellsMost).map((c) => html`<th scope="col">${c}</th>`)}</tr></thead>
    <tbody>${rows.slice(0, rowsMost).map((r) => html`<tr>${r.slice(0, cellsMost).map((c) => html`<td>${c}</td>`)}</tr>`)}</tbody></table></div>
    ${(rows.length > rowsMost || head.length > cellsMost) && html`<p class="quiet">The first ${count(Math.min(rows.length, rowsMost))} of ${count(rows.length)} rows, ${count(Math.min(head.length, cellsMost))} of ${count(head.length)} columns.</p>`}`;
}

/** useAddress is an address of bytes for as long as they are shown. @param {() => Blob} make @param {any[]} deps */
function useAddress(make, deps) {
  const [address, setAddress] = useState('');
  useEffect(() => {
    const made = URL.createObjectURL(make());
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, deps);
  return address;
}

/** Frame shows a page that somebody else wrote: in a sandbox without any right, under the policy of this page and one of its own. @param {{text: string, name: string}} p */
function Frame({ text, name }) {
  const address = useAddress(() => new Blob([framed(text, nonce())], { type: 'text/html;charset=utf-8' }), [text]);
  return address && html`<iframe class="frame" sandbox="" referrerpolicy="no-referrer" title=${name} src=${address}></iframe>
    <p class="quiet">Shown without scripts, links and what it would load from elsewhere. Downloaded it is whole.</p>`;
}

/** Picture shows a picture; a drawing in SVG is one, too: so it runs no script and loads nothing. @param {{of: any, name: string, type: string}} p */
function Picture({ of, name, type }) {
  const address = useAddress(() => new Blob([of], { type: type.split(';')[0] }), [of, type]);
  const [bad, setBad] = useState(false);
  if (bad) return html`<p class="quiet">This browser cannot show it.</p>`;
  return address && html`<img class="picture" src=${address} alt=${name} onError=${() => setBad(true)} />`;
}

/** Attach uploads files, chosen or dropped on the form around it, and passes their references on. @param {{session?: string, label?: string, of?: string, one?: boolean, onFile: (file: any) => void}} p */
export function Attach({ session, label = 'Attach a file', of, one, onFile }) {
  const ref = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [state, setState] = useState(/** @type {{name?: string, error?: any, over?: boolean}} */ ({}));
  const pass = useRef(onFile);
  pass.current = onFile;
  const take = async (/** @type {FileList | null | undefined} */ list) => {
    const files = [...(list || [])].slice(0, one ? 1 : undefined);
    try {
      for (const f of files) {
        setState({ name: f.name });
        pass.current(await upload(f, session));
      }
      setState({});
    } catch (error) {
      setState({ error });
    }
    if (ref.current) ref.current.value = ''; // the same one may be chosen again
  };
  useEffect(() => {
    const zone = /** @type {HTMLElement | null | undefined} */ (ref.current?.closest(one ? 'label, .field' : 'form'));
    if (!zone) return;
    const over = (/** @type {DragEvent} */ e) => {
      if (!e.dataTransfer?.types.includes('Files') || e.defaultPrevented) return;
      e.preventDefault();
      setState((s) => (s.over ? s : { ...s, over: true }));
    };
    const leave = (/** @type {DragEvent} */ e) => zone.contains(/** @type {Node | null} */ (e.relatedTarget)) || setState((s) => ({ ...s, over: false }));
    const drop = (/** @type {DragEvent} */ e) => {
      if (!e.dataTransfer?.files.length || e.defaultPrevented) return;
      e.preventDefault();
      take(e.dataTransfer.files);
    };
    const all = /** @type {[string, any][]} */ ([['dragover', over], ['dragleave', leave], ['drop', drop]]);
    for (const [name, f] of all) zone.addEventListener(name, f);
    return () => all.forEach(([name, f]) => zone.removeEventListener(name, f));
  }, []);
  if (!can('call')) return null;
  return html`<span class=${state.over ? 'attach over' : 'attach'}>
    <input ref=${ref} type="file" multiple=${!one} hidden tabindex="-1" aria-label=${of ? `${label} for ${of}` : label} onChange=${(/** @type {any} */ e) => take(e.target.files)} />
    <button type="button" aria-busy=${state.name ? 'true' : undefined} aria-label=${of ? `${label} for ${of}` : undefined} onClick=${() => state.name || ref.current?.click()}>${state.name ? `Uploading ${state.name} …` : state.over ? 'Drop it here' : label}</button>
    ${state.error && html`<${Failure} error=${state.error} />`}</span>`;
}

/** refer is how arguments name a file. @param {{id: string}} file */
export const refer = (file) => JSON.stringify({ $file: file.id });
