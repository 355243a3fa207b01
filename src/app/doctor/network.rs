//! Checks of the services and the authorization server: connection, TLS, an HTTP answer, metadata,
//! and the difference between their clocks and ours.

use super::files::certificate_end;
use super::{DoctorCheck, PATIENCE};
use crate::app::{StartError, authorization_server, examine};
use crate::config::{Config, WebUrl, service_key, without_secrets};
use http::{Method, StatusCode, header};
use reqwest::Url;
use std::time::{Duration, SystemTime};
use switchback_gateway::http_client::HttpClient;
use switchback_gateway::probe::{ConnectionProbe, probe};
use switchback_gateway::tls::ServiceTls;

/// Longest time limit of a step, regardless of the configuration.
const STEP_MAX: Duration = Duration::from_secs(10);
/// Clock differences from which a clock is reported, and from which signatures and tokens fail.
const CLOCK_LOW: Duration = Duration::from_secs(5);
const CLOCK_MAX: Duration = Duration::from_secs(300);

/// A service to examine.
struct Service<'c> {
    key: String,
    url: &'c WebUrl,
    tls: &'c ServiceTls,
    timeout: Duration,
}

pub(super) async fn examine_services(config: &Config, offline: bool, is_usable: bool) -> Vec<DoctorCheck> {
    let services = services(config);
    if offline {
        let skipped = |service: &Service<'_>| {
            let found = format!("{} was not contacted (--offline)", service.url.to_masked());
            DoctorCheck::unknown(&service.key, found)
        };
        let mut checks: Vec<DoctorCheck> = services.iter().map(skipped).collect();
        checks.push(DoctorCheck::unknown("clock", "no service was contacted (--offline)"));
        return checks;
    }
    let examined = futures_util::future::join_all(services.iter().map(examine_service));
    let (examined, issuer) = futures_util::join!(examined, issuer(config, is_usable));
    let mut dates = Vec::new();
    let mut checks = Vec::new();
    for (found, date) in examined {
        checks.extend(found);
        dates.extend(date);
    }
    checks.extend(issuer);
    checks.push(clock(&dates));
    checks
}

fn services(config: &Config) -> Vec<Service<'_>> {
    let timeout = config.limits.connect_timeout + config.limits.upstream_timeout;
    let upstreams = config.services().map(|(name, url, tls)| Service {
        key: service_key(&name),
        url,
        tls: &tls.value,
        timeout: timeout.min(STEP_MAX),
    });
    let oauth = config.oauth.iter().flat_map(|oauth| {
        let urls = [("oauth.token_url", &oauth.token_url), ("oauth.revocation_url", &oauth.revocation_url)];
        let given = urls.into_iter().filter_map(|(key, url)| Some((key, url.as_ref()?)));
        given.map(|(key, url)| Service {
            key: key.to_owned(),
            url,
            tls: &oauth.tls.value,
            timeout: oauth.timeout.min(STEP_MAX),
        })
    });
    upstreams.chain(oauth).collect()
}

/// The clock of a service, in comparison with ours.
struct ServiceDate {
    key: String,
    /// The time of the answer.
    ours: SystemTime,
    theirs: SystemTime,
}

async fn examine_service(service: &Service<'_>) -> (Vec<DoctorCheck>, Option<ServiceDate>) {
    let (key, url) = (&service.key, service.url);
    let uri = url.uri();
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(if url.is_https() { 443 } else { 80 });
    let tls = url.is_https().then_some(service.tls);
    let ConnectionProbe { connected, handshake } = probe(host, port, tls, service.timeout).await;
    let name = |step: &str| format!("{key}: {step}");
    let address = match connected {
        Ok(address) => address,
        Err(error) => {
            let found = format!("{}: {error}", url.to_masked());
            let advice = "check the address, the name service, and firewalls between here and there";
            return (vec![DoctorCheck::failed(name("connection"), found, advice)], None);
        }
    };
    let mut checks = vec![DoctorCheck::ok(name("connection"), format!("{address} accepts connections"))];
    match handshake {
        None => {}
        Some(Ok(certificate)) => {
            let advice = "have the certificate of the service renewed";
            checks.push(certificate_end(&name("TLS"), "verified; the certificate", certificate.ends, advice));
        }
        Some(Err(error)) => {
            let advice = "check `tls` of the service: `ca_file`, `server_name`, and the client certificate";
            checks.push(DoctorCheck::failed(name("TLS"), error.to_string(), advice));
            return (checks, None);
        }
    }
    let (check, date) = head(service).await;
    checks.push(check);
    (checks, date)
}

/// Sends `HEAD`, which is safe at any path, without a credential.
async fn head(service: &Service<'_>) -> (DoctorCheck, Option<ServiceDate>) {
    let name = format!("{}: HTTP", service.key);
    let requesting = async {
        let at: Url = service.url.to_string().parse().map_err(|_| "this is no URL".to_owned())?;
        let builder = reqwest::Client::builder().timeout(service.timeout);
        let client = HttpClient::new(builder, &at, service.tls).map_err(|error| error.to_string())?;
        let answer = client.request(Method::HEAD, &at).send().await;
        answer.map_err(|error| examine::causes(&error.without_url()))
    };
    let answer = match requesting.await {
        Ok(answer) => answer,
        Err(error) => {
            let found = format!("no answer to HEAD {}: {error}", service.url.to_masked());
            return (
                DoctorCheck::failed(name, found, "check that an HTTP server runs at this address"),
                None,
            );
        }
    };
    let ours = SystemTime::now();
    let theirs = answer.headers().get(header::DATE).and_then(|date| date.to_str().ok());
    let theirs = theirs.and_then(|date| httpdate::parse_http_date(date).ok());
    let date = theirs.map(|theirs| ServiceDate { key: service.key.clone(), ours, theirs });
    let found = format!("answers {} to HEAD without a credential", answer.status().as_u16());
    // A server that does not know HEAD is well.
    let is_failing = answer.status().is_server_error() && answer.status() != StatusCode::NOT_IMPLEMENTED;
    let check = match is_failing {
        true => DoctorCheck::warning(name, found, "see whether the service is in trouble"),
        false => DoctorCheck::ok(name, found),
    };
    (check, date)
}

/// Reads the metadata of the issuer.
async fn issuer(config: &Config, is_usable: bool) -> Option<DoctorCheck> {
    const NAME: &str = "oauth.issuer";
    config.oauth.as_ref()?.issuer.as_ref()?;
    if !is_usable {
        return Some(DoctorCheck::unknown(NAME, "it needs a configuration without errors"));
    }
    // The pack is compiled, too: it declares how the server is called.
    let timeout = config.oauth.as_ref()?.timeout + PATIENCE;
    let reading = async {
        let endpoint = authorization_server(config).await?;
        Ok::<_, StartError>(examine::issuer(config, endpoint).await)
    };
    Some(match tokio::time::timeout(timeout, reading).await {
        Err(_) => DoctorCheck::unknown(NAME, format!("no answer within {} s", timeout.as_secs())),
        Ok(Err(error)) => DoctorCheck::unknown(NAME, without_secrets(&error.to_string())),
        Ok(Ok(None)) => DoctorCheck::unknown(NAME, "its address cannot be read"),
        Ok(Ok(Some(tried))) => {
            let advice = "compare `oauth` with the metadata of the authorization server (RFC 8414)";
            match (tried.error, tried.warnings.as_slice()) {
                (Some(error), _) => DoctorCheck::failed(NAME, format!("{}: {error}", tried.address), advice),
                (None, []) => DoctorCheck::ok(NAME, format!("{}: its metadata fit", tried.address)),
                (None, warnings) => {
                    DoctorCheck::warning(NAME, format!("{}: {}", tried.address, warnings.join("; ")), advice)
                }
            }
        }
    })
}

/// Compares our clock with the `Date` of the answers.
fn clock(dates: &[ServiceDate]) -> DoctorCheck {
    const NAME: &str = "clock";
    const ADVICE: &str = "synchronize the clocks (NTP): expiry dates and signatures depend on them";
    let difference = |date: &ServiceDate| match date.theirs.duration_since(date.ours) {
        Ok(ahead) => ahead,
        Err(behind) => behind.duration(),
    };
    let Some(worst) = dates.iter().max_by_key(|date| difference(date)) else {
        return DoctorCheck::unknown(NAME, "no answer had a date");
    };
    let seconds = difference(worst).as_secs();
    let found = format!("{} s between this clock and that of {}", seconds, worst.key);
    match difference(worst) {
        difference if difference >= CLOCK_MAX => DoctorCheck::failed(NAME, found, ADVICE),
        // `Date` has whole seconds, and the answer took a moment.
        difference if difference >= CLOCK_LOW => DoctorCheck::warning(NAME, found, ADVICE),
        _ => DoctorCheck::ok(NAME, found),
    }
}
