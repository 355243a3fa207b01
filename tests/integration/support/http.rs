//! The client of another make that tests ask with.

use reqwest::Client;
use reqwest::redirect::Policy;

/// A client that follows no redirection and knows no proxy. It needs no other test to have run
/// before it: reqwest's TLS has no provider until one is installed for the process.
pub fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().redirect(Policy::none()).no_proxy().build().expect("a client")
}
