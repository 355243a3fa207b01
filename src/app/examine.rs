//! Checks a configuration beyond its text: names that the pack lacks, invalid keys and unreadable
//! files. With `online`, also whether the store, the services and the authorization server answer.
//! Reports all problems in one run.

use super::{StartError, assemble, endpoint, load_pack, tls_files};
use crate::config::{
    Config, ReplacedLimit, WebUrl, against_pack, replaced_limits, service_key, without_secrets,
};
use http::Method;
use reqwest::Url;
use serde::Serialize;
use std::time::Duration;
use switchback_compiler::diagnostic::{Code, Finding, Findings, Span};
use switchback_gateway::Upstreams;
use switchback_gateway::http_client::HttpClient;
use switchback_gateway::store::seal::{KeyRing, SealError};
use switchback_gateway::store::{self, GrantFlow, StoreState};
use switchback_gateway::tls::{self, ServiceTls};
use switchback_gateway::token::{MetadataReport, TokenEndpoint, Wants};

/// The result of [`examine`].
#[derive(Debug, Default)]
pub struct Examined {
    /// Findings in the configuration.
    pub findings: Findings,
    /// Findings in the pack, as `switchback check` and `switchback test` print them.
    pub pack: Option<String>,
    /// The limits that fronts and operations replace.
    pub limits: Vec<ReplacedLimit>,
    /// The results of the connection attempts; empty unless `online`.
    pub tries: Vec<Try>,
}

/// The result of one connection attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Try {
    /// The configuration key, such as `upstreams.v3`.
    pub key: String,
    /// The address without secrets.
    pub address: String,
    /// Why the attempt failed.
    pub error: Option<String>,
    /// Problems that do not prevent operation.
    pub warnings: Vec<String>,
}

impl Try {
    fn new(key: impl Into<String>, address: String, error: Option<String>) -> Try {
        Try { key: key.into(), address, error, warnings: Vec::new() }
    }
}

impl Examined {
    /// Returns whether a gateway could serve with this configuration.
    pub fn is_ready(&self) -> bool {
        self.pack.is_none() && !self.findings.has_errors() && self.tries.iter().all(|one| one.error.is_none())
    }
}

/// Checks all that serving needs. Opens and changes no resource; sends requests only if `online`.
pub async fn examine(config: &Config, online: bool) -> Result<Examined, StartError> {
    let mut examined =
        Examined { findings: parts(config), limits: replaced_limits(config), ..Examined::default() };
    let mut authorization_server = None;
    match load_pack(config).await {
        Ok(read) => {
            examined.findings.append(against_pack(config, &read.facts()));
            // The parts below require a configuration that fits its pack.
            if !examined.findings.has_errors() {
                let loaded = assemble::apply_settings(config, read)?;
                authorization_server = endpoint(config, &loaded)?;
                let limits = std::sync::Arc::new(assemble::limits(&config.limits));
                let traces = assemble::traces(config.otlp.as_ref(), None)?;
                let tables = assemble::tables(config, &loaded);
                let program = assemble::program(config, &loaded, &limits, tables, traces);
                program.program(&program.connect(&Upstreams::default())?)?;
            }
        }
        // `parts` has reported the missing folder with its place.
        Err(StartError::Pack(_)) if missing_folder(config).is_some() => {}
        Err(StartError::Pack(error)) => examined.pack = Some(error.to_string()),
        Err(error) => return Err(error),
    }
    if online {
        examined.tries = tries(config, authorization_server).await;
    }
    Ok(examined)
}

/// Checks the keys and files that the configuration names. Each finding has its place.
pub(super) fn parts(config: &Config) -> Findings {
    let mut findings = Findings::new();
    let mut add = |span: Span, what: String, help: Option<String>| {
        let what = without_secrets(&what);
        findings.push(Finding::error(Code::ValueForm, span, what).maybe_help(help));
    };
    if let Some(error) = missing_folder(config) {
        add(config.places.mapping, error, Some("the folder of a pack holds its `pack.yaml`".to_owned()));
    }
    // Parse a growing list, so that every wrong key is reported, and a duplicate at its second
    // place.
    let mut right = Vec::new();
    for (key, span) in config.keys.iter().zip(&config.places.keys) {
        right.push(key.clone());
        if let Err(error) = KeyRing::parse(&right) {
            right.pop();
            let make =
                (error == SealError::NotAKey).then(|| "make one with `switchback key generate`".to_owned());
            add(*span, format!("`key`: {error}"), make);
        }
    }
    if let Some(files) = &config.tls {
        for error in tls::tls_faults(&tls_files(files)) {
            add(config.places.tls, format!("`tls`: {error}"), None);
        }
    }
    let services = config.services().map(|(_, _, tls)| tls);
    for service in services.chain(config.oauth.iter().map(|oauth| &oauth.tls)) {
        // Defaults name no file, so an error would be one of this machine's certificate store.
        let is_given = service.value != ServiceTls::default();
        for error in is_given.then(|| tls::service_faults(service)).into_iter().flatten() {
            add(service.span, format!("`tls`: {error}"), None);
        }
    }
    findings
}

/// Returns the error text if the pack's folder cannot be read.
fn missing_folder(config: &Config) -> Option<String> {
    let folder = config.mapping.as_deref()?;
    let error = std::fs::read_dir(folder).err()?;
    Some(format!("the pack `{}` cannot be read: {error}", folder.display()))
}

/// Connects to the store, the services and the authorization server, and reads the metadata of the
/// latter. Writes no data, and sends credentials only to the store. `endpoint` is `None` if other
/// findings prevent its construction.
async fn tries(config: &Config, endpoint: Option<TokenEndpoint>) -> Vec<Try> {
    let store = async {
        let reach = store::reach(config.store.as_str()).await;
        let error = match reach {
            Ok(StoreState::There | StoreState::ToBeMade) => None,
            Err(error) => Some(no_answer(&error.to_string())),
        };
        Try::new("store", config.store.to_masked(), error)
    };
    let timeout = config.limits.connect_timeout + config.limits.upstream_timeout;
    let upstreams = config.services().map(|(name, url, tls)| probe(service_key(&name), url, tls, timeout));
    let oauth = config.oauth.iter().flat_map(|oauth| {
        let urls = [("oauth.token_url", &oauth.token_url), ("oauth.revocation_url", &oauth.revocation_url)];
        let given = urls.into_iter().filter_map(|(key, url)| Some((key, url.as_ref()?)));
        given.map(|(key, url)| probe(key.to_owned(), url, &oauth.tls, oauth.timeout))
    });
    let services = futures_util::future::join_all(upstreams.chain(oauth));
    let (store, services, issuer) = futures_util::join!(store, services, issuer(config, endpoint));
    std::iter::once(store).chain(services).chain(issuer).collect()
}

/// Reads the issuer's metadata, if an issuer is configured, and reports capabilities that the
/// configured clients need but it lacks.
pub(super) async fn issuer(config: &Config, endpoint: Option<TokenEndpoint>) -> Option<Try> {
    let endpoint = endpoint?;
    let address = config.oauth.as_ref()?.issuer.as_deref()?.parse::<WebUrl>().ok()?.to_masked();
    let grants = || config.clients.iter().filter_map(|client| client.grant.as_ref());
    let has = |flow: GrantFlow| grants().any(|grant| grant.flow == flow);
    let keys = || grants().filter_map(|grant| grant.credential.key());
    let wants = Wants {
        // Clients enrolled at run time connect through an authorization link, too.
        authorization_code: grants().next().is_none() || has(GrantFlow::AuthorizationCode),
        client_credentials: has(GrantFlow::ClientCredentials),
        secrets: grants().next().is_none() || keys().count() < grants().count(),
        key_algorithms: keys().filter_map(|key| key.algorithm().ok()).collect(),
    };
    let report = endpoint.examine(&wants).await;
    let report = report
        .unwrap_or_else(|error| MetadataReport { errors: vec![error.to_string()], ..Default::default() });
    let error = (!report.errors.is_empty()).then(|| report.errors.join("; "));
    Some(Try { warnings: report.warnings, ..Try::new("oauth.issuer", address, error) })
}

/// Checks whether a service answers. Any HTTP response counts as success.
async fn probe(key: String, url: &WebUrl, tls: &ServiceTls, timeout: Duration) -> Try {
    let asking = async {
        let at: Url = url.to_string().parse().map_err(|_| "this is no URL".to_owned())?;
        let client = HttpClient::new(reqwest::Client::builder().timeout(timeout), &at, tls)
            .map_err(|error| error.to_string())?;
        // HEAD is safe on any path.
        let answer = client.request(Method::HEAD, &at).send().await;
        // The URL is printed by the caller in its masked form.
        answer.map(drop).map_err(|error| no_answer(&causes(&error.without_url())))
    };
    Try::new(key, url.to_masked(), asking.await.err())
}

fn no_answer(why: &str) -> String {
    format!("does not answer: {why}")
}

/// Joins an error with its sources: the innermost one has the actual cause.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| error.source());
    std::iter::once(error.to_string()).chain(sources.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}
