// Runs what @mcpjam/sdk calls conformance on a server, and prints each check as JSON.
//
//	node judge.mjs URL [TOKEN]
//
// With a token it runs the checks of OAuth too, as far as they go without a browser.
import { MCPConformanceTest, OAuthConformanceTest } from '@mcpjam/sdk';

console.log = console.info = console.debug = console.error; // the library talks

const [serverUrl, accessToken] = process.argv.slice(2);
const { checks } = await new MCPConformanceTest({ serverUrl, accessToken }).run();
const out = checks.map(({ id, status }) => ({ id, status }));
if (accessToken) {
  const { steps } = await new OAuthConformanceTest({
    serverUrl,
    protocolVersion: '2025-11-25',
    registrationStrategy: 'preregistered',
    client: { preregistered: { clientId: 'dragoman-e2e' } },
    auth: { mode: 'headless' },
    stepTimeout: 5000,
  }).run();
  out.push(...steps.map(({ step, status }) => ({ id: step, status })));
}
process.stdout.write(JSON.stringify(out) + '\n', () => process.exit(0));
