// @openai/agents over the API in DRAGOMAN_WIRE.
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, applyPatchTool, computerTool, hostedMcpTool, setTracingDisabled, shellTool, tool } from '@openai/agents';
import OpenAI from 'openai';
import { apiKey, baseURL, model, multiply, multiplySchema, run } from './facts.mjs';

setTracingDisabled(true);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });

const own = tool({ name: 'multiply', description: 'Multiplies two numbers', parameters: multiplySchema, strict: true, execute: multiply });
const Model = process.env.DRAGOMAN_WIRE === 'responses' ? OpenAIResponsesModel : OpenAIChatCompletionsModel;
const agentWith = (...tools) => new Agent({ name: 'e2e', instructions: 'Use the tools.', model: new Model(client, model), tools: [own, ...tools] });
const hosted = (more) => hostedMcpTool({ serverLabel: 'tools', serverUrl: 'dragoman:tools', ...more });
const agent = agentWith();
const pixel = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

// streamed reads all of a stream; whole asks without one.
const whole = (agent, input) => new Runner().run(agent, input);
const streamed = async (agent, input) => {
  const result = await new Runner().run(agent, input, { stream: true });
  for await (const _ of result);
  await result.completed;
  return result;
};

// interrupted asks the user about each call that waits, until none does.
const interrupted = async (ask, agent, input, yes) => {
  let result = await ask(agent, input);
  for (let n = 0; result.interruptions?.length && n < 8; n++) {
    for (const i of result.interruptions) yes ? result.state.approve(i) : result.state.reject(i);
    result = await ask(agent, result.state);
  }
  return outcome(result);
};

// machine are tools that clients run; names are what they did, in order.
const machine = async (ask, prompt) => {
  const did = [];
  const does = (name, answer) => async (...args) => (did.push(`${name} ${JSON.stringify(args.filter((a) => typeof a !== 'object' || Array.isArray(a) || !(a?.context || a?.runContext)))}`), answer);
  const patched = { status: 'completed', output: 'done' };
  const computer = { environment: 'linux', dimensions: [100, 100], screenshot: async () => pixel.slice(pixel.indexOf(',') + 1) };
  for (const name of ['click', 'doubleClick', 'scroll', 'type', 'wait', 'move', 'keypress', 'drag']) computer[name] = does(name);
  const result = await ask(
    agentWith(
      shellTool({ shell: { run: does('shell', { output: [{ stdout: 'hi\n', stderr: '', outcome: { type: 'exit', exitCode: 0 } }] }) } }),
      applyPatchTool({ editor: { createFile: does('create', patched), updateFile: does('update', patched), deleteFile: does('delete', patched) } }),
      computerTool({ computer }),
    ),
    prompt,
  );
  return { ...outcome(result), names: did };
};

const both = (name, scenario) => ({ [name]: (prompt) => scenario(whole, prompt), [`${name}-stream`]: (prompt) => scenario(streamed, prompt) });

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
    ...both('named', async (ask, prompt) => outcome(await ask(agentWith(hosted({ requireApproval: 'never' })), prompt))),
    ...both('approved', async (ask, prompt) =>
      outcome(await ask(agentWith(hosted({ requireApproval: { always: { toolNames: ['echo'] }, never: { toolNames: ['again'] } }, onApproval: async () => ({ approve: true }) })), prompt))),
    ...both('interrupted', (ask, prompt) => interrupted(ask, agentWith(hosted({ requireApproval: 'always' })), prompt, true)),
    ...both('rejected', (ask, prompt) => interrupted(ask, agentWith(hosted({ requireApproval: 'always' })), prompt, false)),
    ...both('machine', machine),
    ...both('image', async (ask, prompt) => outcome(await ask(agent, [{ role: 'user', content: [{ type: 'input_text', text: prompt }, { type: 'input_image', image: pixel }] }]))),
  },
  (error) => error instanceof OpenAI.APIError && { status: error.status, code: error.code, message: error.message },
);
