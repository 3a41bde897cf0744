// An agent that uses the MCP client of the AI SDK: aisdk.mjs URL, or aisdk.mjs COMMAND ARGUMENT...
// It prints "waiting" when it has begun a call that has no end yet: this client has no handler of progress.
import assert from 'node:assert/strict'
import { createMCPClient } from '@ai-sdk/mcp'
import { StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio'

const [target, ...args] = process.argv.slice(2)
const client = await createMCPClient({
  transport: target.startsWith('http')
    ? { type: 'http', url: target, headers: { Authorization: `Bearer ${process.env.RECURGENT_TOKEN}` } }
    : new StdioMCPTransport({ command: target, args, env: process.env }),
})
assert.equal(client.serverInfo.name, 'recurgentd')

const names = async () => (await client.listTools()).tools.map((tool) => tool.name).sort()
const extra = ['call_method', 'find_tools', 'judge_call', 'new_session', 'upload_file']
assert.deepEqual(await names(), extra)

const call = (name, input) => client.callTool({ name, arguments: input })
const value = async (name, input) => {
  const result = await call(name, input)
  assert.ok(!result.isError, JSON.stringify(result))
  return result.structuredContent.value
}
assert.equal(await value('call_method', { role: 'calculator', method: 'add', args: [2, 3] }), 5)
assert.equal(await value('calculator__add', { a: 20, b: 22 }), 42)
assert.equal(await value('call_method', { role: 'shop', method: 'sell', args: [1] }), 'sold')
assert.deepEqual(await names(), ['calculator__add', 'shop__sell', ...extra].sort())

// Its tools are those of the AI SDK.
const { calculator__add: add } = await client.tools()
assert.equal((await add.execute({ a: 1, b: 2 }, { toolCallId: '1', messages: [] })).structuredContent.value, 3)

const session = (await call('new_session', { role: 'calculator', context: { value: 7 } })).structuredContent.id
for (const want of [8, 9]) {
  assert.equal(await value('call_method', { role: 'calculator', method: 'increment', session_id: session }), want)
}

const failed = await call('shop__sell', { n: 0 })
assert.equal(failed.isError, true)
assert.equal(failed.structuredContent.error_type, 'not_today')
await assert.rejects(call('no_such_tool', {}), (e) => e.code === -32602 && e.message.includes('unknown tool'))

const long = value('call_method', { role: 'shop', method: 'slow', args: [2, 3] })
console.log('waiting')
assert.equal(await long, 5)

await client.close()
console.log('fine')
