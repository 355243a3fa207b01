# An authorization server that nobody here wrote, in another language: Authlib's, with its own judgement of forms, of HTTP Basic,
# of the proof of a code (RFC 7636) and of spent refresh tokens. What is here is what Authlib leaves to the application: a table of
# clients, codes and tokens in memory, a person who always agrees, metadata (RFC 8414) and introspection (RFC 7662).
#
# usage: python authlib_server.py PORT CALLBACK [ACCESS_TOKEN_SECONDS]
import logging
import sys
import time

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, TokenMixin, grants
from authlib.oauth2.rfc7636 import CodeChallenge
from flask import Flask, jsonify, request

port, callback = int(sys.argv[1]), sys.argv[2]
seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
issuer = f"http://127.0.0.1:{port}"
codes, tokens = {}, []


class Client(ClientMixin):
    client_id, secret = "APP-peer", "peer-secret"

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
        return method == "client_secret_basic"

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type in ("authorization_code", "refresh_token", "client_credentials")


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
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic"]

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
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic"]
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
server = AuthorizationServer(
    app, query_client=lambda id: Client() if id == Client.client_id else None, save_token=save_token
)
server.register_grant(CodeGrant, [CodeChallenge(required=True)])
server.register_grant(RefreshGrant)
server.register_grant(grants.ClientCredentialsGrant)


@app.get("/.well-known/oauth-authorization-server")
def metadata():
    return jsonify(
        issuer=issuer, authorization_endpoint=f"{issuer}/authorize", token_endpoint=f"{issuer}/token",
        token_endpoint_auth_methods_supported=["client_secret_basic"],
        code_challenge_methods_supported=["S256"],
    )


@app.get("/authorize")
def authorize():
    grant = server.get_consent_grant(end_user="someone")
    return server.create_authorization_response(grant=grant, grant_user="someone")


@app.post("/token")
def token():
    logging.error("POST /token %s %s", request.content_type, request.form.get("grant_type"))
    answer = server.create_token_response()
    if answer.status_code != 200:
        logging.error("refused: %s", answer.get_data(as_text=True))
    return answer


@app.post("/token/introspection")
def introspection():
    shown = request.form["token"]
    alive = [t for t in tokens if t.token["access_token"] == shown and not t.revoked and not t.is_expired()]
    return jsonify(active=bool(alive))


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    print(f"ready {issuer}", flush=True)
    app.run("127.0.0.1", port)
