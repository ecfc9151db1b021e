// LlamaIndex TS: exec(), which runs the tools of one message and does not stream,
// and its agent, which does both.
import { FunctionTool } from '@llamaindex/core/tools';
import { OpenAI } from '@llamaindex/openai';
import { agent, agentStreamEvent, agentToolCallEvent, stopAgentEvent } from '@llamaindex/workflow';
import { apiKey, baseURL, model, multiply, multiplySchema, run } from './facts.mjs';

const llm = new OpenAI({ model, apiKey, baseURL, maxRetries: 0 });

const tools = [FunctionTool.from(multiply, { name: 'multiply', description: 'Multiplies two numbers', parameters: multiplySchema })];

// converse asks until no call is left; exec runs the calls in between.
async function converse(prompt, offered) {
  const messages = [{ role: 'user', content: prompt }];
  const names = [];
  for (let steps = 1; steps <= 8; steps++) {
    const { newMessages, toolCalls } = await llm.exec({ messages, ...offered });
    messages.push(...newMessages);
    names.push(...toolCalls.map((c) => c.name));
    if (!toolCalls.length) return { content: messages.at(-1).content, names, steps, roles: messages.map((m) => m.role) };
  }
  throw new Error('the conversation does not end');
}

// chat streams one answer without tools.
async function chat(prompt) {
  let content = '';
  let finish;
  for await (const chunk of await llm.chat({ messages: [{ role: 'user', content: prompt }], stream: true })) {
    content += chunk.delta;
    finish = chunk.raw.choices[0]?.finish_reason ?? finish;
  }
  return { content, finish, names: [] };
}

async function runAgent(prompt) {
  const names = [];
  let text = '';
  for await (const event of agent({ llm, tools }).runStream(prompt)) {
    if (agentStreamEvent.include(event)) text += event.data.delta;
    if (agentToolCallEvent.include(event)) names.push(event.data.toolName);
    if (stopAgentEvent.include(event)) return { content: event.data.result, text, names };
  }
  throw new Error('the agent does not end');
}

await run(
  {
    exec: (prompt) => converse(prompt, {}),
    stream: chat,
    'exec-tools': (prompt) => converse(prompt, { tools }),
    agent: runAgent,
  },
  (error) => error.status && { status: error.status, code: error.code, message: error.message },
);
