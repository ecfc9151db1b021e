// The Vercel ai package with @ai-sdk/openai-compatible: generateText, streamText.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import { apiKey, baseURL, model, multiply, multiplySchema, run } from './facts.mjs';

const provider = createOpenAICompatible({ name: 'dragoman', baseURL, apiKey, includeUsage: true });

const tools = {
  multiply: tool({ description: 'Multiplies two numbers', inputSchema: jsonSchema(multiplySchema), execute: multiply }),
};

const asked = (prompt, more) => ({ model: provider(model), prompt, maxRetries: 0, ...more });

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
  },
  (error) => APICallError.isInstance(error) && { status: error.statusCode, message: error.message },
);
