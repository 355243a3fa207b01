# An authorization server that nobody here wrote, in another language: Authlib's, with its own judgement of forms, of HTTP Basic,
# of client assertions (RFC 7523), of the proof of a code (RFC 7636), of spent refresh tokens and of revocations (RFC 7009). What is
# here is what Authlib leaves to the application: tables of clients, keys, codes, tokens and used assertions in memory, a person who
# always agrees, metadata (RFC 8414) and introspection (RFC 7662).
#
# usage: python authlib_server.py PORT CALLBACK [ACCESS_TOKEN_SECONDS [KEYS]]
#
# The client APP-peer has a secret. The client APP-key has the public keys of the private keys in the JSON file KEYS,
# `[{"kty": "EC", "kid": "first", "pem": "…"}]`, which is read for each request. GET /seen returns the forms of all requests to /token
# and /revoke; POST /fail?times=1 answers the next ones with 503.
import json
import logging
import sys
import time

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, TokenMixin, grants
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7523 import JWTBearerClientAssertion
from authlib.oauth2.rfc7636 import CodeChallenge
from flask import Flask, jsonify, request
from joserfc import jwk
from werkzeug.serving import make_server

port, callback = int(sys.argv[1]), sys.argv[2]
seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
keys = sys.argv[4] if len(sys.argv) > 4 else None
codes, tokens, seen, used, failing = {}, [], [], set(), []


class Client(ClientMixin):
    client_id, secret = "APP-peer", "peer-secret"
    methods = ["client_secret_basic", "client_secret_post"]

    def get_client_id(self):
        return self.client_id

    def get_default_redirect_uri(self):
        return callback

    def get_allowed_scope(self, scope):
        return scope or ""

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri == callback

    def check_client_secret(self, client_secret):
        return client_secret == self.secret

    def check_endpoint_auth_method(self, method, endpoint):
        return method in self.methods

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type in ("authorization_code", "refresh_token", "client_credentials")


class KeyClient(Client):
    client_id, secret = "APP-key", None
    methods = [JWTBearerClientAssertion.CLIENT_AUTH_METHOD]


clients = {client.client_id: client for client in [Client(), KeyClient()]}
methods = [method for client in clients.values() for method in client.methods]


class Assertions(JWTBearerClientAssertion):
    def get_audiences(self):
        return [issuer]

    def validate_jti(self, claims, jti):
        is_new = jti not in used
        used.add(jti)
        return is_new

    def resolve_client_public_key(self, client):
        with open(keys, encoding="utf-8") as file:
            registered = json.load(file)
        pairs = [jwk.import_key(key["pem"], key["kty"], {"kid": key["kid"]}) for key in registered]
        return jwk.KeySet.import_key_set({"keys": [pair.as_dict(private=False) for pair in pairs]})


class Code(AuthorizationCodeMixin):
    def __init__(self, **fields):
        self.__dict__.update(fields)

    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope


class Token(TokenMixin):
    def __init__(self, token, user):
        self.token, self.user, self.family = token, user, None
        self.born, self.revoked, self.spent = time.time(), False, False

    def check_client(self, client):
        return True

    def get_scope(self):
        return self.token.get("scope", "")

    def get_expires_in(self):
        return self.token["expires_in"]

    def is_expired(self):
        return time.time() > self.born + self.token["expires_in"]

    def is_revoked(self):
        return self.revoked


class CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = methods

    def save_authorization_code(self, code, request):
        payload = request.payload
        codes[code] = Code(
            code=code, redirect_uri=payload.redirect_uri, scope=payload.scope, user=request.user,
            code_challenge=payload.data.get("code_challenge"),
            code_challenge_method=payload.data.get("code_challenge_method"),
        )

    def query_authorization_code(self, code, client):
        return codes.get(code)

    def delete_authorization_code(self, code):
        codes.pop(code.code, None)

    def authenticate_user(self, code):
        return code.user


class RefreshGrant(grants.RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = methods
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token):
        for token in tokens:
            if token.token.get("refresh_token") != refresh_token or token.revoked:
                continue
            if token.spent:
                logging.error("the whole family is revoked")
                for other in tokens:
                    other.revoked = True
                return None
            return token
        return None

    def authenticate_user(self, token):
        return token.user

    def revoke_old_credential(self, token):
        token.spent = True


class MachineGrant(grants.ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = methods


class Revocation(RevocationEndpoint):
    CLIENT_AUTH_METHODS = methods

    def query_token(self, token_string, token_type_hint):
        for token in tokens:
            if token_string in (token.token["access_token"], token.token.get("refresh_token")):
                return token
        return None

    def revoke_token(self, token, request):
        token.revoked = True


def save_token(token, request):
    tokens.append(Token(token, request.user))


app = Flask(__name__)
app.config.update(
    SECRET_KEY="for tests only",
    OAUTH2_REFRESH_TOKEN_GENERATOR=True,
    OAUTH2_TOKEN_EXPIRES_IN={
        "authorization_code": seconds, "refresh_token": seconds, "client_credentials": seconds,
    },
)
server = AuthorizationServer(app, query_client=clients.get, save_token=save_token)
server.register_client_auth_method(Assertions.CLIENT_AUTH_METHOD, Assertions())
server.register_grant(CodeGrant, [CodeChallenge(required=True)])
server.register_grant(RefreshGrant)
server.register_grant(MachineGrant)
server.register_endpoint(Revocation)


@app.get("/.well-known/oauth-authorization-server")
def metadata():
    return jsonify(
        issuer=issuer, authorization_endpoint=f"{issuer}/authorize", token_endpoint=f"{issuer}/token",
        revocation_endpoint=f"{issuer}/revoke",
        token_endpoint_auth_methods_supported=["client_secret_basic"] + (["private_key_jwt"] if keys else []),
        code_challenge_methods_supported=["S256"],
    )


@app.get("/authorize")
def authorize():
    grant = server.get_consent_grant(end_user="someone")
    return server.create_authorization_response(grant=grant, grant_user="someone")


@app.post("/token")
def token():
    logging.error("POST /token %s %s", request.content_type, request.form.get("grant_type"))
    return judged(server.create_token_response)


@app.post("/revoke")
def revoke():
    return judged(lambda: server.create_endpoint_response(Revocation.ENDPOINT_NAME))


def judged(judge):
    seen.append(dict(request.form, authorization=request.headers.get("authorization")))
    if failing:
        failing.pop()
        return jsonify(error="temporarily_unavailable"), 503
    answer = judge()
    if answer.status_code != 200:
        logging.error("refused: %s", answer.get_data(as_text=True))
    return answer


@app.post("/token/introspection")
def introspection():
    shown = request.form["token"]
    alive = [t for t in tokens if t.token["access_token"] == shown and not t.revoked and not t.is_expired()]
    return jsonify(active=bool(alive))


@app.get("/seen")
def requests_seen():
    return jsonify(seen)


@app.post("/fail")
def fail():
    failing.extend(range(int(request.args["times"])))
    return ""


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    http = make_server("127.0.0.1", port, app, threaded=True)
    issuer = f"http://127.0.0.1:{http.server_port}"
    print(f"ready {issuer}", flush=True)
    http.serve_forever()
