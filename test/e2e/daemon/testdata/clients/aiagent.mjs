// An agent that uses the AI SDK: aiagent.mjs QUESTION. The model is at OPENAI_BASE_URL, its tools are those of the MCP server
// at RECURGENT_URL. It prints the model's answer.
import { createMCPClient } from '@ai-sdk/mcp'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, stepCountIs } from 'ai'

const { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey, RECURGENT_URL: url, RECURGENT_TOKEN: token } = process.env
const client = await createMCPClient({ transport: { type: 'http', url: url + '/mcp', headers: { Authorization: `Bearer ${token}` } } })
const { text } = await generateText({
  model: createOpenAICompatible({ name: 'scripted', baseURL, apiKey })('scripted'),
  tools: await client.tools(),
  prompt: process.argv[2],
  maxRetries: 0,
  stopWhen: stepCountIs(10),
})
await client.close()
console.log(text)
