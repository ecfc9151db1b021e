// Judges MCP Apps at an MCP endpoint: node apps.mjs <node_modules> <url> <era>.
// A view (App) talks to its host (AppBridge), and the host to the endpoint, each by
// the official package. What was seen is printed as one line of JSON.
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

const [modules, url, era] = process.argv.slice(2);
const at = (path) => import(pathToFileURL(join(modules, '@modelcontextprotocol', path)).href);
const { Client, StreamableHTTPClientTransport, InMemoryTransport } = await at('client/dist/index.mjs');
const { App } = await at('ext-apps/dist/src/app.js');
const { AppBridge, getToolUiResourceUri, isToolVisibilityAppOnly } = await at('ext-apps/dist/src/app-bridge.js');

const options = {
	capabilities: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } },
	versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' },
};
const client = new Client({ name: 'host', version: '1' }, options);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const tool = tools.find((t) => t.name.endsWith('show_chart'));
const uri = getToolUiResourceUri(tool);
const { resources } = await client.listResources();
const { contents } = await client.readResource({ uri });

const [hostSide, viewSide] = InMemoryTransport.createLinkedPair();
const bridge = new AppBridge(client, { name: 'host', version: '1' }, { serverTools: {}, serverResources: {} });
const app = new App({ name: 'view', version: '1' }, {}, { autoResize: false });
const shown = new Promise((resolve) => { app.ontoolresult = resolve; });
const initialized = new Promise((resolve) => { bridge.oninitialized = resolve; });
await bridge.connect(hostSide);
await app.connect(viewSide);
await initialized;
await bridge.sendToolInput({ arguments: { year: 2026 } });
await bridge.sendToolResult(await client.callTool({ name: tool.name, arguments: { year: 2026 } }));
const refresh = tools.find((t) => t.name.endsWith('refresh_chart'));
const out = {
	uri,
	appOnly: isToolVisibilityAppOnly(refresh),
	meta: tool._meta,
	listed: resources.find((r) => r.uri === uri),
	contents,
	extension: client.getServerCapabilities()?.extensions?.['io.modelcontextprotocol/ui'],
	shown: await shown,
	called: await app.callServerTool({ name: refresh.name, arguments: {} }),
	read: (await app.readServerResource({ uri })).contents[0].text === contents[0].text,
};
console.log(JSON.stringify(out));
await client.close();
process.exit(0);
