// The official openai package: chat.completions.create, .stream(), .runTools().
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { apiKey, baseURL, messages, model, multiply, multiplySchema, run } from './facts.mjs';

const client = new OpenAI({ baseURL, apiKey, maxRetries: Number(process.env.MAX_RETRIES ?? 0) });

const tools = [
  {
    type: 'function',
    function: {
      name: 'multiply',
      description: 'Multiplies two numbers',
      parameters: multiplySchema,
      parse: JSON.parse,
      function: multiply,
    },
  },
];

// offered is the client's own tool as create() wants it: without code.
const offered = tools.map(({ type, function: { name, description, parameters } }) => ({ type, function: { name, description, parameters } }));

const completion = (c) => ({
  id: c.id,
  object: c.object,
  model: c.model,
  created: c.created,
  choices: c.choices.length,
  content: c.choices[0]?.message.content,
  finish: c.choices[0]?.finish_reason,
  calls: (c.choices[0]?.message.tool_calls ?? []).map((t) => ({ id: t.id, name: t.function.name, arguments: t.function.arguments })),
  usage: c.usage,
  dragoman: c.dragoman,
});

// watch records what a stream is made of, beside what the client makes of it.
const watch = () => {
  const seen = { chunks: 0, ids: [], created: [], roles: 0, finishes: [], contents: 0, toolDeltas: 0, usages: 0, empty: 0 };
  const note = (chunk) => {
    seen.chunks++;
    if (!seen.ids.includes(chunk.id)) seen.ids.push(chunk.id);
    if (!seen.created.includes(chunk.created)) seen.created.push(chunk.created);
    if (chunk.usage) seen.usages++;
    if (chunk.choices.length === 0) seen.empty++;
    for (const { delta, finish_reason } of chunk.choices) {
      if (delta.role) seen.roles++;
      if (delta.content) seen.contents++;
      if (delta.tool_calls) seen.toolDeltas += delta.tool_calls.length;
      if (finish_reason) seen.finishes.push(finish_reason);
    }
  };
  return { seen, note };
};

async function stream(params) {
  const { seen, note } = watch();
  const s = client.chat.completions.stream({ model, messages, ...params });
  s.on('chunk', note);
  return { ...completion(await s.finalChatCompletion()), seen };
}

async function runTools(params) {
  const { seen, note } = watch();
  const runner = client.chat.completions.runTools({ model, messages, tools, ...params }, { maxChatCompletions: 8 });
  if (params.stream) runner.on('chunk', note);
  const content = await runner.finalContent();
  return {
    content,
    roles: runner.messages.map((m) => m.role),
    names: runner.messages.flatMap((m) => m.tool_calls ?? []).map((t) => t.function.name),
    completions: runner.allChatCompletions().length,
    usage: await runner.totalUsage(),
    seen,
  };
}

await run(
  {
    create: async () => completion(await client.chat.completions.create({ model, messages })),
    'create-tools': async () => completion(await client.chat.completions.create({ model, messages, tools: offered })),
    stream: () => stream({}),
    'stream-usage': () => stream({ stream_options: { include_usage: true } }),
    'stream-tools': () => stream({ tools: offered }),
    'stream-schema': async () => {
      const format = zodResponseFormat(z.object({ answer: z.string() }), 'answer');
      const s = client.chat.completions.stream({ model, messages, response_format: format });
      const final = await s.finalChatCompletion();
      return { ...completion(final), parsed: final.choices[0].message.parsed };
    },
    // The bytes of a stream, relayed by a program of the user's own.
    readable: async () => {
      const { seen, note } = watch();
      const raw = await client.chat.completions.create({ model, messages, stream: true });
      const { ChatCompletionStream } = await import('openai/lib/ChatCompletionStream');
      const s = ChatCompletionStream.fromReadableStream(raw.toReadableStream());
      s.on('chunk', note);
      return { ...completion(await s.finalChatCompletion()), seen };
    },
    'run-tools': () => runTools({}),
    'run-tools-stream': () => runTools({ stream: true }),
    // One server of several, chosen in the request.
    choose: async () =>
      completion(
        await client.chat.completions.create({
          model,
          messages,
          tools: [{ type: 'mcp', server_label: process.env.SERVER_LABEL, ...(process.env.ALLOWED_TOOLS ? { allowed_tools: process.env.ALLOWED_TOOLS.split(',') } : {}) }],
        }),
      ),
    // A conversation of two turns, replayed as such clients do: visible text only.
    turns: async () => {
      // Short conversations are put back together only for who says who they are.
      const user = 'somebody';
      const first = await client.chat.completions.create({ model, messages, user });
      const again = [...messages, first.choices[0].message, { role: 'user', content: process.env.SECOND_PROMPT }];
      return { first: completion(first), ...completion(await client.chat.completions.create({ model, messages: again, user })) };
    },
    // Goes away in the middle of a call.
    abort: async () => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), Number(process.env.ABORT_AFTER_MS));
      return completion(await client.chat.completions.create({ model, messages }, { signal: controller.signal }));
    },
    models: async () => {
      const ids = [];
      for await (const m of client.models.list()) ids.push(m.id);
      return { models: ids };
    },
  },
  (error) =>
    error instanceof OpenAI.APIUserAbortError
      ? { aborted: true }
      : error instanceof OpenAI.APIError && { status: error.status, code: error.code, type: error.type, param: error.param, message: error.message, request: error.requestID },
);
