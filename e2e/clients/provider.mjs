// An authorization server for tests: oidc-provider with resource indicators, and a
// grant for the exchange of its own access tokens (RFC 8693), which it has none for. It
// prints its issuer when it listens. POST /control changes how it behaves:
//
//	{"rotate":"k2"}   sign with a new key, and tell that one alone
//	{"age":3600}      make access tokens that are so many seconds older than they are
//	{"format":"opaque"}
//	{"refuse":503}    answer everything with this status; 0 ends it
//	{"console":URL,"rotate":"k2"}   have a client "console" that is sent back there
//	{"hold":true}     answer nothing until {"hold":false}
import { createServer } from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import { createLocalJWKSet, jwtVerify } from 'jose'; // which oidc-provider brings
import Provider from 'oidc-provider';

const state = { age: 0, format: 'jwt', refuse: 0, hold: false };
const held = [];
let provider;
let verify;
let answer;

const jwk = (kid) => ({ ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' });

const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange';
const accessToken = 'urn:ietf:params:oauth:token-type:access_token';

const resourceServer = (resource) => ({
  scope: 'gateway:use tools:read tools:write', audience: resource, accessTokenTTL: 600,
  accessTokenFormat: state.format, jwt: { sign: { alg: 'RS256' } },
});

// exchange gives a token for a resource to whom a token for another one was given.
async function exchange(ctx) {
  const { client, params } = ctx.oidc;
  const { payload } = await jwtVerify(params.subject_token, verify, { issuer: provider.issuer });
  if (params.subject_token_type !== accessToken || params.requested_token_type !== accessToken || payload.aud === params.resource) {
    ctx.status = 400;
    ctx.body = { error: 'invalid_request' };
    return;
  }
  const token = new provider.AccessToken({ accountId: payload.sub, client, gty: 'exchange', scope: params.scope });
  token.resourceServer = new provider.ResourceServer(params.resource, resourceServer(params.resource));
  ctx.body = { access_token: await token.save(), issued_token_type: accessToken, token_type: 'Bearer', expires_in: token.expiration, scope: token.scope };
}

function build(issuer, kid) {
  const key = jwk(kid);
  verify = createLocalJWKSet({ keys: [{ kty: key.kty, n: key.n, e: key.e, kid, use: 'sig', alg: key.alg }] });
  provider = new Provider(issuer, {
    jwks: { keys: [key] },
    cookies: { keys: ['a key for cookies of tests'] },
    scopes: ['openid', 'offline_access', 'gateway:use', 'tools:read', 'tools:write'],
    clients: [
      { client_id: 'ide', token_endpoint_auth_method: 'none', application_type: 'native', grant_types: ['authorization_code', 'refresh_token'], redirect_uris: ['http://127.0.0.1:1/callback'] },
      ...(state.console ? [{ client_id: 'console', client_secret: 'console-secret', application_type: 'native', grant_types: ['authorization_code'], redirect_uris: [state.console] }] : []),
      { client_id: 'robot', client_secret: 'robot-secret', grant_types: ['client_credentials'], response_types: [], redirect_uris: [] },
      { client_id: 'gateway', client_secret: 'gateway-secret', grant_types: ['client_credentials', exchangeGrant], response_types: [], redirect_uris: [] },
    ],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: async (ctx, client) => client.clientId === 'gateway' },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (ctx, resource) => resourceServer(resource),
      },
    },
    formats: {
      customizers: {
        jwt: (ctx, token, parts) => {
          for (const time of ['iat', 'exp']) parts.payload[time] -= state.age;
        },
      },
    },
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  });
  provider.registerGrantType(exchangeGrant, exchange, ['subject_token', 'subject_token_type', 'requested_token_type', 'resource', 'scope']);
  provider.on('server_error', (ctx, error) => console.error(error));
  answer = provider.callback();
}

// Whoever asks is Ada, who agrees to everything.
async function agree(req, res) {
  const { prompt, params, grantId, session } = await provider.interactionDetails(req, res);
  if (prompt.name === 'login') {
    return provider.interactionFinished(req, res, { login: { accountId: 'ada' } });
  }
  const grant = (grantId && (await provider.Grant.find(grantId))) || new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  if (prompt.details.missingOIDCScope) grant.addOIDCScope(prompt.details.missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  return provider.interactionFinished(req, res, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true });
}

async function control(req, res) {
  let body = '';
  for await (const part of req) body += part;
  const { rotate, ...change } = JSON.parse(body);
  Object.assign(state, change);
  if (rotate) build(provider.issuer, rotate);
  while (!state.hold && held.length > 0) serve(...held.pop());
  res.end();
}

function serve(req, res) {
  if (req.url === '/control') return control(req, res);
  if (state.hold) return held.push([req, res]);
  if (state.refuse) {
    res.statusCode = state.refuse;
    return res.end();
  }
  if (req.url.startsWith('/interaction/')) {
    return agree(req, res).catch((error) => {
      console.error(error);
      res.statusCode = 500;
      res.end();
    });
  }
  return answer(req, res);
}

const server = createServer(serve);
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  build(issuer, 'k1');
  console.log(issuer);
});
process.stdin.on('end', () => process.exit(0)).resume();
