//! Converts the typed sections into [`Config`] and checks the rules between keys. Rules that need
//! the pack are in `against_pack`.

use super::checked::{
    AdminConfig, BrownoutConfig, ClientConfig, Config, FrontConfig, GrantConfig, HostConfig, LimitsConfig,
    OAuthConfig, Reload, Sunset, SunsetConfig, TlsFilesConfig, UpstreamConfig, ValueSpans,
};
use super::cors;
use super::dual;
use super::events::signature;
use super::front_limits::check_own_limits;
use super::ranges::{HELD_BYTES_MIN, WAIT_MAX, check_floor, check_wait};
use super::read::{FromYaml, NamedMap, OneOrMore, Placed};
use super::rollout;
use super::scalars::{ByteSize, DateOrTime, PathPrefix, Period, WebUrl};
use super::sections::{
    RawAdmin, RawBrownout, RawClient, RawClientSunset, RawConfig, RawFront, RawGrant, RawLimits, RawOAuth,
    RawOtlp, RawServiceTls, RawSunset, RawTls, RawUpstream, StateRule,
};
use http::{HeaderName, HeaderValue};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;
use switchback_compiler::diagnostic::{Code, Finding, Findings, Span};
use switchback_gateway::secret::Secret;
use switchback_gateway::store::GrantFlow;
use switchback_gateway::telemetry::log::LogSettings;
use switchback_gateway::telemetry::otlp::OtlpSettings;
use switchback_gateway::tls::{self, ServiceTls};
use switchback_gateway::token::{AUTHORIZE_FIELDS, AppCredential, AppKey, AppKeyError, TOKEN_FIELDS};
use switchback_plan::{ClientAuth, TokenRequests};

/// Converts and checks a configuration. Returns `None` if a required part is missing, which has
/// been reported. A `Some` is valid only if `findings` has no errors.
pub(super) fn check(raw: RawConfig, findings: &mut Findings) -> Option<Config> {
    // Before the sections are consumed: the dump has their keys, with the defaults filled in.
    let masked = raw.to_value();
    check_limits(&raw.limits.value, findings);
    dual::check_shadow(&raw.shadow.value, findings);
    let settings = raw.settings;
    if !settings.value.value.is_object() {
        findings.push(Finding::error(
            Code::WrongKind,
            settings.span,
            "`settings` is a map from names to values",
        ));
    }
    let mapping = raw.mapping.as_ref().and_then(|mapping| mapping.value.folder.as_ref());
    let places = ValueSpans {
        listen: raw.listen.span,
        store: raw.store.span,
        mapping: mapping.map(|folder| folder.span).unwrap_or_default(),
        keys: raw.key.iter().flat_map(|keys| &keys.value.0).map(|key| key.span).collect(),
        tls: raw.tls.as_ref().map(|tls| tls.span).unwrap_or_default(),
    };
    let admin = admin(&raw.admin.value, findings);
    let health = raw.health.and_then(|health| health.value.listen);
    let callback = raw.oauth.as_ref().and_then(|oauth| oauth.value.listen.clone());
    check_addresses(
        &[
            ("listen", Some(&raw.listen)),
            ("admin.listen", Some(&raw.admin.value.listen)),
            ("health.listen", health.as_ref()),
            ("oauth.listen", callback.as_ref()),
        ],
        findings,
    );
    let has_oauth = raw.oauth.is_some();
    let oauth = raw.oauth.and_then(|oauth| self::oauth(oauth, findings));
    let clients = clients(raw.clients.value, has_oauth, oauth.as_ref(), findings);
    let upstreams = upstreams(raw.upstreams, findings);
    let fronts = fronts(raw.fronts, raw.limits.value.total_timeout.0, findings);
    let events = super::events::events(raw.events.value, findings);
    let notices = super::notices::notices(raw.notices.value, findings);
    let phases = rollout::phases(&raw.phases.value, &raw.rollout.value, findings);
    let (gate, gate_keys) = dual::gate(&raw.gate.value, findings);
    dual::check_timed(&raw.gate.value, &raw.shadow.value, findings);
    let sunsets = sunsets(raw.sunset.value, findings);
    let brownouts = brownouts(raw.brownouts.value, findings);
    Some(Config {
        listen: raw.listen.value,
        tls: raw.tls.and_then(|tls| tls_files(tls.value)),
        trusted_proxies: raw.trusted_proxies.value,
        proxy_protocol: raw.proxy_protocol.value,
        forwarded: raw.forwarded.value,
        admin,
        health: health.map(|listen| listen.value),
        mapping: mapping.map(|folder| folder.value.clone()),
        is_mapping_writable: raw.mapping.as_ref().is_some_and(|mapping| mapping.value.is_writable),
        store: raw.store.value,
        places,
        keys: keys(raw.key, findings)?,
        fronts,
        upstreams,
        oauth,
        clients,
        settings: Placed { value: settings.value.value, span: settings.span },
        setting_places: settings.value.places,
        phases,
        shadow: dual::shadow(&raw.shadow.value),
        gate,
        gate_keys,
        events,
        notices,
        sunsets,
        brownouts,
        limits: limits(&raw.limits.value),
        total_timeout_place: Some(raw.limits.value.total_timeout.span)
            .filter(|span| *span != Span::default()),
        log: LogSettings { format: raw.log.value.format.value, filter: raw.log.value.level.value.0 },
        logs_address: raw.log.value.client_address.value,
        otlp: raw.telemetry.value.otlp.and_then(|otlp| self::otlp(otlp.value, findings)),
        reload: Reload { watch: raw.reload.watch.value, settle: raw.reload.settle.0 },
        masked,
        files: Vec::new(),
    })
}

/// Converts the trace settings. Checks the header fields here, where their places are known.
fn otlp(raw: RawOtlp, findings: &mut Findings) -> Option<OtlpSettings> {
    let mut headers = Vec::new();
    for (name, value) in raw.headers.value.0 {
        if name.value.parse::<HeaderName>().is_err() {
            let what = format!("`{}` is no name of a header field", name.value);
            findings.push(Finding::error(Code::ValueForm, name.span, what));
        }
        if HeaderValue::from_str(value.expose()).is_err() {
            let what = format!("the value of `{}` cannot stand in a header field", name.value);
            findings.push(Finding::error(Code::ValueForm, value.span, what));
        }
        headers.push((name.value, value.value));
    }
    let endpoint = raw.endpoint?;
    if endpoint.has_query() {
        let what = "the address of a collector has no query";
        findings.push(Finding::error(Code::ValueForm, endpoint.span, what));
    }
    // Exporters append this path (OpenTelemetry, OTLP/HTTP request), so that with it every export would
    // end in 404.
    if endpoint.base_path().ends_with("/v1/traces") {
        let what = "`/v1/traces` is added to the address of the collector, and stands there already";
        findings.push(
            Finding::error(Code::ValueForm, endpoint.span, what).help("leave `/v1/traces` out of `endpoint`"),
        );
    }
    // These fields usually contain an API key.
    if !headers.is_empty() && is_in_the_clear(&endpoint) {
        let what = "the fields of `headers` would travel unencrypted to another machine";
        findings.push(Finding::warning(Code::Conflict, endpoint.span, what).help("use an `https` URL"));
    }
    Some(OtlpSettings {
        endpoint: endpoint.to_string(),
        headers,
        ratio: raw.ratio.part(),
        timeout: raw.timeout.0,
        queue: raw.queue.0 as usize,
    })
}

/// Checks that no two ports share an address.
fn check_addresses(addresses: &[(&str, Option<&Placed<SocketAddr>>)], findings: &mut Findings) {
    let given: Vec<_> = addresses.iter().filter_map(|(key, address)| Some((*key, (*address)?))).collect();
    for (at, (key, address)) in given.iter().enumerate() {
        // Port 0 selects another free port each time.
        let same = given[..at].iter().find(|(_, other)| other.value == address.value && address.port() != 0);
        if let Some((other_key, other)) = same {
            // The defaults differ, so the file sets at least one of the two.
            let span = if address.span == Span::default() { other.span } else { address.span };
            let what = format!("`{other_key}` and `{key}` cannot share the address {}", address.value);
            findings
                .push(Finding::error(Code::Conflict, span, what).help(format!("give `{key}` another port")));
        }
    }
}

fn keys(
    raw: Option<Placed<OneOrMore<Placed<Secret<String>>>>>,
    findings: &mut Findings,
) -> Option<Vec<Secret<String>>> {
    let raw = raw?;
    if raw.value.0.is_empty() {
        findings.push(Finding::error(Code::Conflict, raw.span, "at least one key is needed to seal grants"));
    }
    Some(raw.value.0.into_iter().map(|key| key.value).collect())
}

fn tls_files(raw: RawTls) -> Option<TlsFilesConfig> {
    Some(TlsFilesConfig { certificate: raw.certificate?.value, private_key: raw.private_key?.value })
}

fn admin(raw: &RawAdmin, findings: &mut Findings) -> AdminConfig {
    // On loopback, only users of the machine reach the port, and it is read-only for them.
    if raw.token.is_none() && !raw.listen.ip().is_loopback() {
        let what =
            format!("others can reach the admin port on {}, and `admin.token` is not set", raw.listen.value);
        let help = "set `admin.token`, for example to `${SWITCHBACK_ADMIN_TOKEN}`, or listen on 127.0.0.1";
        findings.push(Finding::error(Code::AdminExposed, raw.listen.span, what).help(help));
    }
    for (name, token) in [("admin token", &raw.token), ("read token", &raw.read_token)] {
        if let Some(token) = token.as_ref().filter(|token| token.expose().len() < ADMIN_TOKEN_CHARS_MIN) {
            let what = format!("the {name} is shorter than {ADMIN_TOKEN_CHARS_MIN} characters");
            findings.push(
                Finding::error(Code::ValueForm, token.span, what)
                    .help("make one with `openssl rand -hex 32`"),
            );
        }
    }
    if let Some(read) = &raw.read_token {
        let trouble = match &raw.token {
            None => Some("`admin.read_token` is set, and `admin.token` is not: nobody could change anything"),
            Some(token) if token.expose() == read.expose() => {
                Some("`admin.read_token` is the same as `admin.token`: it would open changes too")
            }
            Some(_) => None,
        };
        findings.extend(trouble.map(|what| {
            Finding::error(Code::ValueForm, read.span, what)
                .help("set both, each to a value of its own: `openssl rand -hex 32`")
        }));
    }
    AdminConfig {
        listen: raw.listen.value,
        token: raw.token.as_ref().map(|token| token.value.clone()),
        read_token: raw.read_token.as_ref().map(|token| token.value.clone()),
        session: raw.session.0,
        session_max: raw.session_max.0,
        hosts: raw.hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
        recent_requests_bytes: raw.recent_requests.0,
    }
}

/// Fewest characters of an admin token, against guessing.
const ADMIN_TOKEN_CHARS_MIN: usize = 16;

fn oauth(raw: Placed<RawOAuth>, findings: &mut Findings) -> Option<OAuthConfig> {
    let (raw, span) = (raw.value, raw.span);
    let issuer = raw.issuer.as_ref().and_then(|issuer| match issuer.parse::<WebUrl>() {
        Ok(url) if !url.has_query() && !issuer.contains('#') => {
            Some(Placed { value: url, span: issuer.span })
        }
        _ => {
            let what = "an issuer is a URL without query and fragment (RFC 8414, section 2)";
            findings.push(Finding::error(Code::ValueForm, issuer.span, what));
            None
        }
    });
    let urls = [&issuer, &raw.authorize_url, &raw.token_url, &raw.revocation_url];
    for url in urls.into_iter().flatten().filter(|url| is_in_the_clear(url)) {
        // An error, unlike for upstreams: RFC 6749 requires TLS (sections 3.1 and 3.2), and a stolen
        // client secret or refresh token gives lasting access.
        let what = "secrets would travel unencrypted to another machine";
        findings.push(Finding::error(Code::Conflict, url.span, what).help("use an `https` URL"));
    }
    // An invalid URL was reported and dropped.
    if raw.issuer.is_none() && !findings.any_within(span) {
        for (name, url) in [("authorize_url", &raw.authorize_url), ("token_url", &raw.token_url)] {
            if url.is_none() {
                let what = format!("`oauth` needs the key `{name}`, or an `issuer` to ask for it");
                findings.push(Finding::error(Code::MissingKey, span, what));
            }
        }
    }
    let parameters = parameters(raw.parameters, TOKEN_FIELDS, findings);
    let authorize_parameters = self::parameters(raw.authorize_parameters, AUTHORIZE_FIELDS, findings);
    let asked = raw.token_url.as_ref().or(issuer.as_ref());
    let tls = asked.map(|asked| service_tls(raw.tls, asked, findings));
    let tls = tls.unwrap_or(Placed { value: ServiceTls::default(), span: Span::default() });
    Some(OAuthConfig {
        issuer: raw.issuer.map(|issuer| issuer.value),
        authorize_url: raw.authorize_url.map(|url| url.value),
        token_url: raw.token_url.map(|url| url.value),
        revocation_url: raw.revocation_url.map(|url| url.value),
        redirect_url: raw.redirect_url?.value,
        listen: raw.listen.map(|listen| listen.value),
        scopes: raw.scopes.value,
        parameters,
        authorize_parameters,
        timeout: raw.timeout.0,
        requests: TokenRequests {
            body: raw.body.map(|body| body.value),
            client_auth: raw.client_auth.map(|auth| auth.value),
            refresh_sends: raw.refresh_sends.map(|sends| sends.value),
        },
        assertion_audience: raw.assertion_audience.map(|audience| audience.value),
        is_state_optional: raw.state.value == StateRule::Optional,
        tls,
    })
}

/// Converts additional request fields. Rejects those that the gateway sends itself (`own`): servers
/// reject duplicate fields or choose either.
fn parameters(
    raw: Placed<NamedMap<String, Placed<String>>>,
    own: &[&str],
    findings: &mut Findings,
) -> Vec<(String, String)> {
    let mut parameters = Vec::new();
    for (name, value) in raw.value.0 {
        if own.contains(&name.as_str()) {
            let what = format!("`{}` is a field that the gateway sends itself", *name);
            let help = match name.as_str() {
                "scope" => "set `oauth.scopes`",
                "redirect_uri" => "set `oauth.redirect_url`",
                "client_id" | "client_secret" => "set it in the `grant` of each client",
                "client_assertion" | "client_assertion_type" => {
                    "set `client_key` in the `grant` of each client"
                }
                "access_token" => "set `oauth.refresh_sends`",
                _ => "leave it out",
            };
            findings.push(Finding::error(Code::Conflict, name.span, what).help(help));
        } else if name.is_empty() {
            findings.push(Finding::error(Code::ValueForm, name.span, "a field needs a name"));
        } else {
            parameters.push((name.value, value.value));
        }
    }
    parameters
}

/// Converts the TLS settings of the service at `url`.
fn service_tls(
    raw: Option<Placed<RawServiceTls>>,
    url: &Placed<WebUrl>,
    findings: &mut Findings,
) -> Placed<ServiceTls> {
    let Some(Placed { value: raw, span }) = raw else {
        return Placed { value: ServiceTls::default(), span: Span::default() };
    };
    if !url.is_https() {
        let what = "`tls` says how `https` is spoken, and this URL is `http`";
        findings.push(Finding::error(Code::Conflict, span, what).with_related(url.span, "the URL"));
    }
    let own = match (raw.certificate, raw.private_key) {
        (Some(certificates), Some(key)) => {
            Some(tls::TlsFiles { certificates: certificates.value, key: key.value })
        }
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => {
            let what = "`certificate` and `private_key` belong together";
            findings.push(Finding::error(Code::MissingKey, one.span, what).help("give both, or neither"));
            None
        }
    };
    let (authorities, server_name) =
        (raw.ca_file.map(|file| file.value), raw.server_name.map(|name| name.value));
    Placed { value: ServiceTls { authorities, own, server_name }, span }
}

fn is_in_the_clear(url: &WebUrl) -> bool {
    !url.is_https() && !url.is_loopback()
}

fn clients(
    raw: Vec<RawClient>,
    has_oauth: bool,
    oauth: Option<&OAuthConfig>,
    findings: &mut Findings,
) -> Vec<ClientConfig> {
    let mut refresh_tokens: HashMap<String, Span> = HashMap::new();
    let mut names = DuplicateNames::new("client");
    let mut clients = Vec::new();
    for client in raw {
        if !client.has_token {
            let what = "a client needs the token by which it is known";
            let help = "add `<side>_token`, for example `v2_token: ${ACME_TOKEN}`";
            findings.push(Finding::error(Code::MissingKey, client.span, what).help(help));
        }
        if let Some(grant) = client.base.grant.as_ref().filter(|_| !has_oauth) {
            let what = "a grant cannot be refreshed without the authorization server";
            findings.push(Finding::error(Code::Conflict, grant.span, what).help("add the section `oauth`"));
        }
        let credential = client.base.grant.as_ref().map(|grant| {
            let credential = credential(grant, oauth, findings);
            check_refresh_token(grant, &mut refresh_tokens, findings);
            credential
        });
        let credentials = client.base.credentials.value.0;
        for (_, token) in client.tokens.iter().chain(&credentials) {
            check_token(token, findings);
        }
        // The missing name was reported.
        let Some(name) = client.base.name else { continue };
        check_name(&name, findings);
        names.see(&name.value, name.span, findings);
        clients.push(ClientConfig {
            name,
            company: client.base.company,
            tokens: client.tokens.into_iter().map(|(side, token)| (side, token.value)).collect(),
            credentials: credentials.into_iter().map(|(side, token)| (side, token.value)).collect(),
            grant: client
                .base
                .grant
                .zip(credential)
                .and_then(|(raw, credential)| grant(raw.value, credential)),
            sunset: client.base.sunset.and_then(|sunset| client_sunset(sunset, findings)),
        });
    }
    same_tokens(&clients, findings);
    clients
}

/// Checks a client's name, which is a label in logs and metrics.
fn check_name(name: &Placed<String>, findings: &mut Findings) {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if name.len() > CLIENT_NAME_CHARS_MAX || !name.bytes().all(is_plain) {
        let what =
            format!("a client's name is 1 to {CLIENT_NAME_CHARS_MAX} letters, digits, `.`, `_` and `-`");
        findings.push(Finding::error(Code::ValueForm, name.span, what));
    }
}

/// Checks that a token fits into a header field and is long enough not to be guessed.
fn check_token(token: &Placed<Secret<String>>, findings: &mut Findings) {
    let text = token.expose();
    if !(CLIENT_TOKEN_CHARS.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())) {
        let (least, most) = CLIENT_TOKEN_CHARS.into_inner();
        let what = format!("a client's token is {least} to {most} visible ASCII characters");
        findings.push(Finding::error(Code::ValueForm, token.span, what));
    }
}

const CLIENT_NAME_CHARS_MAX: usize = 64;
const CLIENT_TOKEN_CHARS: std::ops::RangeInclusive<usize> = 8..=4096;

/// Reports tokens that two clients share: they would select neither.
fn same_tokens(clients: &[ClientConfig], findings: &mut Findings) {
    let mut owners: HashMap<&str, &ClientConfig> = HashMap::new();
    for client in clients {
        for (side, token) in &client.tokens {
            let first = owners.insert(token.expose(), client);
            // One client may use the same token for both sides.
            if let Some(first) = first.filter(|first| !std::ptr::eq(*first, client)) {
                let what = format!(
                    "the clients `{}` and `{}` have the same token",
                    first.name.value, client.name.value
                );
                findings.push(
                    Finding::error(Code::Conflict, side.span, what)
                        .with_related(first.name.span, "the other one"),
                );
            }
        }
    }
}

/// Converts the secret or the key of an application. Checks that it fits `oauth.client_auth`.
fn credential(
    grant: &Placed<RawGrant>,
    oauth: Option<&OAuthConfig>,
    findings: &mut Findings,
) -> AppCredential {
    let client_auth = oauth.and_then(|oauth| oauth.requests.client_auth);
    let RawGrant { client_secret, client_key, client_key_id, .. } = &grant.value;
    if let Some(pem) = client_key {
        return client_key_of(pem, client_secret.as_ref(), client_key_id.as_ref(), client_auth, findings);
    }
    if let Some(id) = client_key_id {
        let what = "`client_key_id` is the id of a `client_key`, and there is none";
        findings.push(Finding::error(Code::Conflict, id.span, what).help("add `client_key`"));
    }
    let needed = match (client_secret, client_auth) {
        // A public client has no secret (RFC 6749, section 2.1).
        (_, Some(ClientAuth::None)) => None,
        (_, Some(ClientAuth::PrivateKeyJwt)) => Some((
            "`grant` needs the key `client_key`",
            "the method of `oauth.client_auth` signs with it, for example `client_key: file:/run/secrets/app.pem`",
        )),
        (Some(_), _) => None,
        (None, _) => Some((
            "`grant` needs the key `client_secret` or `client_key`",
            "an app without a secret needs `oauth.client_auth: none`",
        )),
    };
    // A misspelt key was reported.
    if let Some((what, help)) = needed.filter(|_| oauth.is_some() && !findings.any_within(grant.span)) {
        findings.push(Finding::error(Code::MissingKey, grant.span, what).help(help));
    }
    let secret = client_secret.as_ref().map(|secret| secret.value.clone());
    AppCredential::Secret(secret.unwrap_or_else(|| "".into()))
}

fn client_key_of(
    pem: &Placed<Secret<String>>,
    secret: Option<&Placed<Secret<String>>>,
    id: Option<&Placed<String>>,
    client_auth: Option<ClientAuth>,
    findings: &mut Findings,
) -> AppCredential {
    if let Some(secret) = secret {
        let what = "an app has a `client_secret` or a `client_key`, not both";
        let finding = Finding::error(Code::Conflict, secret.span, what).help("leave one of them out");
        findings.push(finding.with_related(pem.span, "the key"));
    }
    if let Some(other) = client_auth.filter(|auth| *auth != ClientAuth::PrivateKeyJwt) {
        let what = format!("`oauth.client_auth: {}` does not use a `client_key`", other.word());
        let help = "set `oauth.client_auth: private_key_jwt`; without `client_auth`, the key decides";
        findings.push(Finding::error(Code::Conflict, pem.span, what).help(help));
    }
    match AppKey::new(pem.value.clone(), id.map(|id| id.value.clone())) {
        Ok(key) => AppCredential::Key(key),
        Err(error) => {
            let span = match (error, id) {
                (AppKeyError::Id, Some(id)) => id.span,
                _ => pem.span,
            };
            let finding = Finding::error(Code::ValueForm, span, error.to_string());
            findings.push(match error {
                AppKeyError::Kind => finding.help(NEW_KEY),
                _ => finding,
            });
            AppCredential::Secret("".into())
        }
    }
}

/// The command for a key that every authorization server with `private_key_jwt` should accept.
const NEW_KEY: &str = "`openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out NEW` makes a key, and \
     `openssl pkey -in NEW -pubout` prints its public part for the authorization server";

/// Checks the initial refresh token.
fn check_refresh_token(
    grant: &Placed<RawGrant>,
    refresh_tokens: &mut HashMap<String, Span>,
    findings: &mut Findings,
) {
    let Some(token) = &grant.refresh_token else { return };
    if grant.flow.value == GrantFlow::ClientCredentials {
        let what = "an app that asks for itself has no refresh token";
        findings.push(Finding::error(Code::Conflict, token.span, what));
    }
    if let Some(first) = refresh_tokens.insert(token.expose().clone(), token.span) {
        let what =
            "two clients have the same refresh token: the first to be refreshed ends the other's grant";
        let help = "each needs an authorization of its own; several tokens of one client are a list under its `…_token`";
        findings.push(
            Finding::error(Code::Conflict, token.span, what).with_related(first, "the other one").help(help),
        );
    }
}

fn grant(raw: RawGrant, credential: AppCredential) -> Option<GrantConfig> {
    Some(GrantConfig {
        flow: raw.flow.value,
        client_id: raw.client_id?.value,
        credential,
        refresh_token: raw.refresh_token.map(|token| token.value),
    })
}

fn upstreams(
    raw: Option<Placed<NamedMap<String, RawUpstream>>>,
    findings: &mut Findings,
) -> Vec<UpstreamConfig> {
    let Some(raw) = raw else { return Vec::new() };
    if raw.value.0.is_empty() {
        findings.push(Finding::error(Code::Conflict, raw.span, "at least one upstream is needed"));
    }
    let convert = |(side, upstream): (Placed<String>, RawUpstream)| {
        let url = service_url(upstream.url, findings);
        let tls = url.as_ref().map(|url| service_tls(upstream.tls, url, findings));
        let mut hosts = Vec::new();
        for (name, host) in upstream.hosts.map(|hosts| hosts.value.0).unwrap_or_default() {
            let Some(url) = service_url(host.url, findings) else { continue };
            let tls = match (host.tls, &tls) {
                // A host without settings uses those of its side, except the server name, which belongs to
                // one address.
                (None, Some(tls)) if url.is_https() => {
                    let value = ServiceTls { server_name: None, ..tls.value.clone() };
                    Placed { value, span: tls.span }
                }
                (given, _) => service_tls(given, &url, findings),
            };
            let public_url = host.public_url.map(|url| url.value);
            hosts.push(HostConfig { name, url: url.value, tls, public_url });
        }
        let public_url = upstream.public_url.map(|url| url.value);
        let sign = upstream.sign.map(|raw| signature(raw, false, findings));
        Some(UpstreamConfig { side, url: url?.value, tls: tls?, public_url, sign: sign.flatten(), hosts })
    };
    raw.value.0.into_iter().filter_map(convert).collect()
}

fn service_url(url: Option<Placed<WebUrl>>, findings: &mut Findings) -> Option<Placed<WebUrl>> {
    let url = url?;
    if is_in_the_clear(&url) {
        let what = "tokens travel unencrypted to another machine";
        findings.push(Finding::warning(Code::Conflict, url.span, what).help("use an `https` URL"));
    }
    if url.has_query() {
        let what = "the URL of an upstream has no query: paths are appended to it";
        findings.push(Finding::error(Code::ValueForm, url.span, what));
    }
    Some(url)
}

fn fronts(
    raw: Option<Placed<NamedMap<PathPrefix, RawFront>>>,
    total: Duration,
    findings: &mut Findings,
) -> Vec<FrontConfig> {
    let Some(raw) = raw else { return Vec::new() };
    // An invalid front was reported and dropped.
    if raw.value.0.is_empty() && !findings.any_within(raw.span) {
        let what = "without a front no client can speak";
        findings.push(
            Finding::error(Code::Conflict, raw.span, what).help("leave `fronts` out for the pack's default"),
        );
    }
    let convert = |(prefix, front): (Placed<PathPrefix>, RawFront)| {
        let cors = front.cors.and_then(|raw| cors::cors(raw.value, findings));
        let limits = check_own_limits(&front.limits.value, total, findings);
        let total = limits.limits.total_timeout.unwrap_or(total);
        let operations = front.operation_limits.value.0.into_iter();
        let operation_limits =
            operations.map(|(key, raw)| (key, check_own_limits(&raw, total, findings))).collect();
        Some(FrontConfig {
            prefix,
            speaks: front.speaks?,
            backend: front.backend,
            unknown: front.unknown.value,
            cors,
            limits,
            operation_limits,
        })
    };
    let mut fronts: Vec<FrontConfig> = raw.value.0.into_iter().filter_map(convert).collect();
    // The first matching prefix wins, so the longest must be first.
    fronts.sort_by_key(|front| std::cmp::Reverse(front.prefix.as_str().len()));
    fronts
}

/// Checks that a deprecation does not follow the end.
fn check_order(
    deprecated: Option<&Placed<DateOrTime>>,
    end: Option<&Placed<DateOrTime>>,
    findings: &mut Findings,
) {
    if let (Some(deprecated), Some(end)) = (deprecated, end)
        && end.value < deprecated.value
    {
        let what = "the end comes before the deprecation (RFC 9745, section 4)";
        let finding = Finding::error(Code::Conflict, end.span, what);
        findings.push(finding.with_related(deprecated.span, "deprecated only here"));
    }
}

fn client_sunset(raw: Placed<RawClientSunset>, findings: &mut Findings) -> Option<SunsetConfig> {
    let (raw, span) = (raw.value, raw.span);
    check_order(raw.deprecated.as_ref(), raw.at.as_ref(), findings);
    Some(SunsetConfig {
        side: raw.side.map(|side| side.value),
        at: raw.at?.value,
        deprecated: raw.deprecated.map(|moment| moment.value),
        announce: raw.announce.value,
        span,
    })
}

fn brownouts(raw: Vec<Placed<RawBrownout>>, findings: &mut Findings) -> Vec<BrownoutConfig> {
    let convert = |Placed { value: raw, span }: Placed<RawBrownout>| {
        let (from, until) = (raw.from?, raw.until?);
        if until.value <= from.value {
            let what = "a brownout ends after it begins";
            findings.push(
                Finding::error(Code::Conflict, until.span, what).with_related(from.span, "begins here"),
            );
        }
        Some(BrownoutConfig {
            side: raw.side.map(|side| side.value),
            operations: raw.operations.value,
            clients: raw.clients.value,
            from: from.value,
            until: until.value,
            reason: raw.reason.value,
            span,
        })
    };
    raw.into_iter().filter_map(convert).collect()
}

fn sunsets(raw: NamedMap<String, RawSunset>, findings: &mut Findings) -> Vec<Sunset> {
    let convert = |(side, raw): (Placed<String>, RawSunset)| {
        check_order(raw.deprecated.as_ref(), raw.sunset.as_ref(), findings);
        if raw.deprecated.is_none() && raw.sunset.is_none() {
            let what = "a sunset needs at least one date";
            findings
                .push(Finding::error(Code::MissingKey, side.span, what).help("add `deprecated` or `sunset`"));
        }
        Sunset {
            side,
            deprecated: raw.deprecated.map(|moment| moment.value),
            sunset: raw.sunset.map(|moment| moment.value),
            policy: raw.policy.map(|url| url.value),
            successor: raw.successor.map(|url| url.value),
        }
    };
    raw.0.into_iter().map(convert).collect()
}

pub(super) fn limits(raw: &RawLimits) -> LimitsConfig {
    LimitsConfig {
        memory: raw.memory.as_ref().map(|memory| memory.0),
        connections: raw.connections.0,
        connections_per_address: raw.connections_per_address.as_ref().map(|connections| connections.0),
        requests: raw.requests.0,
        requests_per_client: raw.requests_per_client.0,
        http2_streams: raw.http2_streams.0,
        target_bytes: raw.target_bytes.0,
        headers: raw.headers.0,
        header_bytes: raw.header_bytes.0,
        body_bytes: raw.body_bytes.0,
        forwarded_bytes: raw.forwarded_bytes.0,
        object_members: raw.object_members.0,
        body_values: raw.body_values.0,
        body_depth: raw.body_depth.0,
        scalar_bytes: raw.scalar_bytes.0,
        held_bytes: raw.held_bytes.0,
        held_bytes_all: raw.held_bytes_all.0,
        whole_bytes: raw.whole_bytes.0,
        answer_bytes: raw.answer_bytes.0,
        decode_ratio: raw.decode_ratio.0,
        buffer_bytes: raw.buffer_bytes.0,
        header_timeout: raw.header_timeout.0,
        body_timeout: raw.body_timeout.0,
        body_bytes_per_second: raw.body_bytes_per_second.0,
        write_timeout: raw.write_timeout.0,
        answer_bytes_per_second: raw.answer_bytes_per_second.0,
        idle_timeout: raw.idle_timeout.0,
        tunnel_idle_timeout: raw.tunnel_idle_timeout.0,
        tunnel_lifetime: raw.tunnel_lifetime.0,
        lingering_timeout: raw.lingering_timeout.0,
        lingering_bytes: raw.lingering_bytes.0,
        connect_timeout: connect_timeout(raw).0,
        upstream_timeout: raw.upstream_timeout.0,
        total_timeout: raw.total_timeout.0,
        forwarded_idle_timeout: raw.forwarded_idle_timeout.0,
        upstream_gone_after: raw.upstream_gone_after.0,
        drain_delay: raw.drain_delay.0,
        store_wait: raw.store_wait.0,
        drain_timeout: raw.drain_timeout.0,
        upstream_calls: raw.upstream_calls.0,
        upstream_calls_per_client: raw.upstream_calls_per_client.0,
        upstream_idle: raw.upstream_idle.0,
        upstream_idle_timeout: raw.upstream_idle_timeout.0,
        upstream_headers: raw.upstream_headers.0,
        upstream_header_bytes: raw.upstream_header_bytes.0,
    }
}

/// Returns the connect timeout. The default is lowered to `upstream_timeout`, which includes it.
fn connect_timeout(raw: &RawLimits) -> &Placed<Period> {
    let is_given = raw.connect_timeout.span != Span::default();
    let is_longer = raw.connect_timeout.0 > raw.upstream_timeout.0;
    if is_longer && !is_given { &raw.upstream_timeout } else { &raw.connect_timeout }
}

fn check_limits(raw: &RawLimits, findings: &mut Findings) {
    let waits = [
        ("header_timeout", &raw.header_timeout),
        ("body_timeout", &raw.body_timeout),
        ("write_timeout", &raw.write_timeout),
        ("idle_timeout", &raw.idle_timeout),
        ("tunnel_idle_timeout", &raw.tunnel_idle_timeout),
        ("tunnel_lifetime", &raw.tunnel_lifetime),
        ("connect_timeout", &raw.connect_timeout),
        ("upstream_timeout", &raw.upstream_timeout),
        ("total_timeout", &raw.total_timeout),
        ("upstream_idle_timeout", &raw.upstream_idle_timeout),
        ("forwarded_idle_timeout", &raw.forwarded_idle_timeout),
        ("lingering_timeout", &raw.lingering_timeout),
        ("upstream_gone_after", &raw.upstream_gone_after),
    ];
    for (name, wait) in waits {
        check_wait(name, wait, findings);
    }
    let ordered = [
        ("connect_timeout", connect_timeout(raw), "upstream_timeout", &raw.upstream_timeout),
        ("upstream_timeout", &raw.upstream_timeout, "total_timeout", &raw.total_timeout),
    ];
    for (part, part_wait, whole, whole_wait) in ordered {
        if part_wait.0 > whole_wait.0 {
            // Report the key that the file sets.
            let span = if part_wait.span == Span::default() { whole_wait.span } else { part_wait.span };
            let what =
                format!("`{part}` ({}) is longer than `{whole}` ({})", part_wait.value, whole_wait.value);
            findings.push(Finding::error(Code::Conflict, span, what));
        }
    }
    for (name, wait) in [("drain_delay", &raw.drain_delay), ("drain_timeout", &raw.drain_timeout)] {
        if wait.0 > WAIT_MAX {
            findings.push(Finding::error(Code::OutOfRange, wait.span, format!("`{name}` is at most 1d")));
        }
    }
    if let Some(memory) = raw.memory.as_ref().filter(|memory| memory.0 < MEMORY_BYTES_MIN) {
        let what = format!("`memory` is at least {}", ByteSize(MEMORY_BYTES_MIN));
        let help = "the program alone takes about half of that; leave it out for the bound of the cgroup";
        findings.push(Finding::error(Code::OutOfRange, memory.span, what).help(help));
    }
    let parts = [
        ("connections_per_address", raw.connections_per_address.as_ref(), "connections", &raw.connections),
        (
            "upstream_calls_per_client",
            // Only if set: the default may exceed a smaller `upstream_calls`.
            Some(&raw.upstream_calls_per_client).filter(|part| part.span != Span::default()),
            "upstream_calls",
            &raw.upstream_calls,
        ),
    ];
    for (part, part_count, whole, whole_count) in parts {
        if let Some(count) = part_count.filter(|count| count.0 > whole_count.0) {
            let what =
                format!("`{part}` ({}) is more than `{whole}` ({})", count.value.0, whole_count.value.0);
            findings.push(Finding::error(Code::Conflict, count.span, what));
        }
    }
    let floors = [
        ("target_bytes", &raw.target_bytes, 256),
        ("header_bytes", &raw.header_bytes, HTTP_BYTES_MIN),
        ("buffer_bytes", &raw.buffer_bytes, HTTP_BYTES_MIN),
        ("body_bytes", &raw.body_bytes, 1),
        ("forwarded_bytes", &raw.forwarded_bytes, 1),
        ("held_bytes", &raw.held_bytes, HELD_BYTES_MIN),
        ("whole_bytes", &raw.whole_bytes, 1),
        ("scalar_bytes", &raw.scalar_bytes, SCALAR_BYTES_MIN),
        ("answer_bytes", &raw.answer_bytes, HELD_BYTES_MIN),
        ("upstream_header_bytes", &raw.upstream_header_bytes, HTTP_BYTES_MIN),
    ];
    for (name, size, floor) in floors {
        check_floor(name, size, floor, findings);
    }
    if !(BODY_DEPTH_MIN..=BODY_DEPTH_MAX).contains(&raw.body_depth.0) {
        let what = format!("`body_depth` is between {BODY_DEPTH_MIN} and {BODY_DEPTH_MAX}");
        findings.push(Finding::error(Code::OutOfRange, raw.body_depth.span, what));
    }
    let (one, all) = (&raw.held_bytes, &raw.held_bytes_all);
    if one.0 > all.0 {
        // Report the one that the file sets.
        let span = if one.span == Span::default() { all.span } else { one.span };
        let what = format!("`held_bytes` ({}) is more than `held_bytes_all` ({})", one.value, all.value);
        findings.push(Finding::error(Code::Conflict, span, what));
    }
}

/// Room for the program, a pack and a few requests.
const MEMORY_BYTES_MIN: u64 = 48 << 20;
/// Smallest buffer that the HTTP/1.1 parser works with.
const HTTP_BYTES_MIN: u64 = 8 << 10;
/// Depth of ordinary bodies.
const BODY_DEPTH_MIN: u32 = 8;
/// Buffered bodies are traversed recursively, so depth is bounded by the stack.
const BODY_DEPTH_MAX: u32 = 256;
/// Room for an ordinary text.
const SCALAR_BYTES_MIN: u64 = 4 << 10;

struct DuplicateNames {
    what: &'static str,
    first: HashMap<String, Span>,
}

impl DuplicateNames {
    fn new(what: &'static str) -> DuplicateNames {
        DuplicateNames { what, first: HashMap::new() }
    }

    fn see(&mut self, name: &str, span: Span, findings: &mut Findings) {
        if let Some(first) = self.first.insert(name.to_owned(), span) {
            let what = format!("there are two {}s with the name `{name}`", self.what);
            findings.push(Finding::error(Code::Conflict, span, what).with_related(first, "the first one"));
        }
    }
}

impl Default for LimitsConfig {
    /// Returns the defaults of the configuration file.
    fn default() -> LimitsConfig {
        limits(&RawLimits::assumed())
    }
}
