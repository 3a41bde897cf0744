// Logic of the console that needs no browser: node --test.
import test from 'node:test';
import assert from 'node:assert/strict';

process.env.TZ = 'UTC';

// What a browser has and node has not.
const storage = () => ({ getItem: () => null, setItem() {}, removeItem() {} });
Object.assign(globalThis, { sessionStorage: storage(), localStorage: storage(), location: { hash: '', origin: 'http://127.0.0.1:8420' }, document: { documentElement: { dataset: {} } }, addEventListener() {}, matchMedia: () => ({ matches: false }) });

const { tokens } = await import('../web/core/highlight.js');
const { diff, folded } = await import('../web/core/diff.js');
const { forest } = await import('../web/core/tree.js');
const { parse, href } = await import('../web/core/route.js');
const { parser } = await import('../web/core/stream.js');
const { decode, Exact, path, withQuery } = await import('../web/core/api.js');
const { curl, quote } = await import('../web/core/curl.js');
const format = await import('../web/core/format.js');
const { hear, present } = await import('../web/core/clock.js');
const { kwargs } = await import('../web/parts/form.js');
const { follows } = await import('../web/core/follows.js');
const files = await import('../web/core/files.js');

test('colours lose no character', () => {
  const hostile = 'package tool\n// <script>\nfunc Run() { x := `a"b` + "c\\"d" + \'e\' /* open\n "';
  for (const lang of ['go', 'json', 'text']) assert.equal(tokens(hostile, lang).map(([, s]) => s).join(''), hostile);
  assert.deepEqual(tokens('return 1', 'go').filter(([k]) => k), [['keyword', 'return'], ['number', '1']]);
  assert.deepEqual(tokens('{"a": "b"}', 'json').filter(([k]) => k), [['key', '"a"'], ['string', '"b"']]);
});

test('a diff has every line of both sides, in order', () => {
  for (const [a, b] of [['a\nb\nc\n', 'a\nx\nc\n'], ['', 'a\n'], ['a\nb\nc\nd', 'd\na\nc'], ['same\n', 'same\n'], ['1\n2\n3\n4\n5', '0\n1\n3\n5\n6']]) {
    const rows = diff(a, b);
    assert.equal(rows.flatMap((r) => (r.old === undefined ? [] : [r.old])).join('\n'), a.replace(/\n$/, ''));
    assert.equal(rows.flatMap((r) => (r.now === undefined ? [] : [r.now])).join('\n'), b.replace(/\n$/, ''));
    assert.ok(rows.every((r) => r.same === (r.old === r.now && r.old !== undefined)));
  }
  assert.deepEqual(diff('a\nb\nc', 'a\nx\nc').filter((r) => !r.same), [{ old: 'b', oldAt: 2, now: 'x', nowAt: 2, same: false }]);
  const long = Array.from({ length: 50 }, (_, i) => `line ${i}`);
  const rows = folded(diff(long.join('\n'), [...long.slice(0, 25), 'new', ...long.slice(25)].join('\n')));
  assert.equal(rows.reduce((n, r) => n + (r.gap || 1), 0), 51);
  assert.equal(rows.length, 9);
});

test('nested calls stand below the call that made them', () => {
  const call = (id, parent, timestamp) => ({ call_id: id, parent_call_id: parent, timestamp });
  const got = forest([call('c', 'b', '3'), call('b', 'a', '2'), call('d', 'a', '4'), call('a', undefined, '1'), call('z', 'gone', '9')]);
  assert.deepEqual(got.map((c) => [c.call_id, c.indent]), [['z', 0], ['a', 0], ['b', 1], ['c', 2], ['d', 1]]);
});

test('addresses hold every name', () => {
  for (const name of ['a b', 'a%2Fb', '<img src=x onerror=y>', 'ä?#&=', '100%']) {
    const { parts, query } = parse(href(['tools', name], { tab: name, none: '' }));
    assert.deepEqual(parts, ['tools', name]);
    assert.deepEqual(query, { tab: name });
  }
  assert.deepEqual(parse('#/calls/%zz').parts, ['calls', '%zz']);
  assert.equal(path`/v1/tools/${'a/b'}/methods/${'c d'}`, '/v1/tools/a%2Fb/methods/c%20d');
  assert.equal(withQuery('/x', { a: '', b: 0, c: null, d: 'e f' }), '/x?b=0&d=e+f');
});

test('events are read however they are cut', () => {
  const text = 'retry: 2000\n\n: ping\n\nid: call_1\nevent: call.finished\ndata: {"a":"ä\\n"}\n\nevent: x\ndata: 1\n\n';
  for (let size = 1; size < text.length; size++) {
    const got = [];
    const read = parser((e) => got.push(e));
    for (let i = 0; i < text.length; i += size) read(text.slice(i, i + size));
    assert.deepEqual(got, [{ id: 'call_1', type: 'call.finished', data: { a: 'ä\n' } }, { id: '', type: 'x', data: 1 }]);
  }
});

test('numbers keep their digits where the browser has the source text', () => {
  const sourced = JSON.parse('1', (k, v, c) => c) !== undefined;
  const got = decode('[12345678901234567890, 1.50, 1e2, 0.1, 9007199254740993]');
  assert.deepEqual(got.slice(1, 4), [1.5, 100, 0.1]);
  if (sourced) assert.deepEqual([got[0], got[4]].map((n) => n instanceof Exact && n.text), ['12345678901234567890', '9007199254740993']);
});

test('a command for a shell has nothing that the shell reads', () => {
  assert.equal(quote(`a'b $(x) "c"`), `'a'\\''b $(x) "c"'`);
  assert.equal(curl('POST', '/v1/calls/x/verdict', { note: "it's" }, {}), `curl -sS -H 'Content-Type: application/json' -d '{"note":"it'\\''s"}' http://127.0.0.1:8420/v1/calls/x/verdict`);
  assert.equal(curl('GET', '/v1/policy'), 'curl -sS http://127.0.0.1:8420/v1/policy');
  assert.equal(curl('DELETE', '/v1/x?reason=a b'), `curl -sS -X DELETE 'http://127.0.0.1:8420/v1/x?reason=a b'`);
});

test('values as people read them', () => {
  const now = new Date('2026-11-23T10:00:00Z');
  assert.deepEqual(['2026-11-23T09:59:58Z', '2026-11-23T09:59:00Z', '2026-11-22T10:00:00Z', '2026-11-23T12:00:00Z', null].map((t) => format.ago(t, now)), ['just now', '1 min ago', '1 d ago', 'in 2 h', 'never']);
  assert.deepEqual([0.05, 0.42, 9.96, 12.4, 999.7, 1500, 59980, 61000, 119600].map(format.duration), ['< 0.1 ms', '0.4 ms', '10 ms', '12 ms', '1.0 s', '1.5 s', '1 min 0 s', '1 min 1 s', '2 min 0 s']);
  assert.equal(format.args([1, 'a'], { b: [2] }), '1, "a", b: [2]');
  assert.equal(format.args(['x'.repeat(500)], {}, 10), '"xxxxxxxxx…');
  assert.equal(format.json('12345678😀', 10), '"12345678…');
  assert.deepEqual([1, 2].map((n) => format.plural(n, 'call')), ['1 call', '2 calls']);
});

test('times of every hour and year, by the clock of the daemon', () => {
  const now = new Date('2026-11-23T10:00:00Z');
  assert.match(format.time('2026-11-23T00:05:07Z', now), /^00:05:07/);
  assert.match(format.fullTime('2026-11-23T00:05:07Z'), /2026.*00:05:07/);
  assert.doesNotMatch(format.time('2026-03-05T10:00:00Z', now), /2026/);
  assert.match(format.time('2025-11-23T10:00:00Z', now), /2025/);
  hear(new Date(Date.now() + 7200e3).toUTCString());
  assert.equal(format.ago(new Date(Date.now() + 7200e3 - 630e3).toISOString()), '10 min ago');
  hear(new Date(Date.now()).toUTCString());
  assert.ok(Math.abs(present().getTime() - Date.now()) < 5000);
});

test('a form sends what the interface takes', () => {
  const all = [
    { name: 'constructor', type: 'string', required: false }, { name: '__proto__', type: 'string', required: false }, { name: 'mode', required: true, schema: { enum: ['net', 1] } }, { name: 'city', required: true, schema: { type: 'string' } },
    { name: 'rest', required: false, variadic: true, type: 'number' }, { name: 'either', required: false, schema: { type: ['string', 'null'] } },
  ];
  assert.deepEqual(kwargs(all, {}), { out: {}, wrong: { mode: 'is required', city: 'is required' } });
  const { out, wrong } = kwargs(all, Object.fromEntries([['__proto__', 'p'], ['mode', '"net"'], ['city', 'Rom'], ['rest', '[1, 2]'], ['either', 'x']]));
  assert.deepEqual(Object.entries(out), [['__proto__', 'p'], ['mode', 'net'], ['city', 'Rom'], ['rest', [1, 2]]]);
  assert.deepEqual(wrong, { either: 'is not JSON. Put text in double quotes' });
});

test('files are shown as what they are', () => {
  for (const [type, name, want] of [['text/csv', 'a', 'table'], ['application/octet-stream', 'Umsatz.CSV', 'table'], ['text/plain; charset=utf-8', 'a.html', 'page'], ['text/html;charset=utf-8', 'a.txt', 'page'], ['image/svg+xml', 'a', 'drawing'],
    ['text/xml', 'a.svg', 'text'], ['image/png', 'a.html', 'picture'], ['application/json', 'a', 'text'], ['application/ld+json', '', 'text'], ['application/zip', 'a.csv', ''], ['image/x-odd', 'a', ''], ['', '', '']]) assert.equal(files.shows(type, name), want, `${type} ${name}`);
  assert.deepEqual(files.references({ a: [{ $file: 'file_1' }, { $file: 'file_2' }, { $file: 'file_1' }], b: 'file_3', c: null }), ['file_1', 'file_2']);
  for (const [text, want] of [['<!DOCTYPE html><p>x', 'page'], ['  <html>', 'page'], ['<?xml version="1.0"?>\n<svg xmlns="x"/>', 'drawing'], ['<svgx>', ''], ['a,b\n1,2\n', 'table'], ['Hello, world\nand more', ''], ['{"a":1,\n"b":2}', ''], ['', '']]) assert.equal(files.looksLike(text), want, text);
});

test('tables are read with their own separator', () => {
  assert.deepEqual(files.table('a;b\r\n"1;5";"say ""no"""\r\n\r\nlast;'), [['a', 'b'], ['1;5', 'say "no"'], ['last', '']]);
  assert.deepEqual(files.table('a\tb\n1\t2'), [['a', 'b'], ['1', '2']]);
  assert.deepEqual(files.table('a,b\n"two\nlines",x"y'), [['a', 'b'], ['two\nlines', 'x"y']]);
  assert.deepEqual(files.table(''), []);
});

test('bytes are text in the character set that they show', () => {
  const bytes = (...b) => new Uint8Array(b);
  assert.equal(files.textOf(bytes(0xef, 0xbb, 0xbf, 0xc3, 0xbc)), 'ü');
  assert.equal(files.textOf(bytes(0xff, 0xfe, 0xfc, 0x00)), 'ü');
  assert.equal(files.textOf(bytes(0x66, 0xfc, 0x72)), 'für');
  assert.equal(files.textOf(bytes(0x61, 0xc3)), 'a', 'a beginning may end within a character');
});

test('a framed page keeps its styles', () => {
  const page = files.framed(`<style media="x">p { content: "<p style='a'>" }</style><P class=a style="color: red; font: &quot;A&amp;B&quot;">x</P><b style='top:0'>x</b><i title="a>b" style=left:0>x</i>style="none"`, 'n1');
  assert.ok(page.includes(`<style nonce="n1" media="x">p { content: "<p style='a'>" }</style>`));
  assert.ok(page.includes('<P class=a data-styled="0">x</P><b data-styled="1">x</b><i title="a>b" data-styled="2">x</i>style="none"'));
  for (const [i, of] of ['color: red; font: "A&B"', 'top:0', 'left:0'].entries()) assert.ok(page.includes(`[data-styled="${i}"]:not(#a#a#a){${of}}`));
  for (const bad of ['<p style="}</style><b>">', '<p style="a{">', '<p style="&#125;&lt;">']) assert.ok(!files.framed(bad, 'n1').includes('{}') && files.framed(bad, 'n1').includes('<style nonce="n1"></style>') === !bad.includes('#'));
});

test('a framed page of unclosed tags is read at once', () => {
  for (const part of ['<a "<b \'', '<style ', '<style>', '<a "', '<a \'<', '<a style="', '<p style=<']) assert.ok(files.framed(part.repeat(200000), 'n1').length > 1, part);
});

test('a framed page may load nothing', () => {
  const page = files.framed('\ufeff<!doctype html><html><LINK rel=preconnect href=x><link\nrel=stylesheet><iframe src=x><p>&lt;link>', 'n1');
  assert.ok(page.startsWith(`<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-n1'">`));
  assert.ok(!/<(link|iframe)/i.test(page));
  assert.ok(page.includes('&lt;link>'));
});

test('every operation of the inbox says what follows from it', () => {
  const tool = '/v1/tools/r/methods/m';
  for (const path of [`${tool}/approve`, `${tool}/effects`, `${tool}/rollback`, `${tool}/quarantine`, `${tool}/regenerate`, `${tool}/examples/ex_1/accept`, `${tool}/examples/ex_1/reject`, `${tool}/contract/accept`, `${tool}/contract/reject`, '/v1/recommendations/rec_1/apply', '/v1/recommendations/rec_1/dismiss', '/v1/calls/call_1/verdict'])
    assert.match(follows({ path }), /^[A-Z].+\.$/, path);
  assert.equal(follows({ path: `${tool}/approve`, body: { generation: 'gen-2' } }), 'gen-2 may answer calls from then on.');
  assert.notEqual(follows({ path: '/v1/calls/call_1/verdict', body: { verdict: 'wrong' } }), follows({ path: '/v1/calls/call_1/verdict' }));
  assert.equal(follows({ path: '/v1/sessions/sess_1/calls' }), '');
});
