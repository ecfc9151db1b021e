// MCP clients that others wrote against the gateway's MCP endpoint. Each does the
// same things, as far as it can, and prints what came of them:
//
//   legacy    @modelcontextprotocol/sdk, which speaks the legacy era
//   auto      @modelcontextprotocol/client, which finds out the era
//   modern    the same, held to the modern era
//   sse       @modelcontextprotocol/sdk over HTTP+SSE
//   remote    the same behind mcp-remote, as desktop clients start it
//   ai        @ai-sdk/mcp
//   agents    @openai/agents
const [, , scenario] = process.argv;
const url = new URL(process.env.DRAGOMAN_BASE_URL.replace(/\/v1$/, '/mcp'));
const about = { name: 'e2e', version: '1' };
const answer = async () => ({ action: 'accept', content: { answer: 'forty-two' } });

// ofSDK makes the things that are done of a client of one of the two SDKs.
const ofSDK = (client, v1) => ({
  list: async () => (await client.listTools()).tools,
  call: (name, args, options) => client.callTool({ name, arguments: args }, ...(v1 ? [undefined] : []), options),
  prompts: async () => (await client.listPrompts()).prompts,
  prompt: (name, args) => client.getPrompt({ name, arguments: args }),
  resources: async () => (await client.listResources()).resources,
  resource: (uri) => client.readResource({ uri }),
  server: () => client.getServerVersion()?.name,
  progress: true,
  asks: true,
  close: () => client.close(),
});

const v1 = async (transport) => {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  const client = new Client(about, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, answer);
  await client.connect(await transport());
  return ofSDK(client, true);
};

const v2 = async (mode) => {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const client = new Client(about, { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', answer);
  await client.connect(new StreamableHTTPClientTransport(url));
  return ofSDK(client, false);
};

// Over HTTP+SSE and over lines, this SDK loses progress that comes in one piece with
// the answer: it forgets the call before it looks at what came first. So nothing is
// expected of it there.
const clients = {
  legacy: () =>
    v1(async () => {
      const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
      return new StreamableHTTPClientTransport(url);
    }),
  sse: async () => {
    const client = await v1(async () => {
      const { SSEClientTransport } = await import('@modelcontextprotocol/sdk/client/sse.js');
      return new SSEClientTransport(new URL('/sse', url));
    });
    return { ...client, progress: false };
  },
  remote: async () => {
    const client = await v1(async () => {
      const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
      const { fileURLToPath } = await import('node:url');
      const proxy = fileURLToPath(new URL('../node_modules/mcp-remote/dist/proxy.js', import.meta.url));
      return new StdioClientTransport({
        command: process.execPath,
        args: [proxy, url.href, '--allow-http', '--transport', 'http-only'],
        env: { HOME: process.env.HOME, PATH: process.env.PATH, MCP_REMOTE_CONFIG_DIR: process.env.HOME },
        stderr: 'ignore',
      });
    });
    return { ...client, progress: false };
  },
  auto: () => v2('auto'),
  modern: () => v2({ pin: '2026-07-28' }),
  ai: async () => {
    const { createMCPClient, ElicitationRequestSchema } = await import('@ai-sdk/mcp');
    const client = await createMCPClient({ transport: { type: 'http', url: url.href }, clientName: about.name, capabilities: { elicitation: {} } });
    client.onElicitationRequest(ElicitationRequestSchema, answer);
    return {
      list: async () => (await client.listTools()).tools,
      call: (name, args, options) => client.callTool({ name, arguments: args, options: options?.signal && { signal: options.signal } }),
      prompts: async () => (await client.listPrompts()).prompts,
      prompt: (name, args) => client.getPrompt({ name, arguments: args }),
      resources: async () => (await client.listResources()).resources,
      resource: (uri) => client.readResource({ uri }),
      server: () => client.serverInfo?.name,
      asks: true,
      close: () => client.close(),
    };
  },
  agents: async () => {
    const { MCPServerStreamableHttp } = await import('@openai/agents');
    const server = new MCPServerStreamableHttp({ url: url.href, name: 'dragoman' });
    await server.connect();
    return {
      list: () => server.listTools(),
      call: async (name, args, options) => ({ content: await server.callTool(name, args, null, options?.signal && { signal: options.signal }) }),
      resources: async () => (await server.listResources()).resources,
      resource: (uri) => server.readResource(uri),
      close: () => server.close(),
    };
  },
};

const text = (r) => (r.content ?? []).map((c) => c.text ?? '').join('');
const client = await clients[scenario]();
const facts = { tools: (await client.list()).map((t) => t.name).sort(), echo: {}, progress: {}, asked: {}, cancelled: {} };
facts.server = client.server?.() ?? 'dragoman';
for (const label of ['legacy', 'modern']) {
  facts.echo[label] = text(await client.call(`${label}__echo`, { message: 'hi' }));
  if (client.progress) {
    facts.progress[label] = [];
    await client.call(`${label}__steps`, {}, { onprogress: (p) => facts.progress[label].push(p.progress) });
  }
  if (client.asks) {
    facts.asked[label] = text(await client.call(`${label}__ask`, {}));
  }
  const given = new AbortController();
  const slow = client.call(`${label}__slow`, {}, { signal: given.signal });
  setTimeout(() => given.abort(new Error('enough')), 300);
  facts.cancelled[label] = await slow.then(
    () => 'answered',
    () => 'given up',
  );
}
try {
  const result = await client.call('nobody', {});
  facts.unknown = result.isError ? text(result) : 'answered';
} catch (e) {
  facts.unknown = String(e.message ?? e);
}
if (client.prompt) {
  facts.prompts = (await client.prompts()).map((p) => p.name).sort();
  facts.prompt = (await client.prompt('everything__args-prompt', { city: 'Paris' })).messages.map((m) => m.content.text).join('');
}
const resources = await client.resources();
facts.resources = resources.length;
facts.resource = (await client.resource(resources[0].uri)).contents.map((c) => c.uri).join(' ') === resources[0].uri;
console.log(JSON.stringify(facts));
await client.close();
process.exit(0);
