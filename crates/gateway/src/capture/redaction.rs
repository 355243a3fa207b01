//! Redacts a recorded exchange so that it can still be replayed. A secret in one of its messages is
//! masked in all of them, since plans copy values between messages.

use http::Method;
use std::collections::BTreeSet;
use std::sync::Arc;
use switchback_engine::har::{Body, Exchange, Gateway, Request, Response, Shadow};
use switchback_engine::redact::{Masked, Redactor, Salt, is_telling_name};
use switchback_json::{Limits, Value};
use switchback_plan::{Disclosed, Disclosures, OperationDisclosure, Pack, PerSide};

/// Minimum length, in characters, of a secret that is masked everywhere. Shorter texts are masked
/// only where they were found, since they also occur by chance.
const CARRIED_CHARS_MIN: usize = 6;

/// Redaction rules, from the pack and from patterns.
pub struct Redaction {
    /// By side: its name and its disclosure rules.
    sides: PerSide<(String, Arc<Disclosures>)>,
    redactor: Redactor,
}

impl Redaction {
    /// Creates the rules from a pack's contracts and declarations. `salt` keys the replacements of
    /// masked texts; use a new one for each capture.
    pub fn new(pack: &Pack, salt: Salt) -> Redaction {
        let side = |at: usize| (pack.sides[at].name.clone(), Arc::clone(&pack.disclosures[at]));
        Redaction { sides: [side(0), side(1)], redactor: Redactor::new(salt) }
    }

    /// Returns the exchange without secrets.
    pub fn redact(&self, exchange: &Exchange) -> Exchange {
        let mut known = credentials(&exchange.request);
        let mut secrets = BTreeSet::new();
        let once = self.pass(exchange, &known, &mut secrets);
        if secrets.is_subset(&known) {
            return once;
        }
        known.append(&mut secrets);
        self.pass(exchange, &known, &mut secrets)
    }

    /// Masks undisclosed values and the `known` texts, and adds the secret texts that it masks to
    /// `secrets`.
    fn pass(
        &self,
        exchange: &Exchange,
        known: &BTreeSet<String>,
        secrets: &mut BTreeSet<String>,
    ) -> Exchange {
        let redactor = self.redactor.knowing(known);
        let gateway = exchange.gateway.as_ref();
        let served = gateway.and_then(|known| self.sides.iter().position(|(name, _)| *name == known.side));
        let side = |at: Option<usize>| {
            let at = at.map(|at| &*self.sides[at].1);
            SideRedaction { redactor: &redactor, disclosures: at.unwrap_or(&NOTHING_KNOWN) }
        };
        let target = gateway.map(|known| known.target.as_str());
        let own = side(served).message(exchange, target, secrets);
        let Some(gateway) = gateway else { return own.exchange };
        let called = side(served.map(|served| 1 - served));
        let calls = gateway.calls.iter().map(|call| {
            let message = called.message(call, Some(&call.request.url), secrets);
            let mut exchange = message.exchange;
            exchange.request.url = message.target.unwrap_or_default();
            exchange.request.masked = message.masked_request;
            exchange
        });
        let calls = calls.collect();
        let shadow = gateway.shadow.clone().map(|shadow| match shadow {
            Shadow::Answered { answer, .. } => {
                let (request, response) = (exchange.request.clone(), Some(answer));
                let asked = Exchange { request, response, ..Exchange::default() };
                let message = side(served).message(&asked, target, secrets);
                let answer = message.exchange.response.unwrap_or_default();
                Shadow::Answered { answer, masked: message.masked_answer }
            }
            Shadow::Planned | Shadow::Dropped(_) => shadow,
        });
        let target = own.target.unwrap_or_default();
        let gateway = Gateway { target, masked: own.masked_answer, shadow, calls, ..gateway.clone() };
        Exchange { gateway: Some(gateway), ..own.exchange }
    }
}

/// The disclosure rules of a side that the pack does not contain.
static NOTHING_KNOWN: Disclosures = Disclosures { values: Vec::new(), operations: Vec::new() };

/// Returns the texts that authorize the request, with and without their scheme.
fn credentials(request: &Request) -> BTreeSet<String> {
    let telling = request.headers.iter().filter(|(name, _)| is_telling_name(name));
    telling
        .flat_map(|(_, value)| [value.as_str(), value.rsplit(' ').next().unwrap_or_default()])
        .filter(|text| text.chars().count() >= CARRIED_CHARS_MIN)
        .map(str::to_owned)
        .collect()
}

/// Disclosure rules for the messages of one side.
struct SideRedaction<'s> {
    redactor: &'s Redactor,
    disclosures: &'s Disclosures,
}

/// A redacted request with its response.
struct RedactedMessage {
    /// Without the gateway's own data.
    exchange: Exchange,
    target: Option<String>,
    masked_request: Vec<String>,
    masked_answer: Vec<String>,
}

impl SideRedaction<'_> {
    /// Redacts a request and its response. `target` is path and query below the side's base, if
    /// known.
    fn message(
        &self,
        exchange: &Exchange,
        target: Option<&str>,
        secrets: &mut BTreeSet<String>,
    ) -> RedactedMessage {
        let Exchange { request, response, .. } = exchange;
        let path = target.map(|target| target.split('?').next().unwrap_or_default());
        let operation = path.and_then(|path| self.disclosures.find(&request.method, path));
        let shown = target.map(|target| self.redactor.target(target, self.disclosures, operation));
        let (mut sent, mut answered) = (Masked::default(), Masked::default());
        let redacted = Request {
            method: method(&request.method),
            url: self.url(&request.url, target, shown.as_deref()),
            headers: self.headers(&request.headers, operation),
            body: self.body(
                &request.body,
                operation.map_or(Disclosed::BEYOND, |operation| self.disclosures.request(operation)),
                &mut sent,
            ),
            masked: Vec::new(),
        };
        let response = response.as_ref().map(|response| {
            let disclosed = operation
                .map_or(Disclosed::BEYOND, |operation| self.disclosures.answer(operation, response.status));
            Response {
                status: response.status,
                headers: self.headers(&response.headers, None),
                body: self.body(&response.body, disclosed, &mut answered),
            }
        });
        secrets.append(&mut sent.texts);
        secrets.append(&mut answered.texts);
        RedactedMessage {
            exchange: Exchange {
                started: exchange.started.clone(),
                millis: exchange.millis,
                request: redacted,
                response,
                gateway: None,
            },
            target: shown,
            masked_request: sent.places.into_iter().collect(),
            masked_answer: answered.places.into_iter().collect(),
        }
    }

    /// Redacts a URL. If it has `target` as its suffix, that is replaced by `shown`. The rest is
    /// the gateway's own address, except for user names that a client may have included.
    fn url(&self, url: &str, target: Option<&str>, shown: Option<&str>) -> String {
        if let Some((base, shown)) = target.and_then(|target| url.strip_suffix(target)).zip(shown) {
            return format!("{}{shown}", without_user(base));
        }
        let origin = url.find("://").map_or(0, |at| at + 3);
        let path = url[origin..].find('/').map_or(url.len(), |at| origin + at);
        let target = self.redactor.target(&url[path..], self.disclosures, None);
        format!("{}{target}", without_user(&url[..path]))
    }

    fn headers(
        &self,
        headers: &[(String, String)],
        operation: Option<&OperationDisclosure>,
    ) -> Vec<(String, String)> {
        let field = |(name, value): &(String, String)| {
            let lower = name.to_ascii_lowercase();
            let disclosed =
                operation.map_or(Disclosed::UNKNOWN, |operation| self.disclosures.header(operation, &lower));
            (name.clone(), self.redactor.header(name, value, disclosed))
        };
        headers.iter().map(field).collect()
    }

    fn body(&self, body: &Body, disclosed: Disclosed<'_>, masked: &mut Masked) -> Body {
        let Body::Whole(bytes) = body else { return body.clone() };
        match Value::parse(bytes, &Limits::DOCUMENT) {
            Ok(value) => Body::Whole(self.redactor.value(&value, disclosed, masked).to_string().into()),
            Err(_) => Body::Whole(self.redactor.unread(bytes).into()),
        }
    }
}

/// Masks custom methods, which may contain anything. Standard methods are unchanged.
fn method(method: &str) -> String {
    let is_plain = method.len() <= 16 && method.bytes().all(|byte| byte.is_ascii_uppercase());
    let known = is_plain && method.parse::<Method>().is_ok();
    if known { method.to_owned() } else { "OTHER".to_owned() }
}

fn without_user(base: &str) -> String {
    let origin = base.find("://").map_or(0, |at| at + 3);
    let end = base[origin..].find('/').map_or(base.len(), |at| origin + at);
    match base[origin..end].rfind('@') {
        Some(at) => format!("{}{}", &base[..origin], &base[origin + at + 1..]),
        None => base.to_owned(),
    }
}
