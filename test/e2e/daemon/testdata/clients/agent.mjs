// An agent that uses an official TypeScript SDK: agent.mjs sdk|client URL, or agent.mjs sdk|client COMMAND ARGUMENT...
// It fails with what differs from what was expected.
import assert from 'node:assert/strict'

const [kit, target, ...args] = process.argv.slice(2)
const newest = kit === 'client'
const overHTTP = target.startsWith('http')
const { Client } = await import(newest ? '@modelcontextprotocol/client' : '@modelcontextprotocol/sdk/client/index.js')
const transports = newest
  ? { ...(await import('@modelcontextprotocol/client')), ...(await import('@modelcontextprotocol/client/stdio')) }
  : { ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')), ...(await import('@modelcontextprotocol/sdk/client/stdio.js')) }

let changed
const change = new Promise((resolve) => { changed = resolve })
const client = new Client({ name: 'test', version: '1.0.0' }, {
  versionNegotiation: { mode: { pin: '2026-07-28' } }, // the older SDK does not know it
  listChanged: { tools: { onChanged: (error) => changed(error) } },
})
const transport = overHTTP
  ? new transports.StreamableHTTPClientTransport(new URL(target))
  : new transports.StdioClientTransport({ command: target, args, env: process.env })
await client.connect(transport)
if (newest) assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28')
assert.equal(client.getServerVersion().name, 'recurgentd')

const list = async () => {
  const all = new Map()
  for (let cursor; ;) {
    const page = await client.listTools({ cursor })
    for (const tool of page.tools) all.set(tool.name, tool)
    if (!(cursor = page.nextCursor)) return all
  }
}
assert.deepEqual([...(await list()).keys()].sort(), ['call_method', 'find_tools', 'judge_call', 'new_session', 'upload_file'])

// A method is written.
const call = (name, input, meta, options) => client.callTool({ name, arguments: input, _meta: meta }, ...(newest ? [] : [undefined]), options)
const first = await call('call_method', { role: 'calculator', method: 'add', args: [2, 3] })
assert.equal(first.structuredContent.value, 5)

// It is a tool: the list changes, with a notification where the version has one.
if (newest || !overHTTP) assert.ok(!(await change))
const add = (await list()).get('calculator__add')
assert.equal(add.inputSchema.type, 'object')
assert.equal(add.annotations.readOnlyHint, true)
assert.equal((await call('calculator__add', { a: 20, b: 22 })).structuredContent.value, 42)
assert.equal((await call('find_tools', { query: 'add' })).structuredContent.tools[0].name, 'calculator__add')

// A conversation has a memory.
const session = (await call('new_session', { role: 'calculator', context: { value: 7 } })).structuredContent.id
const inSession = { 'recurgent/session_id': session }
assert.equal((await call('call_method', { role: 'calculator', method: 'increment', session_id: session })).structuredContent.value, 8)
assert.equal((await call('call_method', { role: 'calculator', method: 'increment' }, inSession)).structuredContent.value, 9)
const judged = await call('judge_call', { call_id: first._meta['recurgent/call_id'], verdict: 'right' })
assert.equal(judged.structuredContent.verdict, 'right')

// What goes wrong is an error result, or an error of the protocol.
await call('call_method', { role: 'shop', method: 'sell', args: [1] })
await list()
const failed = await call('shop__sell', { args: [0] })
assert.equal(failed.isError, true)
assert.equal(failed.structuredContent.error_type, 'not_today')
const slow = await call('call_method', { role: 'shop', method: 'slow', timeout_ms: 200 })
assert.equal(slow.isError, true)
assert.equal(slow.structuredContent.error_type, 'timeout')
assert.equal((await call('find_tools', { query: 7 })).isError, true)
await assert.rejects(call('no_such_tool', {}), (e) => e.code === -32602 && e.message.includes('unknown tool'))
await assert.rejects(call('calculator__add', { a: 1, b: 2 }, { 'recurgent/session_id': 'sess_none' }), (e) => e.code === -32602)

// A call shows its progress and ends when it is given up. The model answers nothing: an SDK drops the progress of a
// call whose result it has read.
const given = new AbortController()
const progress = []
const onprogress = (p) => {
  progress.push(p.message)
  if (p.message === 'a model writes the program') given.abort()
}
await assert.rejects(call('call_method', { role: 'shop', method: 'slow' }, undefined, { signal: given.signal, onprogress }))
assert.ok(given.signal.aborted, progress.join('; '))

await client.close()
console.log('fine')
