// LangChain's ChatOpenAI, and ChatAnthropic where DRAGOMAN_WIRE is messages: invoke() and
// stream(), with and without tools, in the loop that LangChain's own guide shows.
import { ChatAnthropic } from '@langchain/anthropic';
import { AIMessageChunk, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { apiKey, baseURL, model, multiply, multiplySchema, run } from './facts.mjs';

const wire = process.env.DRAGOMAN_WIRE ?? 'chat';
const chat =
  wire === 'messages'
    ? new ChatAnthropic({ model, apiKey, maxRetries: 0, anthropicApiUrl: baseURL.replace(/\/v1$/, ''), maxTokens: 1000 })
    : new ChatOpenAI({ model, apiKey, maxRetries: 0, configuration: { baseURL }, useResponsesApi: wire === 'responses' });

const pixel = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
const picture = (prompt) => [{ type: 'text', text: prompt }, { type: 'image_url', image_url: { url: pixel } }];

const local = tool(multiply, { name: 'multiply', description: 'Multiplies two numbers', schema: multiplySchema });

// Servers are named as the provider has them.
const named = wire === 'messages'
  ? chat.bindTools([local], { mcp_servers: [{ type: 'url', name: 'tools', url: 'dragoman:tools' }] })
  : chat.bindTools([local, { type: 'mcp', server_label: 'tools', server_url: 'dragoman:tools', require_approval: 'never' }]);

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
  const messages = [new HumanMessage({ content: prompt })];
  const names = [];
  for (let steps = 1; steps <= 8; steps++) {
    const answer = await ask(messages);
    messages.push(answer);
    const calls = answer.tool_calls ?? [];
    const asks = (answer.additional_kwargs.tool_outputs ?? []).filter((o) => o.type === 'mcp_approval_request');
    if (asks.length) messages.push(new HumanMessage({ content: asks.map((a) => ({ type: 'mcp_approval_response', approval_request_id: a.id, approve: true })) }));
    if (!calls.length && !asks.length) {
      return {
        content: answer.text,
        finish: answer.response_metadata.finish_reason ?? answer.response_metadata.status ?? answer.additional_kwargs.stop_reason,
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

const approving = () => chat.bindTools([local, { type: 'mcp', server_label: 'tools', server_url: 'dragoman:tools', require_approval: 'always' }]);

const withTools = chat.bindTools([local]);

await run(
  {
    invoke: (prompt) => converse(whole(chat), prompt),
    stream: (prompt) => converse(streamed(chat), prompt),
    'invoke-tools': (prompt) => converse(whole(withTools), prompt),
    'stream-tools': (prompt) => converse(streamed(withTools), prompt),
    'invoke-named': (prompt) => converse(whole(named), prompt),
    'stream-named': (prompt) => converse(streamed(named), prompt),
    'invoke-image': (prompt) => converse(whole(withTools), picture(prompt)),
    'stream-image': (prompt) => converse(streamed(withTools), picture(prompt)),
    'invoke-approved': (prompt) => converse(whole(approving()), prompt),
    'stream-approved': (prompt) => converse(streamed(approving()), prompt),
  },
  (error) => error.status && { status: error.status, code: error.code, message: error.message },
);
