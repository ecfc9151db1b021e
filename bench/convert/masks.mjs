// Prints the schemas of MaskBench that are those of an object as one list of
// tools, so that peers.mjs and its judge can read them as they read a corpus.
// Usage: node bench/convert/masks.mjs MASKBENCH > FOLDER/maskbench.json
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const tools = [];
for (const file of readdirSync(process.argv[2]).sort()) {
  if (!file.endsWith('.json')) continue;
  try {
    const { schema } = JSON.parse(readFileSync(join(process.argv[2], file), 'utf8'));
    if (schema?.type === 'object') tools.push({ name: `tool_${tools.length}`, description: 'A tool.', inputSchema: schema });
  } catch {
    // what is no JSON is no tool
  }
}
process.stdout.write(JSON.stringify({ tools }));
