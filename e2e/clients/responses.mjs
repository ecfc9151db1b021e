// The official openai package on the Responses API: responses.create and the strict
// accumulator of responses.stream, with the client's own tool beside ours.
import OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { z } from 'zod';
import { apiKey, baseURL, model, multiply, multiplySchema, run } from './facts.mjs';

const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const own = { type: 'function', name: 'multiply', description: 'Multiplies two numbers', parameters: multiplySchema, strict: true };
const ours = (more) => ({ type: 'mcp', server_label: 'tools', server_url: 'dragoman:tools', ...more });
const pixel = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

// whole asks once; streamed asks once and lets the accumulator judge the stream.
const whole = (params) => client.responses.create(params);

const streamed = async (params) => {
  const events = [];
  const stream = client.responses.stream(params);
  stream.on('event', (e) => events.push(e));
  const final = await stream.finalResponse();
  const deltas = events.filter((e) => e.type === 'response.output_text.delta').map((e) => e.delta);
  if (deltas.join('') !== final.output.filter((i) => i.type === 'message').flatMap((i) => i.content).map((c) => c.text ?? '').join('')) throw new Error('the deltas are not the text');
  return final;
};

// wired asks over one WebSocket, and closes it when the scenario has ended.
const wired = async (scenario) => {
  const socket = new ResponsesWS(client);
  const ask = async ({ stream, ...params }) => {
    const events = socket.stream();
    socket.send({ type: 'response.create', ...params });
    for await (const event of events) {
      if (event.type === 'error') throw event.error;
      if (event.type !== 'message') continue;
      const { message } = event;
      if (message.type === 'error') throw new OpenAI.APIError(message.status, message.error, message.error.message, new Headers());
      if (['response.completed', 'response.incomplete', 'response.failed'].includes(message.type)) return message.response;
    }
    throw new Error('the connection ended');
  };
  try {
    return await scenario(ask);
  } finally {
    socket.close();
  }
};

// conversing holds a conversation that the server keeps: a turn in it with tools, its items
// page by page, and what it comes to when it is compacted.
const conversing = async (prompt) => {
  const { id } = await client.conversations.create({ metadata: { topic: 'demo' }, items: [{ type: 'message', role: 'developer', content: 'Be brief.' }] });
  const facts = await turn(({ previous_response_id, ...params }) => whole({ ...params, conversation: id }), prompt, { kept: true });
  const kinds = [];
  for await (const item of client.conversations.items.list(id, { limit: 2, order: 'asc' })) kinds.push(item.type);
  const compacted = await client.responses.compact({ model, input: [{ role: 'user', content: 'SAY short' }, { role: 'assistant', content: 'A long answer.' }] });
  const again = await whole({ model, input: [...compacted.output, { role: 'user', content: 'SAY Still here.' }], store: false });
  await client.conversations.update(id, { metadata: { topic: 'other' } });
  const { metadata } = await client.conversations.retrieve(id);
  const { deleted } = await client.conversations.delete(id);
  return { ...facts, roles: [...kinds, ...compacted.output.map((i) => i.type), metadata.topic, String(deleted), again.output_text] };
};

// sized asks how large a request is, with the server's tools and without, and goes on from what
// is compacted.
const sized = async (prompt) => {
  const count = async (more) => (await client.responses.inputTokens.count({ model, input: prompt, ...more })).input_tokens;
  const [bare, offered] = [await count({ tool_choice: 'none' }), await count({ tools: [own] })];
  const compacted = await client.responses.compact({ model, input: [{ role: 'user', content: 'Hello' }, { role: 'assistant', content: 'A long answer.' }] });
  const again = await whole({ model, input: [...compacted.output, { role: 'user', content: prompt }], tools: [], store: false });
  return { roles: [...compacted.output.map((i) => i.type), String(bare < offered), again.output_text] };
};

// polled lets a response be made in the background and asks for it until it is over; resumed
// reads the beginning of its stream, leaves, and takes it up again where it was.
const polled = async (params) => {
  let r = await client.responses.create({ ...params, background: true });
  if (!['queued', 'in_progress'].includes(r.status)) throw new Error(`it is ${r.status} at once`);
  while (['queued', 'in_progress'].includes(r.status)) {
    await new Promise((wake) => setTimeout(wake, 50));
    r = await client.responses.retrieve(r.id);
  }
  return r;
};

const resumed = async (params) => {
  const first = await client.responses.create({ ...params, background: true, stream: true });
  let id;
  let last;
  for await (const e of first) {
    id ??= e.response.id;
    last = e.sequence_number;
    if (last === 3) break;
  }
  const rest = client.responses.stream({ response_id: id, starting_after: last });
  rest.on('event', (e) => {
    if (e.sequence_number !== ++last) throw new Error(`event ${e.sequence_number} where ${last} was to come`);
  });
  return rest.finalResponse();
};

// turn asks until nothing of the client's is called any more; kept says whether the
// server keeps what was said, or the client sends all of it again.
const turn = async (ask, prompt, { kept, tools = [own], answer = true, ...more }) => {
  let input = [{ role: 'user', content: prompt }];
  let previous;
  const kinds = [];
  const names = [];
  for (let steps = 1; steps <= 8; steps++) {
    const r = await ask({ model, input, tools, store: kept, ...(kept && previous ? { previous_response_id: previous } : {}), ...more });
    kinds.push(...r.output.map((i) => i.type));
    const items = [];
    for (const item of r.output) {
      if (item.type === 'function_call') {
        names.push(item.name);
        items.push({ type: 'function_call_output', call_id: item.call_id, output: multiply(JSON.parse(item.arguments)) });
      }
      if (item.type === 'mcp_approval_request') items.push({ type: 'mcp_approval_response', approval_request_id: item.id, approve: answer });
    }
    if (!items.length) {
      const texts = r.output.filter((i) => i.type === 'message').flatMap((i) => i.content.map((c) => c.text ?? c.refusal));
      return {
        id: r.id, content: texts.join('|'), finish: r.status, steps, names, roles: kinds, usage: r.usage, parsed: r.output_parsed,
        errors: r.output.filter((i) => i.type === 'mcp_call' && i.error).map((i) => i.error.type),
      };
    }
    previous = r.id;
    input = kept ? items : [...input, ...r.output, ...items];
  }
  throw new Error('the conversation does not end');
};

const both = (name, scenario) => ({ [name]: (prompt) => scenario(whole, prompt), [`${name}-stream`]: (prompt) => scenario(streamed, prompt) });

await run(
  {
    ...both('unseen', (ask, prompt) => turn(ask, prompt, { kept: true, tools: [] })),
    ...both('mixed-kept', (ask, prompt) => turn(ask, prompt, { kept: true })),
    ...both('mixed-sent', (ask, prompt) => turn(ask, prompt, { kept: false, include: ['reasoning.encrypted_content'] })),
    ...both('named', (ask, prompt) => turn(ask, prompt, { kept: true, tools: [own, ours({ require_approval: 'never' })] })),
    ...both('approved', (ask, prompt) => turn(ask, prompt, { kept: true, tools: [own, ours()] })),
    ...both('approved-sent', (ask, prompt) => turn(ask, prompt, { kept: false, tools: [own, ours({ require_approval: { never: { tool_names: ['again'] } } })] })),
    ...both('denied', (ask, prompt) => turn(ask, prompt, { kept: true, tools: [own, ours()], answer: false })),
    ...both('image', (ask, prompt) =>
      turn(ask, [{ type: 'input_text', text: prompt }, { type: 'input_image', image_url: pixel, detail: 'auto' }], { kept: true })),
    ...both('nowhere', (ask, prompt) => turn(ask, prompt, { kept: true, tools: [ours({ server_label: 'nowhere', server_url: undefined })] })),
    ...both('elsewhere', (ask, prompt) => turn(ask, prompt, { kept: true, tools: [ours({ server_url: 'https://example.com/mcp' })] })),
    'socket-kept': (prompt) => wired((ask) => turn(ask, prompt, { kept: true })),
    'socket-unstored': (prompt) => wired((ask) => turn(ask, prompt, { kept: true, store: false })),
    'socket-approved': (prompt) => wired((ask) => turn(ask, prompt, { kept: true, store: false, tools: [own, ours()] })),
    conversation: conversing,
    sized,
    background: (prompt) => turn(polled, prompt, { kept: true }),
    'background-stream': (prompt) => turn(resumed, prompt, { kept: true }),
    'background-approved': (prompt) => turn(polled, prompt, { kept: true, tools: [own, ours()] }),
    'background-approved-stream': (prompt) => turn(resumed, prompt, { kept: true, tools: [own, ours()] }),
    parse: async (prompt) => {
      const format = zodTextFormat(z.object({ answer: z.string() }), 'answer');
      return { parsed: (await client.responses.parse({ model, input: prompt, text: { format } })).output_parsed };
    },
    'parse-stream': async (prompt) => {
      const format = zodTextFormat(z.object({ answer: z.string() }), 'answer');
      return { parsed: (await streamed({ model, input: prompt, text: { format } })).output_parsed };
    },
  },
  (error) => error instanceof OpenAI.APIError && { status: error.status, code: error.code, type: error.type, param: error.param, message: error.message, request: error.requestID },
);
