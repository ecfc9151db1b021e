// LangChain's ChatOpenAI: invoke() and stream(), with and without tools, in the
// loop that LangChain's own guide shows.
import { AIMessageChunk, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { apiKey, baseURL, model, multiply, multiplySchema, run } from './facts.mjs';

const chat = new ChatOpenAI({ model, apiKey, maxRetries: 0, configuration: { baseURL } });

const local = tool(multiply, { name: 'multiply', description: 'Multiplies two numbers', schema: multiplySchema });

// whole asks once; streamed asks once and joins the chunks as LangChain does.
const whole = (llm) => (messages) => llm.invoke(messages);

const streamed = (llm) => async (messages) => {
  let joined;
  for await (const chunk of await llm.stream(messages)) joined = joined ? joined.concat(chunk) : chunk;
  if (!(joined instanceof AIMessageChunk)) throw new Error('the stream was empty');
  return joined;
};

// converse asks until no call is left, and runs the calls in between.
async function converse(ask, prompt) {
  const messages = [new HumanMessage(prompt)];
  const names = [];
  for (let steps = 1; steps <= 8; steps++) {
    const answer = await ask(messages);
    messages.push(answer);
    const calls = answer.tool_calls ?? [];
    if (!calls.length) {
      return {
        content: answer.text,
        finish: answer.response_metadata.finish_reason,
        usage: answer.usage_metadata,
        roles: messages.map((m) => m.getType()),
        names,
        steps,
        errors: messages.flatMap((m) => m.invalid_tool_calls ?? []).map((c) => String(c.error)),
      };
    }
    for (const call of calls) {
      names.push(call.name);
      messages.push(new ToolMessage({ tool_call_id: call.id, content: await local.invoke(call.args) }));
    }
  }
  throw new Error('the conversation does not end');
}

const withTools = chat.bindTools([local]);

await run(
  {
    invoke: (prompt) => converse(whole(chat), prompt),
    stream: (prompt) => converse(streamed(chat), prompt),
    'invoke-tools': (prompt) => converse(whole(withTools), prompt),
    'stream-tools': (prompt) => converse(streamed(withTools), prompt),
  },
  (error) => error.status && { status: error.status, code: error.code, message: error.message },
);
