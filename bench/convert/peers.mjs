// Converts the tools of a corpus with the converters of others and prints what
// they would send: {name: {tools: [{tool, schema, strict}], failed, microseconds}}.
// Usage: node bench/convert/peers.mjs CORPUS > peers.json
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(new URL('../../e2e/package.json', import.meta.url));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { mcpToFunctionTool } = await load('@openai/agents');
const { generateText, jsonSchema, tool: aiTool } = await load('ai');
const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible');

const tools = [];
for (const file of readdirSync(process.argv[2])) {
  if (!file.endsWith('.json') || file === 'MANIFEST.json') continue;
  const list = JSON.parse(readFileSync(join(process.argv[2], file), 'utf8'));
  for (const t of list.tools ?? list.result?.tools ?? []) tools.push({ label: `${file}/${t.name}`, t });
}

async function measure(convert) {
  const out = { tools: [], failed: 0, microseconds: 0 };
  for (const { label, t } of tools) {
    const start = process.hrtime.bigint();
    try {
      out.tools.push({ tool: label, ...(await convert(t)) });
    } catch {
      out.failed++;
    }
    out.microseconds += Number(process.hrtime.bigint() - start) / 1000;
  }
  return out;
}

let body;
const provider = createOpenAICompatible({
  name: 'x', baseURL: 'http://localhost/v1',
  fetch: async (_, init) => {
    body = JSON.parse(init.body);
    return new Response(JSON.stringify({ id: 'x', created: 1, model: 'm', choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }] }), { headers: { 'content-type': 'application/json' } });
  },
});
const result = {
  '@openai/agents': await measure((t) => {
    const f = mcpToFunctionTool(structuredClone(t), { name: 'x' }, true);
    return { schema: f.parameters, strict: f.strict === true };
  }),
  ai: await measure(async (t) => {
    await generateText({ model: provider('m'), prompt: 'x', maxRetries: 0, tools: { x: aiTool({ description: t.description, inputSchema: jsonSchema(t.inputSchema) }) } });
    const f = body.tools[0].function;
    return { schema: f.parameters, strict: f.strict === true };
  }),
};
process.stdout.write(JSON.stringify(result));
process.exit(0);
