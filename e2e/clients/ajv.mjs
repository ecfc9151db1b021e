// Judges values by JSON schemas with ajv, which shares no code with ours. Reads
// [{schema, data}] from the file that is named, and prints for each
// {valid, keyword, why}: keyword is the first one that is not met, and valid is
// null where ajv cannot use the schema. Formats are judged.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const formats = require('ajv-formats');
const draft7 = require('ajv'), draft2019 = require('ajv/dist/2019.js'), draft2020 = require('ajv/dist/2020.js');

// compile makes a validator of the draft that the schema names. What names none,
// or a draft before 7, is read as draft 7, as most tools do, unless it uses words
// that came later.
function compile(schema) {
  const named = String(schema.$schema ?? '');
  const later = named === '' && /"(prefixItems|dependentRequired|dependentSchemas|unevaluated\w+)":/.test(JSON.stringify(schema));
  const { default: Ajv } = later || named.includes('2020-12') ? draft2020 : named.includes('2019-09') ? draft2019 : draft7;
  const ajv = new Ajv({ strict: false, validateSchema: false, logger: false, allErrors: false, unicodeRegExp: false });
  (formats.default ?? formats)(ajv);
  const { $schema, ...rest } = schema;
  return ajv.compile(Object.hasOwn(rest, 'id') && typeof rest.id === 'string' ? (({ id, ...r }) => r)(rest) : rest);
}

// Instances of one schema come one after the other; it is compiled once.
let text, validate, refusal;
const judged = JSON.parse(readFileSync(process.argv[2], 'utf8')).map(({ schema, data }) => {
  try {
    const now = JSON.stringify(schema);
    if (now !== text) {
      text = now;
      validate = refusal = undefined;
      try { validate = compile(schema); } catch (e) { refusal = e; }
    }
    if (refusal) throw refusal;
    const valid = validate(data);
    const first = validate.errors?.[0];
    return { valid, keyword: first?.keyword ?? '', why: first ? `${first.instancePath} ${first.message}` : '' };
  } catch (e) {
    return { valid: null, keyword: '', why: String(e.message).slice(0, 200) };
  }
});
console.log(JSON.stringify(judged));
