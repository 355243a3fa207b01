// An authorization server that nobody here wrote: oidc-provider, with rotation and reuse detection on, at the paths and with
// the JSON bodies that the service documents. The shim below turns a JSON body into the form that oidc-provider reads; all
// judgement is its own.
//
// usage: node server.mjs PORT CALLBACK [ACCESS_TOKEN_SECONDS]
import Provider from 'oidc-provider';

const [port, callback, seconds = '3'] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

const provider = new Provider(issuer, {
  clients: [{
    client_id: 'APP-peer',
    client_secret: 'peer-secret',
    redirect_uris: [callback],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'client_secret_post',
  }],
  routes: { authorization: '/oauth/authorize', token: '/oauth/access_token' },
  scopes: ['openid', 'offline_access', 'install_app', 'read_agent_profile'],
  rotateRefreshToken: true,
  issueRefreshToken: async () => true,
  ttl: { AccessToken: Number(seconds), RefreshToken: 3600, Grant: 3600, Session: 3600, Interaction: 600 },
  pkce: { required: () => false },
  features: { devInteractions: { enabled: true }, introspection: { enabled: true } },
  cookies: { keys: ['for tests only'] },
});

provider.use(async (ctx, next) => {
  if (ctx.method === 'POST' && ctx.is('application/json')) {
    let raw = '';
    for await (const piece of ctx.req) raw += piece;
    const body = JSON.parse(raw);
    console.error(`POST ${ctx.path} ${body.grant_type}`);
    ctx.req.body = body;
    ctx.request.body = body;
    ctx.req.headers['content-type'] = 'application/x-www-form-urlencoded';
  }
  await next();
});
provider.on('grant.error', (_, error) => console.error(`refused: ${error.error} ${error.error_detail ?? ''}`));
provider.on('grant.revoked', () => console.error('the whole family is revoked'));

provider.listen(Number(port), '127.0.0.1', () => console.log(`ready ${issuer}`));
