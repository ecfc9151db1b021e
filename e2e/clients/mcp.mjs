// Official MCP clients for TypeScript against the gateway's MCP endpoint: version 1
// of the SDK speaks the legacy era, version 2 both.
const [, , scenario] = process.argv;
const url = new URL(process.env.DRAGOMAN_BASE_URL.replace(/\/v1$/, '/mcp'));

const answer = async () => ({ action: 'accept', content: { answer: 'forty-two' } });

const legacy = async () => {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  const client = new Client({ name: 'e2e', version: '1' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, answer);
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
};

const modern = async () => {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const client = new Client({ name: 'e2e', version: '1' }, { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: scenario === 'modern' ? { pin: '2026-07-28' } : 'auto' } });
  client.setRequestHandler('elicitation/create', answer);
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
};

const client = await (scenario === 'legacy' ? legacy() : modern());
const tools = (await client.listTools()).tools.map((t) => t.name).sort();
const progress = [];
const echo = await client.callTool({ name: 'tools__echo', arguments: { message: 'hi' } });
const steps = await client.callTool({ name: 'tools__steps', arguments: {} }, ...(scenario === 'legacy' ? [undefined] : []), { onprogress: (p) => progress.push(p.progress) });
const asked = await client.callTool({ name: 'tools__ask', arguments: {} });
let unknown = '';
try {
  await client.callTool({ name: 'nobody', arguments: {} });
} catch (e) {
  unknown = String(e.code);
}
const text = (r) => r.content.map((c) => c.text ?? '').join('');
console.log(JSON.stringify({ tools, echo: text(echo), steps: text(steps), progress, asked: text(asked), unknown, version: client.getServerVersion()?.name }));
await client.close();
