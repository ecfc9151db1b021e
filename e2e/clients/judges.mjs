// Judges schemas that the converter made: a grammar engine compiles those for
// engines, and OpenAI's own helper for strict schemas has nothing left to do on
// those that are strict. Reads {grammar:[{tool,dialect,schema}], strict:[…]} from
// the file that is named, and prints what it found.
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { toStrictJsonSchema } from 'openai/lib/transform';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';

// The package says that it is an ES module and is none.
function load(name) {
  const require = createRequire(import.meta.url);
  const file = require.resolve(name);
  const module = { exports: {} };
  const source = readFileSync(file, 'utf8');
  new Function('module', 'exports', 'require', '__filename', '__dirname', source)(module, module.exports, require, file, dirname(file));
  return module.exports;
}

const { grammar, strict } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const facts = { grammar: { judged: 0, refused: [] }, strict: { judged: 0, changed: [], refused: [] } };
const { Grammar } = load('@mlc-ai/web-xgrammar');

for (const { tool, dialect, schema } of grammar) {
  facts.grammar.judged++;
  try {
    const g = await Grammar.fromJSONSchema(JSON.stringify(schema));
    g.dispose();
  } catch (e) {
    facts.grammar.refused.push({ tool, dialect, why: String(e).slice(0, 200) });
  }
}
for (const { tool, dialect, schema } of strict) {
  facts.strict.judged++;
  try {
    if (!isDeepStrictEqual(toStrictJsonSchema(structuredClone(schema)), schema)) facts.strict.changed.push({ tool, dialect });
  } catch (e) {
    facts.strict.refused.push({ tool, dialect, why: String(e).slice(0, 200) });
  }
}
console.log(JSON.stringify(facts));
process.exit(0);
