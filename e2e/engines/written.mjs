#!/usr/bin/env node
// Has llama.cpp itself write a call: its template, its grammar from the schema, its
// sampler and its parser, by way of the npm package @fugood/llama.node. What the model
// in the file knows does not matter, the grammar alone decides what can be written.
//
//   node written.mjs MODEL.gguf
//
// Each line on standard input is {"tools": […], "seed": 1, "limit": 400}; each line on
// standard output {"calls": […], "tokens": 12} or {"cut": true} or {"error": "…"}.
import { createInterface } from 'node:readline';
import { loadModel } from '@fugood/llama.node';

const model = await loadModel({ model: process.argv[2], n_ctx: 16384, n_threads: 1, use_mmap: false, n_gpu_layers: 0 });

// What closes is made likelier, so that the texts of a model without any sense end.
const closing = [];
for (const [text, bias] of [['"', 4], ['}', 2], [']', 2], [' ', -4], ['\n', -4], ['\t', -4]]) {
  const { tokens } = await model.tokenize(`x${text}`);
  closing.push([tokens.at(-1), bias]);
}

// The grammar of a call that must come allows prose before it, and of that a model
// without sense makes no end. The call comes at once.
function atOnce(grammar) {
  const once = grammar.replace(/^(root ::= .*?)(?:until-\d+\? )?tool-calls$/m, '$1tool-call');
  if (once === grammar) throw new Error('the grammar has no rule for calls');
  return once;
}

// What belongs to one request: the prompt is the template's, so the parser knows the form.
async function write({ tools, seed, limit }) {
  const messages = [{ role: 'user', content: 'Go.' }];
  const form = await model.getFormattedChat(messages, undefined, { jinja: true, tools, tool_choice: 'required', parallel_tool_calls: false });
  if (!form.grammar) throw new Error('no grammar was made of the tools');
  return model.completion({
    prompt: form.prompt, grammar: atOnce(form.grammar), grammar_lazy: false,
    chat_format: form.chat_format, chat_parser: form.chat_parser, generation_prompt: form.generation_prompt, preserved_tokens: form.preserved_tokens,
    n_predict: limit, temperature: 1.2, top_k: 0, top_p: 1, min_p: 0.001, seed, logit_bias: closing,
    stop: form.additional_stops ?? [],
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  let reply;
  try {
    const request = JSON.parse(line);
    const said = await write(request);
    const calls = (said.tool_calls ?? []).map((c) => ({ name: c.function.name, arguments: c.function.arguments }));
    reply = said.stopped_limit || said.truncated ? { cut: true } : { calls, text: said.text, tokens: said.tokens_predicted };
  } catch (e) {
    reply = { error: String(e?.message ?? e).slice(0, 500) };
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
process.exit(0);
