// The official openai package on the Responses API: responses.create and the strict
// accumulator of responses.stream, with the client's own tool beside ours.
import OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
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
