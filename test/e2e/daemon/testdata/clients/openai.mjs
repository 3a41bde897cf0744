// An agent that uses the SDK of OpenAI: openai.mjs chat|responses QUESTION. The model is at OPENAI_BASE_URL, its tools are the
// functions at RECURGENT_URL. It prints the model's answer.
import OpenAI from 'openai'

const [form, question] = process.argv.slice(2)
const openai = new OpenAI({ maxRetries: 0 })
const headers = { Authorization: `Bearer ${process.env.RECURGENT_TOKEN}`, 'Content-Type': 'application/json' }

async function ask(path, body) {
  const reply = await fetch(process.env.RECURGENT_URL + path, { headers, method: body ? 'POST' : 'GET', body })
  if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`)
  return reply.json()
}

const { tools } = await ask(`/v1/tools?strict=true&format=${form === 'chat' ? 'openai' : 'openai-responses'}`)

/** What a function answers to arguments as the model wrote them. */
async function run(name, input) {
  const { outcome } = await ask(`/v1/functions/${name}`, JSON.stringify({ arguments: input }))
  return JSON.stringify(outcome.ok ? outcome.value : outcome)
}

async function chat() {
  const messages = [{ role: 'user', content: question }]
  for (;;) {
    const { choices: [{ message }] } = await openai.chat.completions.create({ model: 'scripted', messages, tools })
    if (!message.tool_calls) return message.content
    messages.push(message)
    for (const { id, function: f } of message.tool_calls) {
      messages.push({ role: 'tool', tool_call_id: id, content: await run(f.name, f.arguments) })
    }
  }
}

async function responses() {
  const input = [{ role: 'user', content: question }]
  for (;;) {
    const reply = await openai.responses.create({ model: 'scripted', input, tools })
    const calls = reply.output.filter((item) => item.type === 'function_call')
    if (calls.length === 0) return reply.output_text
    input.push(...reply.output)
    for (const { call_id, name, arguments: text } of calls) {
      input.push({ type: 'function_call_output', call_id, output: await run(name, text) })
    }
  }
}

console.log(await (form === 'chat' ? chat() : responses()))
