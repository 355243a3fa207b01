// An authorization server that nobody here wrote: oidc-provider as it comes, with rotation and reuse detection on and proof of
// the code demanded (RFC 7636). It is found by its issuer (RFC 8414), takes forms, and knows its clients by HTTP Basic or by assertions
// (RFC 7523) that the private keys rsa.pem, p256.pem and ed25519.pem in the folder KEYS sign.
//
// usage: node server.mjs PORT CALLBACK [ACCESS_TOKEN_SECONDS [KEYS]]
import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import Provider from 'oidc-provider';

const [port, callback, seconds = '3', keys] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

function publicKey(file) {
  return createPublicKey(readFileSync(file)).export({ format: 'jwk' });
}

const provider = new Provider(issuer, {
  clients: [{
    client_id: 'APP-peer',
    client_secret: 'peer-secret',
    redirect_uris: [callback],
    grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
    response_types: ['code'],
    token_endpoint_auth_method: 'client_secret_basic',
  }, ...(keys ? [{
    client_id: 'APP-key',
    redirect_uris: [],
    grant_types: ['client_credentials'],
    response_types: [],
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys: ['rsa', 'p256', 'ed25519'].map((kid) => ({ ...publicKey(`${keys}/${kid}.pem`), kid })) },
  }] : [])],
  enabledJWA: { clientAuthSigningAlgValues: ['RS256', 'ES256', 'EdDSA'] },
  scopes: ['openid', 'offline_access', 'install_app', 'read_agent_profile'],
  rotateRefreshToken: true,
  issueRefreshToken: async () => true,
  ttl: { AccessToken: Number(seconds), RefreshToken: 3600, Grant: 3600, Session: 3600, Interaction: 600 },
  pkce: { required: () => true },
  features: {
    devInteractions: { enabled: true }, introspection: { enabled: true }, clientCredentials: { enabled: true }, revocation: { enabled: true },
  },
  cookies: { keys: ['for tests only'] },
});

provider.use(async (ctx, next) => {
  if (ctx.method === 'POST' && ['/token', '/token/revocation'].includes(ctx.path)) console.error(`POST ${ctx.path} ${ctx.get('content-type')}`);
  await next();
});
provider.on('grant.error', (_, error) => console.error(`refused: ${error.error} ${error.error_detail ?? ''}`));
provider.on('grant.revoked', () => console.error('the whole family is revoked'));

provider.listen(Number(port), '127.0.0.1', () => console.log(`ready ${issuer}`));
