// @openai/agents over Chat Completions.
import { Agent, OpenAIChatCompletionsModel, Runner, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { apiKey, baseURL, model, multiply, multiplySchema, run } from './facts.mjs';

setTracingDisabled(true);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });

const agent = new Agent({
  name: 'e2e',
  instructions: 'Use the tools.',
  model: new OpenAIChatCompletionsModel(client, model),
  tools: [tool({ name: 'multiply', description: 'Multiplies two numbers', parameters: multiplySchema, strict: true, execute: multiply })],
});

const outcome = (result) => ({
  content: result.finalOutput,
  names: result.newItems.filter((i) => i.type === 'tool_call_item').map((i) => i.rawItem.name),
  usage: result.state.usage ?? result.runContext?.usage,
});

await run(
  {
    run: async (prompt) => outcome(await new Runner().run(agent, prompt)),
    stream: async (prompt) => {
      const result = await new Runner().run(agent, prompt, { stream: true });
      let text = '';
      for await (const chunk of result.toTextStream()) text += chunk;
      await result.completed;
      return { ...outcome(result), text };
    },
  },
  (error) => error instanceof OpenAI.APIError && { status: error.status, code: error.code, message: error.message },
);
