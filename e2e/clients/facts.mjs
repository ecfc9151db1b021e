// What every client script has in common. A script runs one scenario, named by
// its first argument, with the prompt in the second, against the gateway at
// DRAGOMAN_BASE_URL, and prints one line of JSON: the facts that a user of the
// client would see. The Go tests judge them; the scripts judge nothing.

export const baseURL = process.env.DRAGOMAN_BASE_URL;
export const model = process.env.DRAGOMAN_MODEL ?? 'rehearsal';
export const apiKey = process.env.DRAGOMAN_API_KEY ?? 'none';

const [, , scenario, prompt] = process.argv;

export const messages = [{ role: 'user', content: prompt }];

// local are the calls that the client's own tool got. The tool multiplies, which
// no server in the tests does.
export const local = [];

export function multiply({ a, b }) {
  local.push({ a, b });
  return String(a * b);
}

export const multiplySchema = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'number' } },
  required: ['a', 'b'],
  additionalProperties: false,
};

// run runs the scenario that was asked for. An error of the client is a fact,
// too; one of the script is not.
export async function run(scenarios, describeError) {
  const chosen = scenarios[scenario];
  if (!chosen) {
    console.error(`no scenario ${scenario}; there are ${Object.keys(scenarios).join(', ')}`);
    process.exit(2);
  }
  let facts;
  try {
    facts = await chosen(prompt);
  } catch (error) {
    const described = describeError(error);
    if (!described) throw error;
    facts = { error: described };
  }
  console.log(JSON.stringify({ ...facts, local }));
}
