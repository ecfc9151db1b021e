// Runs the views of an MCP endpoint: node views.mjs <node_modules> <url> <era>.
// Each tool with a view has its page read, and the page's script is run as it stands,
// with the official App and a transport to the official AppBridge in place of a browser
// and its window. What each view saw is printed as one line of JSON.
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

const [modules, url, era] = process.argv.slice(2);
const at = (path) => import(pathToFileURL(join(modules, '@modelcontextprotocol', path)).href);
const { Client, StreamableHTTPClientTransport, InMemoryTransport } = await at('client/dist/index.mjs');
const { App } = await at('ext-apps/dist/src/app.js');
const { AppBridge, getToolUiResourceUri } = await at('ext-apps/dist/src/app-bridge.js');
const AsyncFunction = (async () => {}).constructor;

const client = new Client({ name: 'host', version: '1' }, {
	capabilities: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } },
	versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' },
});
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const out = {};
for (const tool of tools.filter((t) => t.name.includes('show_'))) {
	const { contents } = await client.readResource({ uri: getToolUiResourceUri(tool) });
	const script = contents[0].text.match(/<script type="module">(.*)<\/script>/s)[1];
	const [hostSide, viewSide] = InMemoryTransport.createLinkedPair();
	const bridge = new AppBridge(client, { name: 'host', version: '1' }, { serverTools: {}, serverResources: {} });
	await bridge.connect(hostSide);
	const done = (called, both) => { out[tool.name.split('show_')[1]] = { called, both }; };
	await new AsyncFunction('App', 'transport', 'done', script)(App, viewSide, done);
}
console.log(JSON.stringify(out));
await client.close();
process.exit(0);
