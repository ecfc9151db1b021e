// Clients of Anthropic's Messages API: its own SDK, whose MessageStream is strict about
// the order of events, and the AI SDK's provider. Each scenario prints one JSON object.
import Anthropic from '@anthropic-ai/sdk';
import { createAnthropic } from '@ai-sdk/anthropic';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

const [scenario, prompt] = process.argv.slice(2);
const root = process.env.DRAGOMAN_BASE_URL.replace(/\/v1$/, '');
const client = new Anthropic({ baseURL: root, apiKey: 'e2e-test-key', maxRetries: 0 });
const model = 'rehearsal';

const mine = { name: 'multiply', description: 'Multiplies two numbers', input_schema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] } };

// turn asks until nothing of ours is called any more, as a strict client does.
const turn = async (more) => {
  const messages = [{ role: 'user', content: prompt }];
  const events = [];
  for (let steps = 1; ; steps++) {
    const stream = client.beta.messages.stream({ model, max_tokens: 1000, messages, tools: [mine], betas: ['mcp-client-2025-11-20'], ...more });
    stream.on('streamEvent', (e) => events.push(e.type + (e.index === undefined ? '' : ' ' + e.index)));
    const message = await stream.finalMessage();
    messages.push({ role: 'assistant', content: message.content });
    const calls = message.content.filter((b) => b.type === 'tool_use');
    if (message.stop_reason !== 'tool_use' || steps === 8) {
      return { events, steps, finish: message.stop_reason, usage: message.usage, kinds: messages.filter((m) => m.role === 'assistant').flatMap((m) => m.content.map((b) => b.type)), text: message.content.filter((b) => b.type === 'text').map((b) => b.text).join('|') };
    }
    messages.push({ role: 'user', content: calls.map((c) => ({ type: 'tool_result', tool_use_id: c.id, content: String(c.input.a * c.input.b) })) });
  }
};

const provider = createAnthropic({ baseURL: root + '/v1', apiKey: 'e2e-test-key' });
const tools = { multiply: tool({ description: 'Multiplies two numbers', inputSchema: z.object({ a: z.number(), b: z.number() }), execute: async ({ a, b }) => a * b }) };

const scenarios = {
  unseen: () => turn({}),
  shown: () => turn({ mcp_servers: [{ type: 'url', name: 'tools', url: 'dragoman:tools' }] }),
  error: async () => {
    try {
      await client.messages.create({ model, max_tokens: 10, messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'none', content: 'x' }] }] });
    } catch (e) {
      return { status: e.status, type: e.error?.error?.type, text: e.message };
    }
  },
  count: async () => client.messages.countTokens({ model, messages: [{ role: 'user', content: prompt }] }),
  models: async () => ({ names: (await client.models.list()).data.map((m) => m.id) }),
  generate: async () => {
    const r = await generateText({ model: provider(model), prompt, tools, stopWhen: stepCountIs(5) });
    return { text: r.text, steps: r.steps.length, finish: r.finishReason };
  },
  stream: async () => {
    const r = streamText({ model: provider(model), prompt, tools, stopWhen: stepCountIs(5), onError: ({ error }) => { throw error; } });
    return { text: await r.text, steps: (await r.steps).length, finish: await r.finishReason };
  },
};

console.log(JSON.stringify(await scenarios[scenario]()));
