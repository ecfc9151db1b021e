// Anthropic's own SDK, whose MessageStream is strict about the order of events. Each
// scenario prints one JSON object. ai.mjs and langchain.mjs are others of its clients.
import Anthropic from '@anthropic-ai/sdk';

const [scenario, prompt] = process.argv.slice(2);
const root = process.env.DRAGOMAN_BASE_URL.replace(/\/v1$/, '');
const client = new Anthropic({ baseURL: root, apiKey: 'e2e-test-key', maxRetries: 0 });
const model = process.env.DRAGOMAN_MODEL ?? 'rehearsal';

const mine = { name: 'multiply', description: 'Multiplies two numbers', input_schema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] } };

const pixel = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==' } };

// turn asks until nothing of ours is called any more, as a strict client does.
const turn = async (more, content = prompt, shown = []) => {
  const messages = [{ role: 'user', content }];
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
    messages.push({ role: 'user', content: calls.map((c) => ({ type: 'tool_result', tool_use_id: c.id, content: [{ type: 'text', text: String(c.input.a * c.input.b) }, ...shown] })) });
  }
};

// runner has a tool runner do all turns, with the tools that make makes; what they were called
// with is in calls.
const runner = async (stream, make) => {
  const calls = [];
  const all = client.beta.messages.toolRunner({ model, max_tokens: 1000, stream, messages: [{ role: 'user', content: prompt }], tools: make(calls, () => all), betas: ['inline-tools-2026-09-15'] });
  let last;
  for await (const message of all) last = stream ? await message.finalMessage() : message;
  return { calls, finish: last.stop_reason, text: last.content.filter((b) => b.type === 'text').map((b) => b.text).join('|') };
};

// changing has a tool take itself away and bring another one.
const changing = (calls, runner) => {
  const tool = (name, run) => ({ name, description: `The ${name} one`, input_schema: { type: 'object', properties: {} }, parse: (x) => x, run: async () => (calls.push(name), run?.(), 'done') });
  return [tool('first', () => (runner().addTools(tool('second')), runner().removeTools('first')))];
};

// screen is a toolset of a computer.
const screen = (calls) => [{ type: 'computer_toolset_20260801', run: async (_, use) => (calls.push(`${use.toolset_name} ${use.name} ${JSON.stringify(use.input)}`), [{ type: 'text', text: 'done' }]) }];

// caught returns what a client is told of a request that fails.
const caught = async (scenario) => {
  try {
    return await scenario();
  } catch (e) {
    return { status: e.status, type: e.error?.error?.type, text: e.message };
  }
};

const scenarios = {
  unseen: () => turn({}),
  shown: () => turn({ mcp_servers: [{ type: 'url', name: 'tools', url: 'dragoman:tools' }] }),
  // Thoughts go back with their signatures, and pictures of the person and of a tool in.
  thinking: () => turn({ thinking: { type: 'enabled', budget_tokens: 1024 } }),
  pictures: () => turn({}, [{ type: 'text', text: prompt }, pixel], [pixel]),
  whole: async () => {
    const message = await client.messages.create({ model, max_tokens: 1000, messages: [{ role: 'user', content: prompt }], tools: [mine] });
    return { steps: 1, finish: message.stop_reason, kinds: message.content.map((b) => b.type), text: message.content.filter((b) => b.type === 'text').map((b) => b.text).join('|') };
  },
  error: () => caught(() => client.messages.create({ model, max_tokens: 10, messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'none', content: 'x' }] }] })),
  fails: () => caught(() => turn({})),
  changing: () => runner(false, changing),
  'changing-stream': () => runner(true, changing),
  screen: () => runner(false, screen),
  'screen-stream': () => runner(true, screen),
  count: async () => client.messages.countTokens({ model, messages: [{ role: 'user', content: prompt }] }),
  models: async () => ({ names: (await client.models.list()).data.map((m) => m.id) }),
};

console.log(JSON.stringify(await scenarios[scenario]()));
