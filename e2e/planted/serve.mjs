// Serves planted servers on the official SDKs for TypeScript.
//
//	node serve.mjs v1|v2 stdio FILE      the server of FILE over standard input and output
//	node serve.mjs v1|v2 http FILE …     each FILE at /N/mcp; the address is the first line
//
// v1 is @modelcontextprotocol/sdk, the legacy era alone; v2 @modelcontextprotocol/server, both.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { Planted } from './tools.mjs';

const [sdk, transport, ...files] = process.argv.slice(2);
const planted = files.map((file) => new Planted(JSON.parse(readFileSync(file, 'utf8'))));
const { make, overStdio, overHTTP } = sdk === 'v1' ? await firstSDK() : await secondSDK();

if (transport === 'stdio') {
  const serves = planted[0].spec.serves ?? {};
  if (serves.banner) console.log(serves.banner);
  for (let i = 0; i < (serves.noise ?? 0); i++) console.error(`[debug] ${i}: polling the queue for the state of the connection`);
  if (serves.stays) setInterval(() => {}, 1000);
  await overStdio(planted[0]);
} else {
  const handlers = planted.map((p) => overHTTP(p));
  const http = createServer(async (req, res) => {
    const host = (req.headers.host ?? '').replace(/:\d+$/, '');
    if (!['127.0.0.1', 'localhost', '[::1]'].includes(host)) return res.writeHead(403).end('this host is not served');
    if (req.headers.origin) return res.writeHead(403).end('no pages of others');
    const n = Number(/^\/(\d+)\/mcp$/.exec(req.url)?.[1] ?? NaN);
    if (!handlers[n]) return res.writeHead(404).end();
    await handlers[n](req, res);
  });
  http.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}`));
  process.stdin.resume().on('end', () => process.exit(0));
}

function capabilities(p) {
  const out = { tools: {} };
  if (p.spec.prompts) out.prompts = {};
  if (p.spec.resources) out.resources = {};
  return out;
}

async function firstSDK() {
  const { Server } = await import('@modelcontextprotocol/sdk/server/index.js');
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
  const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
  const types = await import('@modelcontextprotocol/sdk/types.js');
  const make = (p) => {
    const server = new Server(p.spec.info, { capabilities: capabilities(p), instructions: p.spec.instructions });
    server.setRequestHandler(types.ListToolsRequestSchema, ({ params }) => p.listTools(server.getClientVersion()?.name, params?.cursor));
    server.setRequestHandler(types.CallToolRequestSchema, ({ params }, extra) => p.call(params.name, params.arguments, progress(params, extra.sendNotification)));
    if (p.spec.prompts) {
      server.setRequestHandler(types.ListPromptsRequestSchema, () => p.listPrompts());
      server.setRequestHandler(types.GetPromptRequestSchema, ({ params }) => p.getPrompt(params.name));
    }
    if (p.spec.resources) {
      server.setRequestHandler(types.ListResourcesRequestSchema, () => p.listResources());
      server.setRequestHandler(types.ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [] }));
      server.setRequestHandler(types.ReadResourceRequestSchema, ({ params }) => p.readResource(params.uri));
    }
    return server;
  };
  return {
    make,
    overStdio: (p) => make(p).connect(new StdioServerTransport()),
    overHTTP: (p) => {
      const sessions = new Map();
      return async (req, res) => {
        const id = req.headers['mcp-session-id'];
        if (id && !sessions.has(id)) return res.writeHead(404).end();
        if (id) return sessions.get(id).handleRequest(req, res);
        const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: (s) => sessions.set(s, transport), onsessionclosed: (s) => sessions.delete(s) });
        await make(p).connect(transport);
        await transport.handleRequest(req, res);
      };
    },
  };
}

async function secondSDK() {
  const { Server, createMcpHandler } = await import('@modelcontextprotocol/server');
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
  const { toNodeHandler } = await import('@modelcontextprotocol/node');
  const make = (p) => {
    p.modern = true;
    const server = new Server(p.spec.info, { capabilities: capabilities(p), instructions: p.spec.instructions });
    server.setRequestHandler('tools/list', (request, ctx) => p.listTools(client(server, ctx.mcpReq.envelope), request.params?.cursor));
    server.setRequestHandler('tools/call', ({ params }, ctx) => p.call(params.name, params.arguments, progress(params, (n) => ctx.mcpReq.notify(n))));
    if (p.spec.prompts) {
      server.setRequestHandler('prompts/list', () => p.listPrompts());
      server.setRequestHandler('prompts/get', ({ params }) => p.getPrompt(params.name));
    }
    if (p.spec.resources) {
      server.setRequestHandler('resources/list', () => p.listResources());
      server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }));
      server.setRequestHandler('resources/read', ({ params }) => p.readResource(params.uri));
    }
    return server;
  };
  return { make, overStdio: (p) => serveStdio(() => make(p)), overHTTP: (p) => toNodeHandler(createMcpHandler(() => make(p))) };
}

/** client is what the client calls itself: with each request in the modern era, once in the other. */
const client = (server, envelope) => envelope?.['io.modelcontextprotocol/clientInfo']?.name ?? server.getClientVersion?.()?.name ?? '';

/** progress tells the client how far a call is, if it wants to know. */
function progress(params, notify) {
  const progressToken = params._meta?.progressToken;
  return (n) => {
    if (progressToken === undefined) return;
    Promise.resolve(notify({ method: 'notifications/progress', params: { progressToken, progress: n, total: 1 } })).catch(() => {});
  };
}
