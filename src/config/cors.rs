//! The section `cors` of a front.

use super::read::{FromYaml, Placed, ReadContext, describe_schema, section};
use super::scalars::Period;
use http::{HeaderName, Method};
use serde_json::{Value, json};
use std::time::Duration;
use switchback_compiler::diagnostic::{Code, Finding, Findings, Span};
use switchback_compiler::yaml::Node;
use switchback_gateway::proxy::cors::{AllowedOrigin, CorsSettings};

section! {
    /// Cross-origin access of pages to a front (CORS). The gateway answers preflights itself, and sets
    /// these fields in all responses of the front in place of those of a service, errors included.
    RawCors is "`cors`",
    required {
        /// Origins of the pages: `https://app.example.com`, `https://*.example.com` for all
        /// subdomains, or `*` alone for every page, which excludes `credentials`.
        origins: Vec<Placed<AllowedOrigin>>,
    }
    optional {
        /// Methods that preflights permit.
        methods: Vec<Placed<String>> = default_methods(),
        /// Request header fields that preflights permit. The default is those that the preflight
        /// names.
        headers: Vec<Placed<String>>,
        /// Response header fields that scripts may read, besides those that they always may.
        expose: Vec<Placed<String>> = Vec::new(),
        /// Whether requests may carry cookies and other credentials of the browser. Tokens that a
        /// script sets in a header field do not count.
        credentials: bool = false,
        /// Time for which browsers may cache the answer to a preflight, at most `1d`. The default is
        /// that of the browser, usually five seconds.
        max_age: Period,
    }
}

fn default_methods() -> Vec<Placed<String>> {
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
    methods.map(|name| Placed { value: name.to_owned(), span: Span::default() }).to_vec()
}

/// Most browsers cap the time at this or less.
const MAX_AGE_MAX: Duration = Duration::from_secs(86_400);

/// Converts the section.
pub(super) fn cors(raw: RawCors, findings: &mut Findings) -> Option<CorsSettings> {
    let credentials = raw.credentials.value;
    let origins = raw.origins?;
    if origins.is_empty() && !findings.any_within(origins.span) {
        let what = "without an origin no page has access";
        let finding = Finding::error(Code::Conflict, origins.span, what);
        findings.push(finding.help("name an origin, or leave `cors` out"));
    }
    if let Some(any) = origins.iter().find(|origin| origin.value == AllowedOrigin::Any) {
        if origins.len() > 1 {
            let what = "`*` permits every origin, so the other ones have no effect";
            findings.push(Finding::error(Code::Conflict, any.span, what).help("leave `*` or the others out"));
        }
        if credentials {
            let what = "browsers reject `*` for requests with credentials";
            let finding = Finding::error(Code::Conflict, any.span, what).help("name the origins");
            findings.push(finding.with_related(raw.credentials.span, "credentials are permitted here"));
        }
    }
    let methods = raw.methods.value.iter().filter_map(|name| method(name, findings)).collect();
    let mut fields = |names: Vec<Placed<String>>| -> Vec<HeaderName> {
        names.iter().filter_map(|name| field(name, credentials, findings)).collect()
    };
    let headers = raw.headers.map(|headers| fields(headers.value));
    let exposed = fields(raw.expose.value);
    if let Some(age) = raw.max_age.as_ref().filter(|age| age.0 > MAX_AGE_MAX) {
        findings.push(Finding::error(Code::OutOfRange, age.span, "`max_age` is at most 1d"));
    }
    Some(CorsSettings {
        origins: origins.value.into_iter().map(|origin| origin.value).collect(),
        methods,
        headers,
        exposed,
        credentials,
        max_age: raw.max_age.map(|age| age.value.0),
    })
}

fn method(name: &Placed<String>, findings: &mut Findings) -> Option<Method> {
    let upper = name.to_ascii_uppercase();
    match name.parse() {
        Ok(method) if **name == upper => return Some(method),
        // `patch` is another method than `PATCH` (RFC 9110, section 9.1), which browsers send.
        Ok(_) => {
            let finding = Finding::error(Code::ValueForm, name.span, "methods are written in upper case");
            findings.push(finding.help(format!("write `{upper}`")));
        }
        Err(_) => findings.push(Finding::error(Code::ValueForm, name.span, "this is no method")),
    }
    None
}

fn field(name: &Placed<String>, credentials: bool, findings: &mut Findings) -> Option<HeaderName> {
    if name.value == "*" && credentials {
        let what = "`*` permits no header field while `credentials` is true";
        findings.push(Finding::error(Code::Conflict, name.span, what).help("name the fields"));
        return None;
    }
    let parsed = name.parse::<HeaderName>();
    if parsed.is_err() {
        findings.push(Finding::error(Code::ValueForm, name.span, "this is no name of a header field"));
    }
    parsed.ok()
}
