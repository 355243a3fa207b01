//! Making a recorded exchange fit to be kept, so that it can still be run again: what is masked in one of its messages is
//! masked in all of them, since plans carry values from one to the other.

use http::Method;
use std::collections::BTreeSet;
use switchback_engine::diff::Rules;
use switchback_engine::har::{Body, Exchange, Request, Response};
use switchback_engine::redact::{MASK, Redactor, Salt, is_telling_name};
use switchback_json::{Limits, Value};
use switchback_plan::router::{Found, Router};
use switchback_plan::{Pack, RouteId, SideId};

/// Shorter texts are masked where they stand, and not wherever they occur: they would occur by chance.
const CARRIED_CHARS_MIN: usize = 6;

/// What must not be kept, by the pack and by looks.
pub struct Redaction {
    names: [String; 2],
    rules: Rules,
    /// By served side.
    routers: [Router; 2],
    redactor: Redactor,
}

impl Redaction {
    /// By what the pack declares secret. `salt` is for what is shown of masked values: nothing, here.
    pub fn new(pack: &Pack, salt: Salt) -> Redaction {
        Redaction {
            names: pack.sides.each_ref().map(|side| side.name.clone()),
            rules: Rules::of(pack),
            routers: [0, 1].map(|side: usize| Router::new(&pack.directions[side])),
            redactor: Redactor::new(salt),
        }
    }

    /// The exchange without anything secret.
    pub fn redact(&self, exchange: &Exchange) -> Exchange {
        let credentials = credentials(&exchange.request);
        let redactor = self.redactor.knowing(credentials.iter().map(String::as_str));
        let route = self.route(exchange);
        let mut pass = Pass {
            rules: &self.rules,
            route,
            redactor: &redactor,
            masked: BTreeSet::new(),
            numbers: BTreeSet::new(),
        };
        let once = pass.exchange(exchange);
        if pass.masked.is_empty() {
            return once;
        }
        let known = credentials.iter().chain(&pass.masked).map(String::as_str);
        let redactor = self.redactor.knowing(known.collect::<Vec<_>>());
        Pass {
            rules: &self.rules,
            route,
            redactor: &redactor,
            masked: BTreeSet::new(),
            numbers: BTreeSet::new(),
        }
        .exchange(exchange)
    }

    fn route(&self, exchange: &Exchange) -> Option<(SideId, RouteId)> {
        let known = exchange.gateway.as_ref()?;
        let serves = self.names.iter().position(|name| *name == known.side)?;
        let method: Method = exchange.request.method.parse().ok()?;
        let path = known.target.split('?').next().unwrap_or_default();
        match self.routers[serves].find(&method, path) {
            Found::Route { route, .. } => Some((SideId(serves as u8), route)),
            _ => None,
        }
    }
}

/// The texts that the request is authorised with, with and without their scheme.
fn credentials(request: &Request) -> BTreeSet<String> {
    let telling = request.headers.iter().filter(|(name, _)| is_telling_name(name));
    telling
        .flat_map(|(_, value)| [value.as_str(), value.rsplit(' ').next().unwrap_or_default()])
        .filter(|text| text.chars().count() >= CARRIED_CHARS_MIN)
        .map(str::to_owned)
        .collect()
}

/// One way through an exchange.
struct Pass<'p> {
    rules: &'p Rules,
    route: Option<(SideId, RouteId)>,
    redactor: &'p Redactor,
    /// Texts that were masked whole.
    masked: BTreeSet<String>,
    /// Places of the client's answer whose numbers were masked.
    numbers: BTreeSet<String>,
}

impl Pass<'_> {
    fn exchange(&mut self, exchange: &Exchange) -> Exchange {
        let request = Request {
            method: exchange.request.method.clone(),
            url: self.url(&exchange.request.url),
            headers: self.headers(&exchange.request.headers),
            body: self.body(&exchange.request.body, None),
        };
        // What the pack declares, it declares of the answers that clients get.
        let is_clients = exchange.gateway.is_some();
        let response = exchange.response.as_ref().map(|response| Response {
            status: response.status,
            headers: self.headers(&response.headers),
            body: self.body(&response.body, is_clients.then_some(response.status)),
        });
        let gateway = exchange.gateway.as_ref().map(|known| switchback_engine::har::Gateway {
            target: self.redactor.target(&known.target),
            masked: std::mem::take(&mut self.numbers).into_iter().collect(),
            calls: known.calls.iter().map(|call| self.exchange(call)).collect(),
            ..known.clone()
        });
        Exchange { started: exchange.started.clone(), millis: exchange.millis, request, response, gateway }
    }

    fn url(&self, url: &str) -> String {
        let path = url.find("://").and_then(|at| Some(at + 3 + url[at + 3..].find('/')?)).unwrap_or(0);
        format!("{}{}", &url[..path], self.redactor.target(&url[path..]))
    }

    fn headers(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        headers.iter().map(|(name, value)| (name.clone(), self.redactor.header(name, value))).collect()
    }

    fn body(&mut self, body: &Body, status: Option<u16>) -> Body {
        let Body::Whole(bytes) = body else { return body.clone() };
        let Ok(value) = Value::parse(bytes, &Limits::DOCUMENT) else {
            return Body::Whole(self.redactor.text(&String::from_utf8_lossy(bytes)).into());
        };
        let declared = self.route.zip(status);
        let is_secret = |names: &[&str]| {
            declared.is_some_and(|((serves, route), status)| {
                self.rules.of_route(serves, route).is_secret(status, names)
            })
        };
        let redacted = self.redactor.value(&value, &is_secret);
        collect(&value, &redacted, &mut self.masked);
        if status.is_some() {
            numbers("$", &value, &redacted, &mut self.numbers);
        }
        Body::Whole(redacted.to_string().into())
    }
}

/// The texts of `before` that `after` has a mask for.
fn collect(before: &Value, after: &Value, masked: &mut BTreeSet<String>) {
    match (before, after) {
        (Value::String(before), Value::String(after)) if after.decode() == MASK => {
            let text = before.decode();
            if text != MASK && text.chars().count() >= CARRIED_CHARS_MIN {
                masked.insert(text.into_owned());
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            before.iter().zip(after.iter()).for_each(|(before, after)| collect(before, after, masked));
        }
        (Value::Object(before), Value::Object(after)) => {
            // Members keep their order, whatever becomes of their names.
            let pairs = before.iter().zip(after.iter());
            pairs.for_each(|((_, before), (_, after))| collect(before, after, masked));
        }
        _ => {}
    }
}

/// The places at which `after` has another number than `before`.
fn numbers(place: &str, before: &Value, after: &Value, masked: &mut BTreeSet<String>) {
    match (before, after) {
        (Value::Number(before), Value::Number(after)) if before != after => {
            masked.insert(place.to_owned());
        }
        (Value::Array(before), Value::Array(after)) => {
            let place = format!("{place}[*]");
            before
                .iter()
                .zip(after.iter())
                .for_each(|(before, after)| numbers(&place, before, after, masked));
        }
        (Value::Object(before), Value::Object(after)) => {
            for ((_, before), (name, after)) in before.iter().zip(after.iter()) {
                numbers(&format!("{place}.{}", name.decode()), before, after, masked);
            }
        }
        _ => {}
    }
}
