//! Checks the names in a configuration that refer to the pack: sides, operations and settings. Runs
//! once both are read; the findings point into the configuration.

use super::checked::{ClientConfig, Config, FrontConfig};
use super::quoting::without_secret_words;
use super::read::Placed;
use serde_json::Value;
use std::time::Duration;
use switchback_compiler::diagnostic::{Code, Finding, Findings, Span, did_you_mean, suggest};
use switchback_gateway::shadow::{OperationKey, Phase};
use switchback_gateway::token::AppCredential;
use switchback_plan::{ClientAuth, is_day};

/// The facts about a pack that a configuration is checked against. `app` extracts them, so that
/// this module does not depend on the compiled form.
#[derive(Clone, Debug)]
pub struct PackFacts {
    /// The two sides, old one first.
    pub sides: [SideFacts; 2],
    /// The client authentication that the new side declares.
    pub client_auth: Option<ClientAuth>,
    pub settings: Vec<SettingFacts>,
}

/// The facts about one side.
#[derive(Clone, Debug)]
pub struct SideFacts {
    pub name: String,
    /// Hosts in addition to the side's own address.
    pub hosts: Vec<String>,
    /// Operations, written `GET /things/{id}`.
    pub operations: Vec<String>,
    /// Events that receivers of this side are sent, written `event thingChanged`.
    pub events: Vec<String>,
    /// Operations that may wait for a job of the service.
    pub waits: Vec<WaitFacts>,
    /// Whether the pack can serve this side from the other.
    pub is_served: bool,
    /// Whether clients may have a secondary account there.
    pub has_scope: bool,
}

/// An operation that may wait for a job.
#[derive(Clone, Debug)]
pub struct WaitFacts {
    /// As in [`SideFacts::operations`].
    pub operation: String,
    /// The place in the pack, as `jobs.map.yaml:12`.
    pub route: String,
    /// Sum of the waits (`within`) of its steps.
    pub longest: Duration,
}

/// The facts about one setting.
#[derive(Clone, Debug)]
pub struct SettingFacts {
    /// Dotted path.
    pub name: String,
    pub kind: SettingType,
    pub is_required: bool,
    /// The sides that read it when they are served.
    pub read_by: Vec<String>,
    /// The permitted texts; empty: any.
    pub values: Vec<String>,
    pub about: String,
}

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingType {
    Boolean,
    Integer,
    String,
    /// A day, written `YYYY-MM-DD`.
    Date,
}

pub fn against_pack(config: &Config, pack: &PackFacts) -> Findings {
    let mut findings = Findings::new();
    for front in &config.fronts {
        check_front(front, pack, &mut findings);
    }
    check_upstreams(config, pack, &mut findings);
    check_hosts(config, pack, &mut findings);
    check_client_keys(config, pack, &mut findings);
    let spoken = spoken(config, pack);
    // If all operations are in `legacy`, calls are forwarded with the client's own token.
    let is_translated =
        |side: &&str| phases_of(side, config, pack).iter().any(|phase| *phase != Phase::Legacy);
    let translated: Vec<&str> = spoken.iter().copied().filter(is_translated).collect();
    for client in &config.clients {
        check_client(client, &spoken, &translated, pack, &mut findings);
    }
    for sunset in &config.sunsets {
        known_side(&sunset.side, pack, &mut findings);
    }
    check_retired(config, pack, &mut findings);
    check_phases(config, pack, &mut findings);
    check_settings(config, pack, &mut findings);
    check_waits(config, pack, &mut findings);
    check_event_paths(config, pack, &mut findings);
    // A name or path in the configuration may be a misplaced secret.
    without_secret_words(&mut findings);
    findings
}

/// Warns of requests with a job that may take longer than their total timeout. This is no error:
/// the client can repeat the request, which resumes the wait.
fn check_waits(config: &Config, pack: &PackFacts, findings: &mut Findings) {
    let spoken = spoken(config, pack);
    // Only sides with a front: routes of the other side are never run.
    let sides = pack.sides.iter().filter(|side| spoken.contains(&side.name.as_str()));
    for (side, wait) in sides.flat_map(|side| side.waits.iter().map(move |wait| (side, wait))) {
        let inherited =
            || (config.limits.total_timeout, config.total_timeout_place, "limits.total_timeout".to_owned());
        let fronts = config.fronts.iter().filter(|front| front.speaks.value == side.name);
        let timeouts = fronts.map(|front| front.total_timeout(&wait.operation).unwrap_or_else(inherited));
        // The shortest, where several fronts speak the side.
        let shortest = timeouts.min_by_key(|(total, ..)| *total).unwrap_or_else(inherited);
        let (total, span, key) = shortest;
        if wait.longest <= total {
            continue;
        }
        let span = span.unwrap_or_else(|| beginning(config));
        let what = format!(
            "`{}` waits {:?} for the service ({}), and a request ends after {total:?} (`{key}`)",
            wait.operation, wait.longest, wait.route
        );
        let help = format!("set `{key}` above {:?}, or have `within` of its steps shorter", wait.longest);
        findings.push(Finding::warning(Code::Conflict, span, what).help(help));
    }
}

/// Checks that no operation has the path of an event receiver: events are matched before the
/// fronts, so the operation would be unreachable.
fn check_event_paths(config: &Config, pack: &PackFacts, findings: &mut Findings) {
    // Without `fronts`, the old side is served at its name, so its paths are taken too.
    let usual = format!("/{}", pack.sides[0].name);
    let fronts = config.fronts.iter().map(|front| (front.prefix.as_str(), front.speaks.value.as_str()));
    let fronts: Vec<(&str, &str)> = match config.fronts.is_empty() {
        true => vec![(&usual, &pack.sides[0].name)],
        false => fronts.collect(),
    };
    for path in config.events.receivers.iter().flat_map(|receiver| receiver.paths()) {
        for (prefix, speaks) in &fronts {
            let side = pack.sides.iter().find(|side| side.name == *speaks);
            let below = path.strip_prefix(prefix).filter(|below| below.starts_with('/'));
            let (Some(side), Some(below)) = (side, below) else { continue };
            let is_there = |operation: &&String| {
                operation.split_once(' ').is_some_and(|(_, template)| is_at(template, below))
            };
            if let Some(operation) = side.operations.iter().find(is_there) {
                let what = format!(
                    "`{}` is the address of `{operation}` too, whose calls would be taken for events",
                    path.value
                );
                findings.push(
                    Finding::error(Code::Conflict, path.span, what)
                        .help("give the receiver a path that no operation has"),
                );
            }
        }
    }
}

/// Returns whether a path matches a template.
fn is_at(template: &str, path: &str) -> bool {
    // Any variable segment matches: a receiver below it would take calls of some values.
    let mut segments = path.split('/');
    template
        .split('/')
        .all(|known| segments.next().is_some_and(|segment| known.contains('{') || known == segment))
        && segments.next().is_none()
}

fn check_front(front: &FrontConfig, pack: &PackFacts, findings: &mut Findings) {
    let Some(speaks) = known_side(&front.speaks, pack, findings) else { return };
    if !speaks.is_served {
        let what = format!("the pack cannot serve `{}`", speaks.name);
        let help = format!(
            "every operation of `{}` is refused, or `serves:` leaves it out: write a route, or accept a guess of `DECISIONS.md`",
            speaks.name
        );
        findings.push(Finding::error(Code::PackMismatch, front.speaks.span, what).help(help));
    }
    for (key, _) in &front.operation_limits {
        if !speaks.operations.contains(&key.value) {
            let what = format!("`{}` has no operation `{}`", speaks.name, key.value);
            let finding = Finding::error(Code::PackMismatch, key.span, what);
            findings.push(finding.did_you_mean(&key.value, &speaks.operations));
        }
    }
    let Some(backend) = &front.backend else { return };
    if known_side(backend, pack, findings).is_some() && backend.value == front.speaks.value {
        let what = "a front's backend is the other side";
        findings.push(Finding::error(Code::PackMismatch, backend.span, what).help("leave `backend` out"));
    }
}

/// Checks that each front has the upstream of its backend, and that phases which forward have the
/// upstream of the front's side.
fn check_upstreams(config: &Config, pack: &PackFacts, findings: &mut Findings) {
    let known: Vec<_> =
        config.upstreams.iter().map(|upstream| known_side(&upstream.side, pack, findings)).collect();
    // A missing upstream may be a misspelt one, which is already reported.
    if known.iter().any(Option::is_none) {
        return;
    }
    for side in spoken(config, pack) {
        let phases = phases_of(side, config, pack);
        let Some(other) = pack.sides.iter().find(|facts| facts.name != side) else { continue };
        // Operations in `legacy` are forwarded to their own side and need no upstream of the other one.
        if config.upstream(&other.name).is_none() && phases.iter().any(|phase| *phase != Phase::Legacy) {
            let what = format!("calls of `{side}` are translated to `{}`, which has no upstream", other.name);
            let help = format!("add `upstreams.{}.url`", other.name);
            findings.push(Finding::error(Code::MissingKey, beginning(config), what).help(help));
        }
        let forwarding = phases.iter().find(|phase| phase.needs_own());
        if let Some(phase) = forwarding.filter(|_| config.upstream(side).is_none()) {
            let name = phase.name();
            let what = format!("the phase `{name}` forwards to the upstream of `{side}`, and there is none");
            let help = format!("add `upstreams.{side}.url`, or leave the phase out");
            findings.push(Finding::error(Code::MissingKey, beginning(config), what).help(help));
        }
    }
}

/// Checks that each host that the pack names for a configured side has an address, and that no
/// other host has one.
fn check_hosts(config: &Config, pack: &PackFacts, findings: &mut Findings) {
    for upstream in &config.upstreams {
        let side = &upstream.side;
        let Some(facts) = pack.sides.iter().find(|facts| facts.name == side.value) else { continue };
        for host in upstream.hosts.iter().filter(|host| !facts.hosts.contains(&host.name.value)) {
            let what = format!("the pack names no host `{}` of `{}`", host.name.value, side.value);
            let help = match facts.hosts.as_slice() {
                [] => "leave it out: all calls go to the side's own address".to_owned(),
                hosts => format!("its hosts are {}", quote_list(hosts)),
            };
            let finding = Finding::error(Code::PackMismatch, host.name.span, what).help(help);
            findings.push(finding.did_you_mean(&host.name.value, &facts.hosts));
        }
        let is_there = |name: &String| upstream.hosts.iter().any(|host| host.name.value == *name);
        // Do not report a host as missing if a misspelt entry probably means it.
        let misspelt = upstream.hosts.iter().filter(|host| !facts.hosts.contains(&host.name.value));
        let meant: Vec<&str> = misspelt.filter_map(|host| suggest(&host.name.value, &facts.hosts)).collect();
        for name in facts.hosts.iter().filter(|name| !is_there(name) && !meant.contains(&name.as_str())) {
            let what = format!("`{}` has the host `{name}`, and it has no address here", side.value);
            let help = format!("add `upstreams.{}.hosts.{name}.url`", side.value);
            findings.push(Finding::error(Code::MissingKey, side.span, what).help(help));
        }
    }
}

fn quote_list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the configured phases of a side's operations.
fn phases_of(side: &str, config: &Config, pack: &PackFacts) -> Vec<Phase> {
    let facts = pack.sides.iter().filter(|facts| facts.name == side);
    facts
        .flat_map(|facts| &facts.operations)
        .map(|operation| config.phases.for_operation(side, operation))
        .collect()
}

/// Returns the sides that clients speak.
fn spoken<'a>(config: &'a Config, pack: &'a PackFacts) -> Vec<&'a str> {
    match config.fronts.as_slice() {
        [] => vec![&pack.sides[0].name],
        fronts => {
            let known = |side: &&str| pack.sides.iter().any(|facts| facts.name == **side);
            fronts.iter().map(|front| front.speaks.value.as_str()).filter(known).collect()
        }
    }
}

/// Checks that each token of a client belongs to a side of `spoken`, and that calls to a side of
/// `translated` have a credential.
fn check_client(
    client: &ClientConfig,
    spoken: &[&str],
    translated: &[&str],
    pack: &PackFacts,
    findings: &mut Findings,
) {
    for (side, _) in &client.tokens {
        if known_side(side, pack, findings).is_none() {
            continue;
        }
        if !spoken.contains(&side.value.as_str()) {
            let what = format!("no front speaks `{}`, so this token selects nobody", side.value);
            findings.push(
                Finding::error(Code::PackMismatch, side.span, what).help("leave it out, or add the front"),
            );
        } else if translated.contains(&side.value.as_str()) {
            check_calls(client, side, pack, findings);
        }
    }
    // Calls to the new side have one credential. With two, it would be unclear which one a refused token
    // refers to.
    for (side, _) in &client.credentials {
        let is_new = known_side(side, pack, findings).is_some_and(|side| side.name == pack.sides[1].name);
        if is_new && client.grant.is_some() {
            let what =
                format!("calls to `{}` go out with the grant, or with this token, not with both", side.value);
            let finding = Finding::error(Code::Conflict, side.span, what);
            findings.push(finding.help("leave `grant` out, or this token"));
        }
    }
}

/// Checks that applications have a key if the pack declares `private_key_jwt`.
fn check_client_keys(config: &Config, pack: &PackFacts, findings: &mut Findings) {
    let configured = config.oauth.as_ref().and_then(|oauth| oauth.requests.client_auth);
    // The configuration takes precedence, and was checked on its own.
    if configured.is_some() || pack.client_auth != Some(ClientAuth::PrivateKeyJwt) {
        return;
    }
    for client in &config.clients {
        let credential = client.grant.as_ref().map(|grant| &grant.credential);
        if let Some(AppCredential::Secret(_)) = credential {
            let what = format!("the grant of `{}` needs the key `client_key`", client.name.value);
            let help = "the pack declares `client_auth: private_key_jwt`; `oauth.client_auth` overrides it";
            findings.push(Finding::error(Code::PackMismatch, client.name.span, what).help(help));
        }
    }
}

/// Checks the credential and the account of calls that arrive with the token of the side `spoken`.
fn check_calls(client: &ClientConfig, spoken: &Placed<String>, pack: &PackFacts, findings: &mut Findings) {
    let [old, new] = &pack.sides;
    let backend = if spoken.value == old.name { new } else { old };
    if let Some(company) = client.company.as_ref().filter(|_| !backend.has_scope) {
        let what = format!("`{}` has no secondary accounts, so no call to it can be for one", backend.name);
        let help = format!("leave `company` out, or `{}_token`", spoken.value);
        let finding = Finding::error(Code::PackMismatch, company.span, what).help(help);
        findings.push(finding.with_related(spoken.span, "calls that come in by this token"));
    }
    // Grants belong to the new side; a client can be connected at any time.
    let has_grant = backend.name == new.name;
    if !has_grant && !client.credentials.iter().any(|(side, _)| side.value == backend.name) {
        let (name, side) = (&client.name.value, &backend.name);
        let what = format!("nothing here says what calls of `{name}` to `{side}` go out with");
        let help = format!(
            "add `credentials: {{ {side}: ${{…}} }}`, unless the client is given one by `switchback client credential`"
        );
        findings.push(Finding::warning(Code::MissingKey, spoken.span, what).help(help));
    }
}

/// Returns the place for findings about missing sections.
fn beginning(config: &Config) -> Span {
    // A missing key has no place. The finding points to the first upstream, where such a key is usually
    // added.
    config.upstreams.first().map_or(Span::default(), |upstream| upstream.side.span)
}

/// Checks that sunsets and brownouts refer to sides that clients speak.
fn check_retired(config: &Config, pack: &PackFacts, findings: &mut Findings) {
    let sunsets = config.clients.iter().filter_map(|client| client.sunset.as_ref());
    for sunset in sunsets {
        ending_side(sunset.side.as_ref(), sunset.span, config, pack, findings);
    }
    for brownout in &config.brownouts {
        let Some(side) = ending_side(brownout.side.as_ref(), brownout.span, config, pack, findings) else {
            continue;
        };
        for operation in brownout.operations.iter().filter(|one| !side.operations.contains(&one.value)) {
            let what = format!("`{}` has no operation `{}`", side.name, operation.value);
            let help = did_you_mean(operation, side.operations.iter().map(String::as_str));
            findings.push(Finding::error(Code::PackMismatch, operation.span, what).maybe_help(help));
        }
        let names: Vec<&str> = config.clients.iter().map(|client| client.name.as_str()).collect();
        for client in brownout.clients.iter().filter(|one| !names.contains(&one.as_str())) {
            let what =
                format!("no client `{}` is configured; it may have been added at run time", client.value);
            let help = did_you_mean(client, names.iter().copied());
            findings.push(Finding::warning(Code::PackMismatch, client.span, what).maybe_help(help));
        }
    }
}

/// Returns the named side, or the only one that clients speak.
fn ending_side<'p>(
    named: Option<&Placed<String>>,
    at: Span,
    config: &Config,
    pack: &'p PackFacts,
    findings: &mut Findings,
) -> Option<&'p SideFacts> {
    let spoken = spoken(config, pack);
    let Some(named) = named else {
        // Several fronts may speak the same side.
        let all_one = spoken.iter().all(|side| Some(side) == spoken.first());
        if !all_one {
            let what = "clients speak several sides, and this does not say which is meant";
            let help = format!("add `side: {}`", pack.sides[0].name);
            findings.push(Finding::error(Code::PackMismatch, at, what).help(help));
            return None;
        }
        return pack.sides.iter().find(|facts| Some(&facts.name.as_str()) == spoken.first());
    };
    let side = known_side(named, pack, findings)?;
    if !spoken.contains(&side.name.as_str()) {
        let what = format!("no front speaks `{}`, so nothing of it can end", side.name);
        findings.push(Finding::error(Code::PackMismatch, named.span, what));
        return None;
    }
    Some(side)
}

fn check_phases(config: &Config, pack: &PackFacts, findings: &mut Findings) {
    let named = config.phases.keys.iter().map(|(key, phase)| (key, Some(*phase)));
    for (key, phase) in named.chain(config.gate_keys.iter().map(|key| (key, None))) {
        check_operation(key, pack, findings);
        check_event(key, phase, config, pack, findings);
        check_one_side(key, phase, config, pack, findings);
    }
}

/// Checks that a named operation exists in the pack, on the named side if there is one.
fn check_operation(key: &Placed<OperationKey>, pack: &PackFacts, findings: &mut Findings) {
    let named = key.side.clone().map(|side| Placed { value: side, span: key.span });
    let of = match &named {
        Some(side) => match known_side(side, pack, findings) {
            Some(facts) => std::slice::from_ref(facts),
            None => return,
        },
        None => &pack.sides[..],
    };
    let Some(operation) = &key.operation else { return };
    // Events have phases too, so their names are valid keys.
    let known = of.iter().flat_map(|side| side.operations.iter().chain(&side.events));
    let operations: Vec<&str> = known.map(String::as_str).collect();
    if !operations.contains(&operation.as_str()) {
        let what = match &key.side {
            Some(side) => format!("`{side}` has no operation `{operation}`"),
            None => format!("the pack has no operation `{operation}`"),
        };
        let help = did_you_mean(operation, operations.iter().copied());
        findings.push(Finding::error(Code::PackMismatch, key.span, what).maybe_help(help));
    }
}

/// Checks that an event in a comparing phase has both versions' events.
fn check_event(
    key: &Placed<OperationKey>,
    phase: Option<Phase>,
    config: &Config,
    pack: &PackFacts,
    findings: &mut Findings,
) {
    let (Some(operation), Some(phase)) = (&key.operation, phase) else { return };
    let is_event = pack.sides.iter().any(|side| side.events.contains(operation));
    if is_event && phase != Phase::default() && !config.events.has_own() {
        let what =
            format!("the phase `{}` needs the events that the receivers' version itself sends", phase.name());
        let help = "say in `events.receivers` where they come and how they are signed: `own: {verify: …}`";
        findings.push(Finding::error(Code::PackMismatch, key.span, what).help(help));
    }
}

/// If clients speak both sides, checks that a phase in which the side's own service answers names
/// one of them.
fn check_one_side(
    key: &Placed<OperationKey>,
    phase: Option<Phase>,
    config: &Config,
    pack: &PackFacts,
    findings: &mut Findings,
) {
    // The default phase translates, which can apply to both sides at once.
    let Some(phase) = phase.filter(|phase| *phase != Phase::default() && key.side.is_none()) else { return };
    let has = |side: &SideFacts| {
        key.operation.as_ref().is_none_or(|operation| side.operations.iter().any(|known| known == operation))
    };
    let spoken = spoken(config, pack);
    let meant: Vec<&str> =
        pack.sides.iter().filter(|side| has(side)).map(|side| side.name.as_str()).collect();
    // An operation of a side without a front is never called, so the key is unambiguous.
    let meant: Vec<&str> = meant.into_iter().filter(|side| spoken.contains(side)).collect();
    if let [one, other] = meant.as_slice() {
        let (text, name) = (&key.value, phase.name());
        let what = format!("`{text}` does not say which of `{one}` and `{other}` is meant to be `{name}`");
        let help = format!("write `{one} {text}`, or `{other} {text}`, or both");
        findings.push(Finding::error(Code::PackMismatch, key.span, what).help(help));
    }
}

fn known_side<'p>(
    side: &Placed<String>,
    pack: &'p PackFacts,
    findings: &mut Findings,
) -> Option<&'p SideFacts> {
    let found = pack.sides.iter().find(|facts| facts.name == side.value);
    if found.is_none() {
        let [old, new] = &pack.sides;
        let what = format!("`{}` is not a side of the pack", side.value);
        let help = format!("its sides are `{}` and `{}`", old.name, new.name);
        findings.push(Finding::error(Code::PackMismatch, side.span, what).help(help));
    }
    found
}

fn check_settings(config: &Config, pack: &PackFacts, findings: &mut Findings) {
    let settings = &config.settings;
    let place = |name: &str| {
        config.setting_places.iter().find(|(known, _)| known == name).map_or(settings.span, |(_, span)| *span)
    };
    let mut given = Vec::new();
    leaves(&settings.value, String::new(), &mut given);
    let names: Vec<&str> = pack.settings.iter().map(|setting| setting.name.as_str()).collect();
    for (name, value) in &given {
        let Some(setting) = pack.settings.iter().find(|setting| setting.name == *name) else {
            let what = format!("the pack reads no setting `{name}`");
            let help = did_you_mean(name, names.iter().copied());
            findings.push(Finding::error(Code::PackMismatch, place(name), what).maybe_help(help));
            continue;
        };
        // Null counts as absent.
        if value.is_null() && !setting.is_required {
            continue;
        }
        if !setting.kind.fits(value) {
            let what = format!("the setting `{name}` is {}", setting.kind.word());
            findings.push(Finding::error(Code::PackMismatch, place(name), what).help(setting.about.clone()));
        } else if let Some(text) = value.as_str().filter(|text| !setting.is_listed(text)) {
            let values = setting.values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>();
            let what = format!("the setting `{name}` is one of {}", values.join(", "));
            let help = did_you_mean(text, setting.values.iter().map(String::as_str));
            findings.push(Finding::error(Code::PackMismatch, place(name), what).maybe_help(help));
        }
    }
    let spoken = spoken(config, pack);
    // Settings of a side that no front speaks are never read, so a missing one does no harm.
    let is_read =
        |setting: &&SettingFacts| setting.read_by.iter().any(|side| spoken.contains(&side.as_str()));
    for setting in pack.settings.iter().filter(|setting| setting.is_required).filter(is_read) {
        if !given.iter().any(|(name, _)| *name == setting.name) {
            let what = format!("the pack needs the setting `{}`", setting.name);
            let help = format!("add it under `settings`: it is {}", setting.kind.word());
            findings.push(Finding::error(Code::MissingKey, settings.span, what).help(help));
        }
    }
}

/// Collects all values other than maps, with their dotted names.
fn leaves<'v>(value: &'v Value, name: String, found: &mut Vec<(String, &'v Value)>) {
    match value {
        // A setting `a.b` may be written as nested maps or as one dotted key.
        Value::Object(members) => {
            for (key, value) in members {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                leaves(value, name, found);
            }
        }
        value => found.push((name, value)),
    }
}

impl SettingFacts {
    fn is_listed(&self, text: &str) -> bool {
        self.values.is_empty() || self.values.iter().any(|value| value == text)
    }
}

impl SettingType {
    fn fits(self, value: &Value) -> bool {
        match self {
            SettingType::Boolean => value.is_boolean(),
            SettingType::Integer => value.is_i64() || value.is_u64(),
            SettingType::String => value.is_string(),
            SettingType::Date => value.as_str().is_some_and(is_day),
        }
    }

    fn word(self) -> &'static str {
        match self {
            SettingType::Boolean => "`true` or `false`",
            SettingType::Integer => "a whole number",
            SettingType::String => "a text",
            SettingType::Date => "a day, written `YYYY-MM-DD`",
        }
    }
}
