// The Vercel ai package: generateText and streamText, by the wire in DRAGOMAN_WIRE. For
// responses the provider is createOpenAI() as it comes.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import { apiKey, baseURL, model, multiply, multiplySchema, run } from './facts.mjs';

const wire = process.env.DRAGOMAN_WIRE ?? 'chat';
const provider = {
  chat: () => createOpenAICompatible({ name: 'dragoman', baseURL, apiKey, includeUsage: true }),
  responses: () => createOpenAI({ baseURL, apiKey }),
  messages: () => createAnthropic({ baseURL, apiKey }),
}[wire]();

const tools = {
  multiply: tool({ description: 'Multiplies two numbers', inputSchema: jsonSchema(multiplySchema), execute: multiply }),
};

// A server of the gateway's, named as the provider wants it; approvals are asked of the
// client's user where the wire knows them.
const named = {
  responses: (requireApproval) => ({ tools: { ...tools, mcp: provider.tools?.mcp?.({ serverLabel: 'tools', serverUrl: 'dragoman:tools', requireApproval }) } }),
  messages: () => ({ tools, providerOptions: { anthropic: { mcpServers: [{ type: 'url', name: 'tools', url: 'dragoman:tools' }] } } }),
}[wire];

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
const seen = (prompt) => [{ role: 'user', content: [{ type: 'text', text: prompt }, { type: 'image', image: Buffer.from(pixel, 'base64'), mediaType: 'image/png' }] }];

const asked = (prompt, more) => ({ model: provider(model), ...(Array.isArray(prompt) ? { messages: prompt } : { prompt }), maxRetries: 0, stopWhen: stepCountIs(8), ...more });

// approve asks until nothing waits for the user's approval any more.
async function approve(ask, prompt, approved) {
  let messages = [{ role: 'user', content: prompt }];
  const names = [];
  for (let steps = 1; steps <= 8; steps++) {
    const result = await ask(asked(messages, named('always')));
    names.push(...(await result.steps).flatMap((s) => s.toolCalls.map((c) => c.toolName)));
    const response = await result.response;
    const requests = (await result.content).filter((p) => p.type === 'tool-approval-request');
    if (!requests.length) return { ...(await outcome(result)), names };
    messages = [...messages, ...response.messages, { role: 'tool', content: requests.map((r) => ({ type: 'tool-approval-response', approvalId: r.approvalId, approved, providerExecuted: true })) }];
  }
  throw new Error('the conversation does not end');
}

const outcome = async (result) => {
  const steps = await result.steps;
  return {
    content: await result.text,
    finish: await result.finishReason,
    usage: await result.usage,
    steps: steps.length,
    names: steps.flatMap((s) => s.toolCalls.map((c) => c.toolName)),
    errors: steps.flatMap((s) => s.content.filter((p) => p.type === 'tool-error').map((p) => String(p.error))),
  };
};

async function stream(params) {
  const kinds = {};
  const errors = [];
  const result = streamText({ ...params, onError: ({ error }) => errors.push(error) });
  for await (const part of result.fullStream ?? result.stream) kinds[part.type] = (kinds[part.type] ?? 0) + 1;
  if (errors.length) throw errors[0];
  return { ...(await outcome(result)), kinds };
}

await run(
  {
    generate: async (prompt) => outcome(await generateText(asked(prompt))),
    stream: (prompt) => stream(asked(prompt)),
    'generate-tools': async (prompt) => outcome(await generateText(asked(prompt, { tools, stopWhen: stepCountIs(5) }))),
    'stream-tools': (prompt) => stream(asked(prompt, { tools, stopWhen: stepCountIs(5) })),
    'generate-named': async (prompt) => outcome(await generateText(asked(prompt, named('never')))),
    'stream-named': (prompt) => stream(asked(prompt, named('never'))),
    'generate-image': async (prompt) => outcome(await generateText(asked(seen(prompt), { tools }))),
    'stream-image': (prompt) => stream(asked(seen(prompt), { tools })),
    'generate-approved': (prompt) => approve(generateText, prompt, true),
    'stream-approved': (prompt) => approve(async (p) => { const r = streamText(p); await r.consumeStream(); return r; }, prompt, true),
    'generate-denied': (prompt) => approve(generateText, prompt, false),
  },
  (error) => APICallError.isInstance(error) && { status: error.statusCode, message: error.message },
);
