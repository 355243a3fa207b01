//! A receiver of notices: its settings, and one request to it.

use super::body::{NoticeForm, body};
use super::notice::{Notice, NoticeKind};
use crate::http_client::{HttpClient, HttpClientError, describe, read_limited, retry_after};
use crate::secret::Secret;
use crate::signature::Signature;
use crate::tls::ServiceTls;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use reqwest::Url;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};

/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 4096;

/// The settings of a receiver.
#[derive(Clone, Debug)]
pub struct NoticeReceiver {
    /// Unique name, for the history and metrics.
    pub name: String,
    /// Its address: `https`, or `http` on this machine. Addresses of Slack and Teams are secrets.
    pub url: Secret<String>,
    /// The form of the body.
    pub form: NoticeForm,
    /// Signs notices in the form `json`.
    pub sign: Option<Signature>,
    /// The kinds that it receives.
    pub kinds: Vec<NoticeKind>,
}

/// Limits of the queue and of deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoticeSettings {
    /// Maximum number of undelivered notices of one receiver; further ones are dropped.
    pub queue: usize,
    /// Number of attempts for one notice.
    pub attempts: u32,
    /// Pause after the first failed attempt; it doubles with each further one.
    pub retry_first: Duration,
    /// Longest pause between two attempts, unless the receiver requests a longer one.
    pub retry_max: Duration,
    /// Time limit for an answer.
    pub timeout: Duration,
}

/// A receiver with its HTTP client.
#[derive(Debug)]
pub struct NoticeEndpoint {
    /// Its settings.
    pub receiver: NoticeReceiver,
    http: HttpClient,
    /// Whether it has answered 410 Gone.
    pub(super) is_gone: AtomicBool,
    /// Locked during an attempt, so that a receiver gets one notice at a time.
    pub(super) turn: Mutex<()>,
    /// Room for undelivered notices.
    pub(super) queue: Arc<Semaphore>,
}

/// The answer of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeAnswer {
    /// The status.
    pub status: StatusCode,
    /// The beginning of the body.
    pub text: String,
    /// The requested pause before another attempt, at most an hour.
    pub retry_after: Option<Duration>,
}

impl NoticeEndpoint {
    /// Prepares requests to a receiver.
    ///
    /// # Errors
    ///
    /// The certificate authorities of the system cannot be read.
    pub fn new(
        receiver: NoticeReceiver,
        settings: NoticeSettings,
    ) -> Result<NoticeEndpoint, HttpClientError> {
        let url = address(&receiver);
        // The whole timeout for connecting, too: it bounds the attempt.
        let builder = reqwest::Client::builder().connect_timeout(settings.timeout).timeout(settings.timeout);
        let http = HttpClient::new(builder, &url, &ServiceTls::default())?;
        let (is_gone, turn) = (AtomicBool::new(false), Mutex::new(()));
        let queue = Arc::new(Semaphore::new(settings.queue));
        Ok(NoticeEndpoint { receiver, http, is_gone, turn, queue })
    }

    /// Sends a notice once. `now_ms` is the time in the signature.
    ///
    /// # Errors
    ///
    /// There was no answer; describes why, without the address.
    pub async fn send(&self, notice: &Notice, now_ms: i64) -> Result<NoticeAnswer, &'static str> {
        let body = body(notice, self.receiver.form);
        let sign = self.receiver.sign.as_ref();
        let mut headers = sign.map_or_else(HeaderMap::new, |sign| sign.sign(&notice.id, &body, now_ms));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let request = self.http.request(Method::POST, &address(&self.receiver)).headers(headers).body(body);
        let mut response = request.send().await.map_err(|error| describe(&error))?;
        let retry_after = response.headers().get(header::RETRY_AFTER).and_then(retry_after);
        // The status decides; a body that is long or breaks off changes nothing.
        let text = read_limited(&mut response, ANSWER_BYTES_MAX).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(NoticeAnswer { status: response.status(), text, retry_after })
    }
}

fn address(receiver: &NoticeReceiver) -> Url {
    Url::parse(receiver.url.expose()).expect("the configuration has checked the URL")
}
