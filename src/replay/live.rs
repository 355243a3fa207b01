//! Replays exchanges against a live service: makes the plan's calls sequentially, in the order of
//! the archive.

use super::outcome::{ReplayOutcome, UnknownReason};
use super::running::{ReplayRun, ReplayStep, Replayer};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use reqwest::{Client, Url};
use std::str::FromStr;
use std::time::{Duration, Instant};
use switchback_engine::har::Exchange;
use switchback_engine::translate::{Call, Event, FailKind, Reply, Wait};
use switchback_gateway::http_client::{HttpClient, HttpClientError, ServiceAddress};
use switchback_gateway::secret::Secret;
use switchback_gateway::token::carried::{self, TokenPlace};
use switchback_plan::{BodyFormat, Credential, Effect};

/// Time limit per call.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Largest accepted response body.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// A live service.
pub struct Live {
    main: LiveHost,
    /// The other hosts of the side, indexed by [`HostId`](switchback_plan::HostId).
    hosts: Vec<Option<LiveHost>>,
    /// Header fields of every call, including the credential.
    headers: HeaderMap,
    /// The token of every call, if its place is not a header field.
    token: Option<(TokenPlace, Secret<String>)>,
    allows_effects: bool,
}

/// A host of the service. Called like by the gateway: without a proxy, with the TLS settings of its
/// upstream.
struct LiveHost {
    client: HttpClient,
    /// Without a trailing `/`.
    base: String,
}

impl LiveHost {
    fn new(address: &ServiceAddress) -> Result<LiveHost, LiveError> {
        let url = Url::parse(&address.url).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| LiveError::Address(address.url.clone()))?;
        let client = HttpClient::new(Client::builder().timeout(TIMEOUT), &url, &address.tls)?;
        Ok(LiveHost { client, base: address.url.trim_end_matches('/').to_owned() })
    }
}

/// Why a service cannot be called.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error("`{0}` is no address: it begins with http:// or https:// and names a host")]
    Address(String),
    /// Does not quote the text: it may contain a credential.
    #[error("a header is written as 'Name: value'")]
    Header,
    #[error("HTTP cannot be set up: {0}")]
    Client(#[from] HttpClientError),
}

/// Why a call was impossible, which gives no information about the service.
#[derive(Debug, thiserror::Error)]
pub enum LiveCallError {
    #[error("`{0}` is answered by another host, whose address is not known here")]
    UnknownHost(String),
    #[error(transparent)]
    Url(<Url as FromStr>::Err),
    /// Without the URL, which may contain a token.
    #[error(transparent)]
    Connect(reqwest::Error),
}

/// Omits the header fields: they contain the credential.
impl std::fmt::Debug for Live {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Live").field("allows_effects", &self.allows_effects).finish_non_exhaustive()
    }
}

impl Live {
    /// Builds a service at a base URL. `headers` have the form `Name: value`. Without
    /// `allows_effects`, only operations without effects are sent.
    pub fn new(
        address: &ServiceAddress,
        headers: &[String],
        allows_effects: bool,
    ) -> Result<Live, LiveError> {
        let main = LiveHost::new(address)?;
        let mut map = HeaderMap::new();
        for text in headers {
            let (name, value) = text.split_once(':').ok_or(LiveError::Header)?;
            let name = HeaderName::try_from(name.trim()).map_err(|_| LiveError::Header)?;
            let mut value = HeaderValue::try_from(value.trim()).map_err(|_| LiveError::Header)?;
            // Hides the credential in debug output, and keeps it out of HPACK's tables.
            value.set_sensitive(true);
            map.append(name, value);
        }
        Ok(Live { main, hosts: Vec::new(), headers: map, token: None, allows_effects })
    }

    /// Adds the addresses of the side's other hosts, where known. Calls to a host without an
    /// address fail; they are never sent to another host.
    pub fn with_hosts(
        mut self,
        hosts: impl IntoIterator<Item = Option<ServiceAddress>>,
    ) -> Result<Live, LiveError> {
        let host = |address: Option<ServiceAddress>| address.as_ref().map(LiveHost::new).transpose();
        self.hosts = hosts.into_iter().map(host).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// Adds a token, at the place that `credential` defines, and the header fields of the side's
    /// calls.
    pub fn with_credential(
        mut self,
        credential: &Credential,
        token: &Secret<String>,
    ) -> Result<Live, LiveError> {
        let place = TokenPlace::from_credential(credential).ok_or(LiveError::Header)?;
        if let TokenPlace::Headers { names, scheme } = &place {
            let value = carried::value(token.expose(), scheme).ok_or(LiveError::Header)?;
            self.headers.extend(names.iter().map(|name| (name.clone(), value.clone())));
        }
        for (name, value) in &credential.headers {
            let name = HeaderName::try_from(name).map_err(|_| LiveError::Header)?;
            self.headers.append(name, HeaderValue::try_from(value).map_err(|_| LiveError::Header)?);
        }
        self.token = Some((place, token.clone()));
        Ok(self)
    }

    /// Replays an exchange against the service.
    pub async fn run(&self, replayer: &Replayer, exchange: &Exchange) -> ReplayOutcome {
        let mut running = match replayer.begin(exchange) {
            Ok(running) => running,
            Err(outcome) => return outcome,
        };
        // The recorded calls answer for the service of that time. Live, only the client's answer is
        // compared.
        running.ignore_recorded_calls();
        if let Some(why) = running.unknown() {
            return running.given_up(why);
        }
        if running.effect() == Effect::Write && !self.allows_effects {
            return running.given_up(UnknownReason::Effects);
        }
        self.drive(running, exchange).await
    }

    async fn drive(&self, mut running: ReplayRun<'_>, exchange: &Exchange) -> ReplayOutcome {
        let language =
            exchange.request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("accept-language"));
        let language = language.and_then(|(_, value)| HeaderValue::from_str(value).ok());
        let (mut event, clock) = (Event::Start, Instant::now());
        loop {
            match running.next(event) {
                ReplayStep::Over(outcome) => return outcome,
                ReplayStep::Wait(wait) => event = wait_for(&wait, clock).await,
                ReplayStep::Call(call) => match self.call(call, language.clone()).await {
                    Ok(known) => event = known,
                    Err(why) => return running.given_up(UnknownReason::Unreachable(why.to_string())),
                },
            }
        }
    }

    /// Makes a call. Returns the reply or the failure as an event.
    pub async fn call(&self, call: Call, language: Option<HeaderValue>) -> Result<Event, LiveCallError> {
        let mut headers = call.headers;
        if let Some(language) = language {
            headers.entry(header::ACCEPT_LANGUAGE).or_insert(language);
        }
        if call.body.is_some() {
            let json = HeaderValue::from_static(BodyFormat::JSON);
            headers.entry(header::CONTENT_TYPE).or_insert(json);
        }
        headers.extend(self.headers.clone());
        let (mut target, mut body) = (call.target, call.body);
        match &self.token {
            Some((TokenPlace::Query(name), token)) => {
                target = carried::target_with(&target, name, token.expose());
            }
            Some((TokenPlace::FormField(name), token)) => {
                let form = carried::form_with(body.as_deref().unwrap_or_default(), name, token.expose());
                body = Some(form.into());
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(BodyFormat::FORM));
            }
            Some((TokenPlace::Headers { .. }, _)) | None => {}
        }
        let LiveHost { client, base } = match call.host.place() {
            None => &self.main,
            Some(place) => {
                let host = self.hosts.get(place).and_then(Option::as_ref);
                host.ok_or_else(|| LiveCallError::UnknownHost(call.operation.to_string()))?
            }
        };
        let url = Url::parse(&format!("{base}{target}")).map_err(LiveCallError::Url)?;
        let request = client.request(call.method, &url).headers(headers);
        let request = match body {
            Some(body) => request.body(body),
            None => request,
        };
        match request.send().await {
            Ok(response) => {
                let (status, headers) = (response.status().as_u16(), response.headers().clone());
                Ok(match whole(response).await {
                    Some(body) => Event::Reply(Reply { status, headers, body }),
                    None => FailKind::Broken.into(),
                })
            }
            Err(error) if error.is_connect() => Err(LiveCallError::Connect(error.without_url())),
            Err(error) if error.is_timeout() => Ok(FailKind::Timeout.into()),
            Err(_) => Ok(FailKind::Broken.into()),
        }
    }
}

/// Sleeps for a pause of a plan, which is measured from `start`.
pub(crate) async fn wait_for(wait: &Wait, start: Instant) -> Event {
    let now = start.elapsed();
    let Some(end) = wait.ends(now) else { return Event::Late };
    tokio::time::sleep_until((start + end).into()).await;
    wait.finish_at(now)
}

/// Reads a body. Returns `None` if it is truncated or too large.
async fn whole(mut response: reqwest::Response) -> Option<Bytes> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if body.len() + chunk.len() > REPLY_BYTES_MAX {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    Some(body.freeze())
}
