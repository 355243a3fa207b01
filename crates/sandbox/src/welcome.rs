//! The startup message of the service: addresses, credentials and commands to try.

use super::oauth::Credentials;
use std::net::SocketAddr;

/// Returns addresses, credentials, and curl commands that work as printed.
pub(super) fn welcome(address: SocketAddr, credentials: &Credentials) -> String {
    let Credentials { v2_token, client_id, client_secret, redirect_uri, access_token, refresh_token, .. } =
        credentials;
    let base = format!("http://{address}");
    format!(
        r#"The messaging service is a sandbox at {base}

  v3                    {base}/v3
  v2                    {base}/v2
  authorize page        {base}/oauth/authorize
  token endpoint        {base}/oauth/access_token
  control               {base}/_sandbox/

  v2 token              {v2_token}
  v3 access token       {access_token}
  OAuth client id       {client_id}
  OAuth client secret   {client_secret}
  OAuth refresh token   {refresh_token}
  OAuth redirect_uri    {redirect_uri}

Other roles: curl {base}/_sandbox/credentials

Try
  curl -H 'X-Authorization: Bearer {v2_token}' {base}/v2/chats/7
  curl -H 'Authorization: Bearer {access_token}' {base}/v3/chats/7/messages
  curl -H 'X-Authorization: Bearer {v2_token}' -H 'Content-Type: application/json' -d '{{"text": "Olá 👋"}}' {base}/v2/chats/7/messages
  curl -H 'Content-Type: application/json' -d '{{"grant_type": "refresh_token", "client_id": "{client_id}", "client_secret": "{client_secret}", "refresh_token": "{refresh_token}"}}' {base}/oauth/access_token
"#
    )
}
