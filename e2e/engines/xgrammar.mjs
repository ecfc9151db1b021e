#!/usr/bin/env node
// Asks XGrammar, the grammar engine of vLLM and SGLang, what a model could write
// under a schema, with the settings that both use: any whitespace, strict mode.
// It needs no model, and speaks the lines of JSON that docs/prove.md describes.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';

const require = createRequire(import.meta.url);
const packageName = '@mlc-ai/web-xgrammar';

// The package says that it is an ES module and is none.
function load(name) {
  const file = require.resolve(name);
  const module = { exports: {} };
  new Function('module', 'exports', 'require', '__filename', '__dirname', readFileSync(file, 'utf8'))(module, module.exports, require, file, dirname(file));
  return { ...module.exports, version: JSON.parse(readFileSync(`${dirname(file)}/../package.json`, 'utf8')).version };
}

// The engine warns on standard output, where answers belong.
console.log = console.info = console.warn = (...what) => process.stderr.write(`${what.join(' ')}\n`);
const { Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo, Testings, version } = load(packageName);

// The vocabulary of a model that knows single characters: those of ASCII, some beyond
// it, and those that a schema names, or none of its members could be written. The first
// one ends the text.
const ascii = Array.from({ length: 0x7f - 0x20 }, (_, i) => String.fromCharCode(0x20 + i));
const known = ['</s>', ...ascii, '\n', '\t', 'é', '世'];
let vocabulary = known;
let info, grammar, matcher, length;

async function open(schema) {
  grammar?.dispose();
  matcher?.dispose();
  matcher = undefined;
  const text = JSON.stringify(schema);
  length = text.length;
  const all = [...known, ...[...new Set(text)].filter((c) => !known.includes(c))];
  if (all.join('') !== vocabulary.join('')) {
    info?.dispose();
    info = undefined;
  }
  vocabulary = all;
  grammar = await Grammar.fromJSONSchema(text);
}

async function ready() {
  if (matcher) return;
  info ??= await TokenizerInfo.createTokenizerInfo(vocabulary, 'raw', false, vocabulary.length, [0]);
  const compiler = await GrammarCompiler.createGrammarCompiler(info);
  const compiled = await compiler.compileGrammar(grammar);
  matcher = await GrammarMatcher.createGrammarMatcher(compiled);
  compiled.dispose();
  compiler.dispose();
}

// random is mulberry32: the same seed, the same texts.
function random(seed) {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// without is the tokens without one, unless there is no other.
function without(open, text) {
  const rest = open.filter((i) => vocabulary[i] !== text);
  return rest.length > 0 ? rest : open;
}

// sample walks through the grammar at random. After limit characters it takes what
// closes, where it can, else what goes on to the next, and gives up at four times that
// and the length of the schema, whose names may all be needed.
async function sample(next, limit) {
  await ready();
  matcher.reset();
  let text = '';
  for (let n = 0; n < 4 * limit + length; n++) {
    const refused = new Set(await Testings.debugGetMaskedTokensFromBitmask(await matcher.getNextTokenBitmask(), vocabulary.length));
    let open = vocabulary.map((_, i) => i).filter((i) => !refused.has(i));
    if (open.includes(0) && (open.length === 1 || open.every((i) => i === 0 || ' \n\t'.includes(vocabulary[i])))) return text;
    open = open.filter((i) => i !== 0);
    const blank = ' \n\t';
    const dense = open.filter((i) => !blank.includes(vocabulary[i]) || !blank.includes(text.at(-1) ?? ' '));
    if (dense.length > 0) open = dense;
    if (/[0-9]$/.test(text)) open = without(without(open, 'e'), 'E'); // numbers beyond all bounds prove nothing
    if (n > limit) {
      for (const ends of ['"}]', ',']) {
        const closing = open.filter((i) => ends.includes(vocabulary[i]));
        if (closing.length === 0) continue;
        open = closing;
        break;
      }
    }
    if (open.length === 0) return undefined;
    const token = open[Math.floor(next() * open.length)];
    if (!matcher.acceptToken(token)) return undefined;
    text += vocabulary[token];
  }
  return undefined;
}

// accepts reports whether the whole text is one that the grammar can end with.
function accepts(text) {
  matcher.reset();
  return (text === '' || matcher._acceptString(text)) && matcher.acceptToken(0);
}

async function answer(request) {
  switch (request.op) {
    case 'hello':
      return { engine: 'XGrammar', version };
    case 'load':
      await open(request.schema);
      return { ok: true };
    case 'accepts': {
      await ready();
      return { accepted: request.texts.map(accepts) };
    }
    case 'sample': {
      const next = random(request.seed);
      const texts = [];
      for (let i = 0; i < request.count; i++) {
        const text = await sample(next, request.limit);
        if (text !== undefined) texts.push(text);
      }
      return { texts };
    }
  }
  return { error: `unknown op ${request.op}` };
}

for await (const line of createInterface({ input: process.stdin })) {
  let reply;
  try {
    reply = await answer(JSON.parse(line));
  } catch (e) {
    reply = { error: String(e?.message ?? e).slice(0, 500) };
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
  if (/Aborted|memory access|unreachable/.test(reply.error ?? '')) process.exit(3); // the engine is broken now; the next one is fresh
}
process.exit(0);
