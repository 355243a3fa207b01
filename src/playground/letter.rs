//! The migration notice for the owner of a client: each operation that the client still calls, with
//! its replacement as `curl` commands. Parameters and bodies are from the pack's examples; secrets
//! are shell variables.

use super::replies::{By, reply_of};
use super::tried::{DryRunPack, PlaygroundSession, TryError, text_of};
use crate::after_sunset::AfterSunset;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use switchback_compiler::contract::{OpKey, sample};
use switchback_engine::translate::example::same_target;
use switchback_engine::translate::{Call, Event, Next, Request, Run, negotiate};
use switchback_gateway::clock::rfc3339;
use switchback_gateway::outcome::Outcome;
use switchback_gateway::retire::{ClientSunset, UsageInfo};
use switchback_json::Limits;
use switchback_plan::router::Found;
use switchback_plan::{
    BasicPart, Carrier, ExampleEnd, Exchange, HostId, Raw, Route, RouteExample, RouteKind, Scheme, SideId,
    Wanted,
};

/// Input of a migration notice.
#[derive(Clone, Debug)]
pub struct Letter<'a> {
    pub client: &'a str,
    /// The calls that were counted.
    pub usage: &'a [UsageInfo],
    /// The losses of the client once the old service is gone.
    pub losses: &'a [AfterSunset],
    /// The ends of sides for this client: names of sides with times in RFC 3339.
    pub ends: Vec<(String, String)>,
}

/// Returns the ends of sides for a client: its own, else those that are announced to all.
pub(crate) fn ends_for(
    client: &str,
    announced: impl IntoIterator<Item = (String, String)>,
    sunsets: &[ClientSunset],
) -> Vec<(String, String)> {
    let own: Vec<&ClientSunset> = sunsets.iter().filter(|one| one.client == client).collect();
    // A client that is exempt from the end has an own entry without a time.
    let is_general = |side: &str| own.iter().all(|one| one.side != side);
    let announced = announced.into_iter().filter(|(side, _)| is_general(side));
    let own = own.iter().filter_map(|one| Some((one.side.clone(), rfc3339(one.at_ms?))));
    announced.chain(own).collect()
}

impl Letter<'_> {
    /// Renders the losses of an operation, for a client that is not changed until the end.
    fn losses_of(&self, side: &str, operation: &str) -> impl Iterator<Item = String> {
        let is_this = |row: &&AfterSunset| {
            row.client == self.client && row.side == side && row.operation == operation && !row.is_overflow
        };
        let loses = self.losses.iter().find(is_this).map_or(&[][..], |row| row.loses.as_slice());
        let head = format!("   If you do not change it, from the end of {side} on:\n");
        let head = (!loses.is_empty()).then_some(head);
        let end = (!loses.is_empty()).then(|| "\n".to_owned());
        head.into_iter().chain(loses.iter().map(|text| format!("   - {text}\n"))).chain(end)
    }
}

impl PlaygroundSession {
    /// Renders the notice. Empty if the client makes no relevant calls.
    pub async fn letter(&self, letter: Letter<'_>) -> Result<String, TryError> {
        let tried = self.compile_changes(BTreeMap::new()).await?;
        Ok(tried.letter(&letter))
    }
}

impl DryRunPack {
    fn letter(&self, letter: &Letter<'_>) -> String {
        let mut by_side: BTreeMap<&str, BTreeMap<&str, Called<'_>>> = BTreeMap::new();
        for one in letter.usage.iter().filter(|one| one.client == letter.client) {
            let called = by_side.entry(&one.side).or_default().entry(&one.operation).or_default();
            called.calls += one.calls;
            called.last = called.last.max(&one.last);
            called.is_forwarded |= one.outcome == Outcome::Forwarded.as_str();
        }
        let mut text = String::new();
        for (side, operations) in by_side {
            let Some(serves) = SideId::BOTH.into_iter().find(|at| self.pack.sides[*at].name == side) else {
                continue;
            };
            let other = &self.pack.sides[serves.other()].name;
            let ends = letter.ends.iter().find(|(of, _)| of == side);
            let ends = ends.map(|(_, at)| format!(" It ends for you on {at}.")).unwrap_or_default();
            let _ = writeln!(
                text,
                "Your integration \"{}\" still calls {side} of our API.{ends}\nBelow is every call that was counted, with what to call in {other} instead. Tokens are yours to put in.\n",
                letter.client
            );
            for (operation, called) in operations {
                let (calls, last) = (called.calls, called.last);
                let _ = writeln!(text, "== {operation}\n   {calls} calls, the last on {last}\n");
                letter.losses_of(side, operation).for_each(|line| text.push_str(&line));
                self.operation(serves, operation, called.is_forwarded, &mut text);
            }
        }
        text
    }

    fn operation(&self, serves: SideId, operation: &str, is_forwarded: bool, text: &mut String) {
        let (side, other) = (&self.pack.sides[serves].name, &self.pack.sides[serves.other()].name);
        let routes = &self.pack.directions[serves].routes;
        let Some(route) = routes.iter().find(|route| *route.operation.key == *operation) else {
            let line = match is_forwarded {
                true => format!(
                    "The contract of {side} has no such call. The service of {side} answers it itself; {other} has nothing for it that is known."
                ),
                false => "No contract has this call, and it is not answered.".to_owned(),
            };
            let _ = writeln!(text, "   {line}\n");
            return;
        };
        let made = self.made_example(serves, route);
        let example = self.best_example(serves, operation).or(made.as_ref());
        if let RouteKind::Refuse(refusal) = &route.kind {
            let reason = self.pack.reason_text(refusal.reason).unwrap_or_default();
            let _ = writeln!(text, "   {other} has nothing for it. {reason}\n");
            return;
        }
        let Some(example) = example else {
            let _ = writeln!(text, "   (its form is not known)\n");
            return;
        };
        let _ = writeln!(text, "   {side}, today:\n");
        let body = example.body.as_ref().map(text_of);
        let address = format!("${}_URL{}", variable(side), example.target);
        let _ =
            writeln!(text, "{}", curl(&example.method, &address, &self.credential(serves), body.as_deref()));
        let LetterCalls { shown: calls, further, end } = self.calls(example);
        let _ = writeln!(text, "   {other}, instead:\n");
        for call in &calls {
            let body = call.body.as_deref().map(|body| String::from_utf8_lossy(body).into_owned());
            let base = self.base(serves.other(), call.host);
            let address = format!("{}{}", base.trim_end_matches('/'), call.target);
            let credential = self.credential(serves.other());
            let _ = writeln!(text, "{}", curl(&call.method, &address, &credential, body.as_deref()));
        }
        for line in further_line(&further).into_iter().chain(ends(other, &calls, &further, &end, route)) {
            let _ = writeln!(text, "   {line}\n");
        }
    }

    /// Returns the most instructive example of an operation: a successful one with settings that
    /// match the operator's.
    fn best_example(&self, serves: SideId, operation: &str) -> Option<&RouteExample> {
        let of_operation =
            self.examples.iter().filter(|one| one.serves == serves && self.operation_of(one) == operation);
        of_operation.min_by_key(|one| {
            let status = match &one.exchange.end {
                ExampleEnd::Answer { status, .. } => *status,
                ExampleEnd::Refused(_) => 999,
            };
            // Prefer the example with the most calls, so that the owner sees all of them.
            let calls = one.exchange.calls.len();
            // Settings that differ from the operator's select another route, so the replies would
            // not match.
            let others = one.config.iter().filter(|(name, value)| !self.is_set(name, value)).count();
            let as_set = std::cmp::Reverse(one.config.len() - others);
            (!(200..300).contains(&status), others, as_set, one.archived.len(), std::cmp::Reverse(calls))
        })
    }

    /// Returns whether a setting has this value here.
    fn is_set(&self, name: &str, value: &Raw) -> bool {
        let at = self.pack.settings.iter().position(|setting| setting.name == name);
        let at = at.and_then(|at| u16::try_from(at).ok());
        at.and_then(|at| self.settings.get(at)).is_some_and(|given| given == value)
    }

    /// Generates a request from the contract, for an operation without examples.
    fn made_example(&self, serves: SideId, route: &Route) -> Option<RouteExample> {
        let contract = &self.contracts[usize::from(serves.0)];
        let operation = contract.find(&OpKey::parse(&route.operation.key).ok()?)?;
        let mut target = route.operation.template.to_string();
        for parameter in &operation.path_params {
            let value = match sample(&contract.types, &parameter.ty) {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            };
            target = target.replace(&format!("{{{}}}", parameter.name), &value);
        }
        let body = operation.body.as_ref().map(|body| sample(&contract.types, &body.ty).to_string());
        Some(RouteExample {
            serves,
            method: route.operation.method.clone(),
            target,
            headers: Vec::new(),
            body: body.map(|body| body.into_bytes().into()),
            config: Vec::new(),
            archived: Vec::new(),
            exchange: Exchange {
                calls: Vec::new(),
                keeps: Vec::new(),
                end: ExampleEnd::Answer { status: 200, headers: Vec::new(), body: Wanted::None },
            },
            again: None,
        })
    }

    /// Executes an example. Replies are the example's own, else those of other examples or of the
    /// contract. Returns the calls and the end.
    fn calls(&self, example: &RouteExample) -> LetterCalls {
        let (path, query) = example
            .target
            .split_once('?')
            .map_or((&*example.target, None), |(path, query)| (path, Some(query)));
        let router = &self.routers[example.serves];
        let Found::Route { route, values } = router.find(&example.method, path) else {
            return LetterCalls { shown: Vec::new(), further: BTreeMap::new(), end: CallsEnd::Open };
        };
        let request = Request {
            path: values.into_iter().map(std::borrow::Cow::into_owned).collect(),
            query: query.map(str::to_owned),
            body: example.body.as_ref().map(|body| Bytes::from(text_of(body))).unwrap_or_default(),
            language: negotiate("", &self.pack.languages),
            ..Request::default()
        };
        let operation = self.operation_of(example);
        let (pack, settings) = (Arc::clone(&self.pack), Arc::clone(&self.settings));
        let mut run = Run::new(pack, example.serves, route, request, settings, Limits::DOCUMENT);
        let (mut calls, mut event, mut now) = (Vec::new(), Event::Start, Duration::ZERO);
        let mut further = BTreeMap::new();
        let end = loop {
            event = match run.next(event) {
                Ok(Next::Call(call)) => {
                    let known = reply_of_example(example, &call).or_else(|| {
                        let known = self.reply(example.serves, &operation, &example.target, &call);
                        known
                            // The notice is sent to another company, so it must not contain recorded data.
                            .filter(|(_, by)| matches!(by, By::Example | By::Contract))
                            .map(|(known, _)| known)
                    });
                    match calls.len() < CALLS_MAX {
                        true => calls.push(call),
                        false => *further.entry(call.operation.to_string()).or_default() += 1,
                    }
                    match known {
                        Some(known) => known,
                        None => break CallsEnd::Open,
                    }
                }
                Ok(Next::Recall(lookup)) => lookup.nothing(),
                Ok(Next::Keep(_)) => Event::Kept,
                Ok(Next::Wait(wait)) => wait.simulate(&mut now),
                Ok(Next::Answer(answer)) => break CallsEnd::Answered(answer.status),
                Ok(Next::Refuse(refused)) => break CallsEnd::Refused(refused.text),
                Err(_) => break CallsEnd::Open,
            };
        };
        LetterCalls { shown: calls, further, end }
    }

    /// Returns the URL of a host, or a shell variable for it.
    fn base(&self, side: SideId, host: HostId) -> String {
        let side = &self.pack.sides[side];
        let host = host.place().and_then(|place| side.hosts.get(place));
        let name = host.map_or_else(|| side.name.clone(), |host| format!("{}/{host}", side.name));
        // Use only public URLs: the gateway's upstream URL may be internal.
        let known = self.served.public_urls.iter().find(|(known, _)| *known == name);
        known.map_or_else(|| format!("${}_URL", variable(&name)), |(_, url)| url.clone())
    }

    /// Returns the `curl` options that send the side's credential, with a shell variable for it.
    fn credential(&self, side: SideId) -> String {
        let side = &self.pack.sides[side];
        let token = format!("${}_TOKEN", variable(&side.name));
        match side.credential.send.first() {
            Some(Carrier::Header { name, scheme }) => match scheme {
                Scheme::Bare => format!("-H \"{name}: {token}\""),
                Scheme::Word(word) => format!("-H \"{name}: {word} {token}\""),
                Scheme::Basic(BasicPart::User) => format!("-u \"{token}:\""),
                Scheme::Basic(BasicPart::Password) => format!("-u \":{token}\""),
                Scheme::Basic(BasicPart::Both) => format!("-u \"{token}\""),
            },
            Some(Carrier::Query(name)) => format!("--url-query \"{name}={token}\""),
            Some(Carrier::FormField(name)) => format!("--data-urlencode \"{name}={token}\""),
            None => String::new(),
        }
    }
}

/// The calls of a client to one operation.
#[derive(Default)]
struct Called<'u> {
    calls: i64,
    last: &'u str,
    /// Whether the side's own service has answered such a call.
    is_forwarded: bool,
}

/// The calls that replace an operation.
struct LetterCalls {
    shown: Vec<Call>,
    /// The number of calls beyond `shown`, by operation.
    further: BTreeMap<String, usize>,
    end: CallsEnd,
}

/// How the calls of an operation end.
enum CallsEnd {
    /// With an answer of this status.
    Answered(u16),
    /// The remainder is refused with this text.
    Refused(String),
    /// Further calls depend on replies that no example has.
    Open,
}

/// Summarizes the calls that are not listed.
fn further_line(further: &BTreeMap<String, usize>) -> Option<String> {
    let count: usize = further.values().sum();
    let by_operation: Vec<String> =
        further.iter().map(|(operation, calls)| format!("{calls} of {operation}")).collect();
    let calls = if count == 1 { "call" } else { "calls" };
    (count > 0).then(|| format!("And {count} more {calls}: {}.", by_operation.join(", ")))
}

/// Describes the end of the calls, or why there is no call, in sentences.
fn ends(
    other: &str,
    calls: &[Call],
    further: &BTreeMap<String, usize>,
    end: &CallsEnd,
    route: &Route,
) -> Vec<String> {
    let mut lines = Vec::new();
    match end {
        CallsEnd::Refused(text) if calls.is_empty() => lines.push(format!("{other} has nothing for it. {text}")),
        CallsEnd::Refused(text) => lines.push(format!("{other} has nothing for the rest of it. {text}")),
        CallsEnd::Answered(status) if calls.is_empty() => lines.push(format!(
            "No call: the gateway answers this request by itself, with the status {status}, because the answer needs nothing of {other}."
        )),
        CallsEnd::Open if calls.is_empty() => {
            lines.push("The calls depend on the request; no example of the pack shows them.".to_owned());
        }
        CallsEnd::Answered(_) | CallsEnd::Open => {}
    }
    let mut more: Vec<&str> = Vec::new();
    for operation in route.call_heads().map(|head| &*head.operation) {
        let is_listed = calls.iter().any(|call| *call.operation == *operation);
        if !is_listed && !further.contains_key(operation) && !more.contains(&operation) {
            more.push(operation);
        }
    }
    if !more.is_empty() {
        lines.push(format!("Depending on the replies, also: {}.", more.join(", ")));
    }
    lines
}

/// Returns the example's own reply to a call.
fn reply_of_example(example: &RouteExample, call: &Call) -> Option<Event> {
    let mut own = example.exchange.calls.iter();
    let found = own.find(|one| one.method == call.method && same_target(&one.target, &call.target))?;
    Some(reply_of(found))
}

/// Most calls that a notice lists per operation.
const CALLS_MAX: usize = 12;

/// Converts a side's name into the prefix of a shell variable.
fn variable(side: &str) -> String {
    side.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// Renders a call as a shell command. Double-quoted parts contain only generated variables, never
/// text of an example, which the shell could expand.
fn curl(method: &http::Method, address: &str, credential: &str, body: Option<&str>) -> String {
    let (base, rest) = match address.starts_with('$') {
        true => address.split_at(address.find('/').unwrap_or(address.len())),
        false => ("", address),
    };
    let base = if base.is_empty() { String::new() } else { format!("\"{base}\"") };
    let mut line = format!("curl -X {method} {base}{} \\\n  {credential}", shell_quote(rest));
    if let Some(body) = body {
        let _ = write!(line, " \\\n  -H 'content-type: application/json' \\\n  -d {}", shell_quote(body));
    }
    line.push('\n');
    line
}

/// Quotes a word for the shell.
fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_beyond_those_that_are_listed_are_counted() {
        let further = |calls: &[(&str, usize)]| {
            further_line(&calls.iter().map(|(operation, calls)| ((*operation).to_owned(), *calls)).collect())
        };
        assert_eq!(further(&[]), None);
        assert_eq!(further(&[("GET /a", 1)]).as_deref(), Some("And 1 more call: 1 of GET /a."));
        let several = further(&[("GET /a", 7), ("PUT /b", 1)]);
        assert_eq!(several.as_deref(), Some("And 8 more calls: 7 of GET /a, 1 of PUT /b."));
    }
}
