//! Tests of reading configuration files: accepted and rejected texts, and the findings.

mod with_a_pack;

use super::*;
use std::time::Duration;
use switchback_compiler::diagnostic::{Colour, Help, to_text};
use switchback_compiler::yaml::{Kind, Node};
use switchback_gateway::shadow::{Phase, Priority, Share};
use switchback_gateway::token::AppCredential;

const SMALLEST: &str = "key: ${KEY}\nupstreams: { new: { url: 'https://api.example.com/new' } }\n";

fn parsed(text: &str) -> ConfigOutcome {
    let variable = |name: &str| match name {
        "KEY" => Some("k-0123456789".to_owned()),
        "TOKEN" => Some("t-0123456789abcdef".to_owned()),
        "NUMERIC" => Some("01234567".to_owned()),
        _ => None,
    };
    let read_file = |path: &Path| match path.to_str() {
        Some("/run/secrets/app") => Ok(b"from-file\n".to_vec()),
        Some("/run/secrets/empty") => Ok(b"\n".to_vec()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    parse("switchback.yaml", text, &Environment { variable: &variable, read_file: &read_file })
}

fn config(text: &str) -> Config {
    let outcome = parsed(text);
    let shown = to_text(&outcome.sources, &outcome.findings, Colour::Never);
    outcome.config.unwrap_or_else(|| panic!("{shown}"))
}

/// Returns the findings as `number line: message`.
fn found(text: &str) -> Vec<String> {
    let outcome = parsed(text);
    let line = |span| outcome.sources.start(span).line;
    let shown = |finding: &&switchback_compiler::diagnostic::Finding| {
        format!("{} {}: {}", finding.code.number(), line(finding.span), finding.message)
    };
    outcome.findings.in_order().iter().map(shown).collect()
}

#[test]
fn two_keys_are_enough_and_the_rest_has_defaults() {
    let config = config(SMALLEST);
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.admin.listen.to_string(), "127.0.0.1:9090");
    assert_eq!(config.store.as_str(), "sqlite:switchback.db");
    assert_eq!(config.upstream("new").unwrap().url.base_path(), "/new");
    assert_eq!(config.limits, LimitsConfig::default());
    assert_eq!(config.limits.body_bytes, 10 << 20);
    assert_eq!(config.phases.for_operation("old", "GET /things"), Phase::default());
    assert!(config.mapping.is_none() && config.fronts.is_empty() && config.clients.is_empty());
    assert!(config.reload.watch);
}

#[test]
fn connecting_takes_no_longer_than_the_call_unless_that_is_asked_for() {
    let with = |limits: &str| format!("{SMALLEST}limits: {{ {limits} }}\n");
    let connect_timeout = |limits: &str| config(&with(limits)).limits.connect_timeout;
    assert_eq!(connect_timeout("upstream_timeout: 4s"), Duration::from_millis(3500));
    assert_eq!(connect_timeout("upstream_timeout: 2s"), Duration::from_secs(2));
    assert_eq!(connect_timeout("upstream_timeout: 2s, connect_timeout: 1s"), Duration::from_secs(1));
    assert_eq!(
        found(&with("upstream_timeout: 2s, connect_timeout: 3s")),
        ["G003 3: `connect_timeout` (3s) is longer than `upstream_timeout` (2s)"]
    );
}

#[test]
fn parameters_of_the_authorization_server_are_others_than_those_that_are_sent_anyway() {
    let with = |more: &str| {
        format!(
            "{SMALLEST}oauth:\n  authorize_url: https://a/x\n  token_url: https://a/t\n  redirect_url: https://a/r\n{more}"
        )
    };
    let right = with(
        "  parameters: { audience: a, resource: 'https://b' }\n  authorize_parameters: { prompt: consent }\n",
    );
    let oauth = config(&right).oauth.expect("it is there");
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(oauth.parameters, [pair("audience", "a"), pair("resource", "https://b")]);
    assert_eq!(oauth.authorize_parameters, [pair("prompt", "consent")]);
    let wrong = with(
        "  parameters:\n    grant_type: b\n    scope: c\n  authorize_parameters: { state: s, scope: c }\n",
    );
    assert_eq!(
        found(&wrong),
        [
            "G003 8: `grant_type` is a field that the gateway sends itself",
            "G003 9: `scope` is a field that the gateway sends itself",
            "G003 10: `state` is a field that the gateway sends itself",
            "G003 10: `scope` is a field that the gateway sends itself",
        ]
    );
    let outcome = parsed(&wrong);
    let is_it = |help: &Help| help.to_string() == "set `oauth.scopes`";
    assert!(outcome.findings.in_order().iter().any(|one| one.help.as_ref().is_some_and(is_it)));
}

#[test]
fn a_pack_is_writable_only_if_its_folder_is_given_with_that_word() {
    for (mapping, is_writable) in [
        ("packs/one", false),
        ("{ folder: packs/one }", false),
        ("{ folder: packs/one, writable: false }", false),
        ("{ folder: packs/one, writable: true }", true),
    ] {
        let config = config(&format!("{SMALLEST}mapping: {mapping}\n"));
        assert_eq!(config.mapping.as_deref(), Some(std::path::Path::new("packs/one")), "{mapping}");
        assert_eq!(config.is_mapping_writable, is_writable, "{mapping}");
    }
}

/// A configuration with all sections.
const EVERY_SECTION: &str = "
listen: '[::1]:80'
tls: { certificate: c.pem, private_key: k.pem }
admin: { listen: 0.0.0.0:90, token: ${TOKEN}, hosts: [Admin.Example.com] }
mapping: packs/one
store: postgres://u:p@db/x
key: [${KEY}, 'file:/run/secrets/app']
fronts: { /: { speaks: old }, /api/new: { speaks: new, backend: old } }
upstreams: { new: { url: http://127.0.0.1:1 }, old: { url: https://b.example/old/ } }
oauth: { authorize_url: https://a/x?y=z, token_url: https://a/t, redirect_url: http://localhost:90/cb, scopes: [a, b], timeout: 2s }
clients:
  - { name: acme, old_token: ${NUMERIC}, new_token: t2345678, company: 42, grant: { client_id: ${KEY}, client_secret: 'file:/run/secrets/app', refresh_token: r }, credentials: { old: ${TOKEN} } }
settings: { a: { n: 10 }, s: 'x' }
phases: { default: legacy, 'GET /things/{id}': { phase: canary, share: 10% }, 'GET /things': { phase: translated, check: 0.01 }, 'POST /things': { rollout: careful } }
rollout: { careful: { steps: [{ phase: shadow, for: 1d }, { phase: canary, share: 10% }, translated], when: { between: '22:00-04:30', days: 'fri-mon', zone: Europe/Berlin } } }
sunset: { old: { deprecated: 2026-01-01, sunset: 2027-01-01, policy: https://a/p, successor: https://a/n } }
shadow: { sample: 0.5, noise: 0, calls: 4, keep: 1d, priority: normal }
gate: { default: { mismatch: 2%, unsettled: 3%, latency: { p95: 1.5x }, compared: 10, min_period: 1m, differences: 3, share: 0.25 }, 'GET /things': never }
limits: { body_bytes: 1MiB, total_timeout: 1m, requests: 7 }
log: { format: json, level: 'warn,switchback::access=info' }
reload: { watch: false, settle: 1s }
";

#[test]
fn every_section_is_read() {
    let config = config(EVERY_SECTION);
    assert_eq!(config.admin.hosts, ["admin.example.com"]);
    assert_eq!(
        config.keys.iter().map(|key| key.expose().as_str()).collect::<Vec<_>>(),
        ["k-0123456789", "from-file"]
    );
    let prefixes: Vec<_> = config.fronts.iter().map(|front| front.prefix.as_str()).collect();
    assert_eq!(prefixes, ["/api/new", ""], "the longest prefix must be tried first");
    let client = &config.clients[0];
    let tokens: Vec<_> =
        client.tokens.iter().map(|(side, token)| (side.as_str(), token.expose().as_str())).collect();
    assert_eq!(tokens, [("old", "01234567"), ("new", "t2345678")]);
    let credentials: Vec<_> =
        client.credentials.iter().map(|(side, token)| (side.as_str(), token.expose().as_str())).collect();
    assert_eq!(credentials, [("old", "t-0123456789abcdef")]);
    assert_eq!(client.company.as_ref().map(|company| company.value.as_str()), Some("42"));
    let AppCredential::Secret(secret) = &client.grant.as_ref().unwrap().credential else {
        panic!("a secret")
    };
    assert_eq!(secret.expose(), "from-file");
    assert_eq!(config.settings.value, serde_json::json!({"a": {"n": 10}, "s": "x"}));
    let phase = |operation: &str| config.phases.for_operation("old", operation);
    assert_eq!(phase("PUT /things"), Phase::Legacy);
    assert_eq!(phase("GET /things/{id}"), Phase::parse("canary", Share::new(0.1)).unwrap());
    assert_eq!(phase("GET /things"), Phase::parse("translated", Share::new(0.01)).unwrap());
    assert_eq!(
        config.masked["phases"]["GET /things/{id}"],
        serde_json::json!({"phase": "canary", "share": 0.1})
    );
    assert_eq!(config.shadow.shares.sample, Share::new(0.5).unwrap());
    assert_eq!((config.shadow.workers, config.shadow.keep), (4, Duration::from_secs(86_400)));
    assert_eq!(config.shadow.priority, Priority::Normal);
    let rollouts = &config.phases.rollouts;
    assert_eq!(rollouts.operations.get("old", "POST /things").cloned().flatten().as_deref(), Some("careful"));
    assert_eq!(rollouts.operations.get("old", "GET /things"), Some(&None), "it has a phase of its own");
    assert_eq!(phase("POST /things"), Phase::Shadow, "the first step");
    let plan = &rollouts.plans["careful"];
    let steps: Vec<_> = plan.steps.iter().map(|step| (step.phase.to_string(), step.period)).collect();
    let day = Duration::from_secs(86_400);
    assert_eq!(
        steps,
        [
            ("shadow".to_owned(), Some(day)),
            ("canary for 0.1 of clients".to_owned(), None),
            ("translated".to_owned(), None)
        ]
    );
    let window = plan.window.as_ref().map(ToString::to_string);
    assert_eq!(window.as_deref(), Some("22:00-04:30 Europe/Berlin on mon, fri, sat, sun"));
    assert_eq!(
        config.masked["rollout"]["careful"],
        serde_json::json!({
            "steps": [{"phase": "shadow", "for": "1d"}, {"phase": "canary", "share": 0.1}, "translated"],
            "when": {"between": "22:00-04:30", "days": "mon, fri, sat, sun", "zone": "Europe/Berlin"},
        })
    );
    let gate = &config.gate;
    assert_eq!(gate.operations.get("old", "GET /things"), Some(&None));
    let policy = gate.operations.get("old", "GET /others").copied().flatten().expect("it is open by default");
    assert_eq!((policy.policy.mismatch_max, policy.policy.rollback_after), (0.02, Some(3)));
    assert_eq!((policy.policy.unsettled_max, policy.policy.latency_max), (0.03, [None, Some(1.5), None]));
    assert_eq!((policy.policy.samples_min, policy.policy.duration_min_ms), (10, 60_000));
    assert_eq!(policy.share, Share::new(0.25).unwrap());
    assert_eq!(config.limits.total_timeout, Duration::from_secs(60));
    assert_eq!(config.limits.requests, 7);
    assert!(!config.reload.watch);
}

#[test]
fn the_masked_dump_shows_everything_but_secrets() {
    let config = config(
        "{key: ${KEY}, store: 'postgres://u:hunter2@db/x', admin: {token: ${TOKEN}}, upstreams: {new: {url: http://127.0.0.1:1}},
          oauth: {authorize_url: https://a/x, token_url: https://a/t, redirect_url: https://a/r},
          clients: [{name: acme, old_token: hunter33, grant: {client_id: i-9, client_secret: hunter4, refresh_token: hunter5}, credentials: {other: hunter66}}]}",
    );
    let text = config.masked.to_string();
    for secret in ["hunter", "k-0123456789", "t-0123456789abcdef", "i-9"] {
        assert!(!text.contains(secret), "{secret} in {text}");
        assert!(!format!("{config:?}").contains("hunter4"));
    }
    assert_eq!(config.masked["clients"][0]["old_token"], "***");
    assert_eq!(config.masked["clients"][0]["credentials"]["other"], "***");
    assert_eq!(config.masked["store"], "postgres://u:***@db/x");
    assert_eq!(config.masked["limits"]["body_bytes"], "10MiB");
}

#[test]
fn calls_are_signed_by_a_secret_that_is_not_displayed() {
    let with = |sign: &str| {
        format!("key: ${{KEY}}\nupstreams: {{ new: {{ url: 'https://a.example/', sign: {{ {sign} }} }} }}\n")
    };
    let config = config(&with("form: hmac, secret: ${TOKEN}, header: x-signature, timestamp: x-time"));
    assert!(config.upstreams[0].sign.is_some());
    assert_eq!(config.masked["upstreams"]["new"]["sign"]["secret"][0], "***");
    assert!(!format!("{config:?}").contains("t-0123456789abcdef"));
    for (wrong, message) in [
        ("", "2: `form: hmac` needs the key `header`: the field with the signature"),
        (", header: 'no header'", "2: this is not the name of a header field"),
    ] {
        let found = found(&with(&format!("form: hmac, secret: ${{TOKEN}}{wrong}")));
        assert!(found.len() == 1 && found[0].ends_with(message), "{found:?}");
    }
}

#[test]
fn all_mistakes_are_found_in_one_run() {
    let text = "\
lisen: 127.0.0.1:1
key: ${NOT_SET}
admin: { listen: 0.0.0.0:9090 }
upstreams:
  new: { url: ftp://x }
limits:
  body_bytes: 10MB
  upstream_timeout: 40s
phases: { default: canary }
";
    assert_eq!(
        found(text),
        [
            "Y020 1: the configuration has no key `lisen`",
            "G001 2: the environment variable `NOT_SET` is not set, or is empty",
            "G004 3: others can reach the admin port on 0.0.0.0:9090, and `admin.token` is not set",
            "G002 5: `ftp` is not supported; use `http` or `https`",
            "G002 7: expected a number of bytes such as `512`, `64KiB`, `10MiB` or `1GiB`",
            "G003 8: `upstream_timeout` (40s) is longer than `total_timeout` (30s)",
            "Y021 9: the phase `canary` needs a share of clients",
        ]
    );
}

#[test]
fn a_mistake_is_shown_with_its_place_and_what_to_do() {
    let outcome =
        parsed("key: ${KEY}\nupstreams: { new: { url: 'https://a' } }\nlimits: { boddy_bytes: 1MiB }\n");
    let text = to_text(&outcome.sources, &outcome.findings, Colour::Never);
    assert!(outcome.config.is_none());
    for part in
        ["error[Y020]", "switchback.yaml:3:11", "limits: { boddy_bytes: **** }", "did you mean `body_bytes`?"]
    {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

/// Returns the rendered findings, excerpts included.
fn said(text: &str) -> String {
    let outcome = parsed(text);
    assert!(outcome.config.is_none(), "{text}");
    let json = switchback_compiler::diagnostic::to_json(&outcome.sources, &outcome.findings);
    format!("{}\n{json}", to_text(&outcome.sources, &outcome.findings, Colour::Never))
}

#[test]
fn findings_do_not_quote_secrets_of_their_line() {
    let text = said("{key: [hunter2, ${KEY}], store: 'postgres://u:hunter3@db/x', upstrems: {}}");
    assert!(!text.contains("hunter"), "{text}");
    assert!(text.contains("${KEY}") && text.contains("upstrems"), "{text}");
    let text = said("{key: hunter2, store: 'postgres://u:hunter3@db/x', listen: ]");
    assert!(!text.contains("hunter") && text.contains("Y001"), "{text}");
}

/// Places a secret wherever a mistake can leave one. The finding must describe the mistake without
/// the secret.
#[test]
fn a_slip_beside_a_secret_shows_the_slip_and_not_the_secret() {
    for (slip, wanted) in [
        ("oauth: { client_secrt: hunter2 }", "client_secrt"),
        ("clients: [{ name: a, clientsecret: hunter2 }]", "clientsecret"),
        ("clients: [{ name: a, clientsecret: { deep: [hunter2, 'hunter3'] } }]", "clientsecret"),
        (
            "clients: [{ name: a, x_token: t1234567, grant: { client_id: i, client_secret: hunter2, client_secret: hunter3 } }]",
            "`client_secret` is given twice",
        ),
        (
            "clients: [{ name: a, x_token: t1234567, grant: { client_id: i, client_secret:hunter2 } }]",
            "client_secret…",
        ),
        (
            "clients: [{ name: a, x_token: t1234567, grant: { client_id: i, client_secret: !hunter2 } }]",
            "tags",
        ),
        ("clients: [{ name: a, x_token: [hunter2] }]", "8 to 4096 visible"),
        ("admin: { token: hunter2 }", "shorter than"),
        ("admin: { listne: 127.0.0.1:1, token: hunter2-hunter2-hunter2 }", "listne"),
        ("admin: { listne: 127.0.0.1:1, token: '${NONE:-hunter2-hunter2-hunter2}' }", "${NONE"),
        ("admin: { listne: 127.0.0.1:1 } # the token was hunter2", "listne"),
        ("upstreams: { new: { url: 'https://me:hunter2@api.example.com/v3' } }", "api.example.com"),
        ("upstreams: { new: { url: 'https://api.example.com/v3?key=hunter2' } }", "api.example.com"),
        (
            "oauth: { authorize_url: 'ftp://x', token_url: 'https://me:hunter2@x/t', redirect_url: 'https://x' }",
            "ftp",
        ),
        ("store: hunter2", "postgres"),
        ("clients: [{ name: a, x_token: 0hunter2 }, { nmae: b, x_token: 'hunter3' }]", "nmae"),
        ("clients: [{ name: a, x_token: hunter2-abc }, { name: b, x_token: hunter2-abc }]", "the same token"),
        ("settings: hunter2", "map"),
        ("clients: [{ name: a, x_token: \"hunter2: and: more }]", "Y001"),
        ("clients: [{ name: a, x_token: 'hunter2, token: hunter3 ]", "Y001"),
        ("admin: { token: hunter2\nlisten: 127.0.0.1:1", "Y001"),
    ] {
        let text = said(&format!("{SMALLEST}{slip}\n"));
        assert!(!text.contains("hunter"), "{slip}\n{text}");
        assert!(text.contains(wanted), "{wanted} for {slip}\n{text}");
    }
    // A token may consist of digits, and YAML has other spellings of numbers.
    let text = said(&format!("{SMALLEST}clients: [{{ name: a, x_token: 0123456789 }}, {{ nmae: b }}]\n"));
    assert!(!text.contains("0123456789"), "{text}");
}

#[test]
fn kinds_of_notices_have_their_names_in_the_configuration() {
    use read::FromYaml as _;
    use switchback_gateway::notices::NoticeKind;
    assert_eq!(NoticeKind::ALL.map(|kind| kind.to_value()), NoticeKind::ALL.map(|kind| kind.name()));
    let text = "notices: { receivers: { a: { url: 'https://hooks.test/hunter2', form: slack }, b: { url: 'http://[::1]:1', secret: whsec_MfKQ } } }";
    let config = config(&format!("{SMALLEST}{text}\n"));
    let receivers = &config.notices.receivers;
    assert_eq!((receivers.len(), receivers[0].kinds.as_slice()), (2, &NoticeKind::ALL[..]));
    assert!(receivers[0].sign.is_none() && receivers[1].sign.is_some());
    let shown = format!("{} {config:?}", config.masked);
    assert!(!shown.contains("hunter2") && !shown.contains("MfKQ"), "{shown}");
}

/// Returns a valid configuration with one mistake.
fn beside_the_smallest(slip: &str) -> String {
    let rest = SMALLEST.lines().filter(|line| line.split(':').next() != slip.split(':').next());
    format!("{}\n{slip}\n", rest.collect::<Vec<_>>().join("\n"))
}

/// Returns the ranges of all values, maps and lists included.
fn values_of(text: &str) -> Vec<std::ops::Range<usize>> {
    fn gather(node: &Node, places: &mut Vec<std::ops::Range<usize>>) {
        places.push(node.span.start as usize..node.span.end as usize);
        match &node.kind {
            Kind::Map(entries) => entries.iter().for_each(|(_, value)| gather(value, places)),
            Kind::Seq(items) => items.iter().for_each(|item| gather(item, places)),
            _ => {}
        }
    }
    let mut findings = Findings::new();
    let tree = yaml::parse(&mut Sources::new(), "whole", text.as_bytes(), &mut findings);
    let mut places = Vec::new();
    gather(&tree.expect("it is YAML"), &mut places);
    places
}

#[test]
fn a_secret_in_the_place_of_any_value_is_in_no_finding() {
    const SECRET: &str = "Zx81Qm2Lp04Nv7Rk55Tb";
    let events = "events: { receivers: { acme: { verify: { secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw }, url: https://acme.test } } }";
    let whole = format!("{}{events}\n", EVERY_SECTION.replace("${TOKEN}", "t-0123456789abcdef"))
        .replace("${KEY}", "k-0123456789")
        .replace("${NUMERIC}", "01234567");
    let mut refused = 0;
    let places = values_of(&whole);
    for place in &places {
        for secret in [
            SECRET.to_owned(),
            format!("'{SECRET}'"),
            format!("https://{SECRET}/{SECRET}"),
            format!("[{SECRET}]"),
        ] {
            let text = format!("{}{secret}{}", &whole[..place.start], &whole[place.end..]);
            let outcome = parsed(&text);
            refused += usize::from(outcome.config.is_none());
            let mut findings = outcome.findings;
            if let Some(config) = &outcome.config {
                findings.append(against_pack(config, &with_a_pack::pack()));
            }
            let json = switchback_compiler::diagnostic::to_json(&outcome.sources, &findings);
            let said = format!("{}\n{json}", to_text(&outcome.sources, &findings, Colour::Never));
            assert!(!said.contains(SECRET), "{}: {said}", &whole[place.clone()]);
        }
    }
    assert!(places.len() > 80 && refused > places.len(), "{refused} of {} values", places.len());
}

#[test]
fn a_wrong_value_is_quoted_only_where_it_looks_like_a_right_one() {
    for slip in [
        "limits: { upstream_timeout: hunter2 }",
        "limits: { upstream_timeout: 15hunter2 }",
        "limits: { body_bytes: hunter2 }",
        "limits: { requests: hunter2 }",
        "listen: hunter2",
        "listen: localhost:hunter2",
        "phases: { default: hunter2 }",
        "phases: { default: { phase: hunter2 } }",
        "phases: { default: { phase: canary, share: hunter2 } }",
        "shadow: { sample: hunter2 }",
        "gate: { default: hunter2 }",
        "gate: { default: { min_period: hunter2, latency: { p50: hunter2 } } }",
        "upstreams: { new: { url: hunter2 } }",
        "upstreams: { new: { url: 'hunter2:8080' } }",
        "upstreams: { new: { url: 'hunter2://api' } }",
        "upstreams: { new: { url: 'ftp://me:hunter2@api' } }",
        "sunset: { old: { sunset: hunter2 } }",
        "log: { level: hunter2 }",
        "log: { level: 'info,hunter2' }",
        "log: { format: hunter2 }",
        "reload: { watch: hunter2 }",
        "fronts: { /: { speaks: new, unknown: hunter2 } }",
    ] {
        let text = said(&beside_the_smallest(slip));
        assert!(!text.contains("hunter"), "{slip}\n{text}");
    }
}

#[test]
fn what_is_known_to_be_harmless_is_quoted() {
    for (slip, wanted) in [
        ("limits: { body_bytes: 10MB }", "body_bytes: 10MB"),
        ("log: { format: jsno }", "`jsno` is not one of the words"),
        ("phases: { default: canary }", "default: canary"),
        ("fronts: { v2: { speaks: new } }", "speaks: new"),
        ("listen: localhost:80", "listen: localhost:80"),
        ("limits: { upstream_timeout: 15sec }", "upstream_timeout: 15sec"),
        ("upstreams: { new: { url: api.example.com/v3 } }", "url: api.example.com/v3"),
        ("phases: { default: shaddow }", "default: shaddow"),
        ("clients: [{ name: 'two words', x_token: t1234567 }]", "name: 'two words'"),
    ] {
        let text = said(&beside_the_smallest(slip));
        assert!(text.contains(wanted), "{wanted} for {slip}\n{text}");
    }
}

#[test]
fn a_variable_that_is_not_set_is_one_finding() {
    for line in [
        "clients: [{ name: a, x_token: '${NONE}' }]",
        "admin: { token: '${NONE}', listen: 127.0.0.1:1 }",
        "listen: '${NONE}'",
        "limits: { body_bytes: '${NONE}' }",
    ] {
        let found = found(&format!("{SMALLEST}{line}\n"));
        assert_eq!(found, ["G001 3: the environment variable `NONE` is not set, or is empty"], "{line}");
    }
}

#[test]
fn a_level_is_one_of_the_levels() {
    let text = said(&format!("{SMALLEST}log: {{ level: verbose }}\n"));
    assert!(
        text.contains("`verbose` is no level; levels are off, error, warn, info, debug, trace"),
        "{text}"
    );
}

#[test]
fn what_contradicts_itself_is_refused() {
    let with = |more: &str| found(&format!("{SMALLEST}{more}\n"));
    for (more, finding) in [
        (
            "listen: 127.0.0.1:9090",
            "G003 3: `listen` and `admin.listen` cannot share the address 127.0.0.1:9090",
        ),
        ("admin: { token: short }", "G002 3: the admin token is shorter than 16 characters"),
        (
            "admin: { token: long-enough-for-a-token, read_token: short }",
            "G002 3: the read token is shorter than 16 characters",
        ),
        (
            "admin: { read_token: long-enough-for-a-token }",
            "G002 3: `admin.read_token` is set, and `admin.token` is not: nobody could change anything",
        ),
        (
            "admin: { token: long-enough-for-a-token, read_token: long-enough-for-a-token }",
            "G002 3: `admin.read_token` is the same as `admin.token`: it would open changes too",
        ),
        ("fronts: {}", "G003 3: without a front no client can speak"),
        ("clients: [{ name: a }]", "Y021 3: a client needs the token by which it is known"),
        (
            "clients: [{ name: a, x_token: t1234567, grant: { client_id: i, client_secret: s } }]",
            "G003 3: a grant cannot be refreshed without the authorization server",
        ),
        (
            "clients: [{ name: a, x_token: t1234567 }, { name: a, x_token: u1234567 }]",
            "G003 3: there are two clients with the name `a`",
        ),
        (
            "clients: [{ name: a, x_token: t1234567, credentials: { y: short } }]",
            "G002 3: a client's token is 8 to 4096 visible ASCII characters",
        ),
        (
            "clients: [{ name: a, x_token: t1234567 }, { name: b, y_token: t1234567 }]",
            "G003 3: the clients `a` and `b` have the same token",
        ),
        (
            "sunset: { old: { deprecated: 2026-02-01, sunset: 2026-01-31 } }",
            "G003 3: the end comes before the deprecation (RFC 9745, section 4)",
        ),
        (
            "clients: [{ name: 'a b', x_token: t1234567 }]",
            "G002 3: a client's name is 1 to 64 letters, digits, `.`, `_` and `-`",
        ),
        (
            "clients: [{ name: a, x_token: short }]",
            "G002 3: a client's token is 8 to 4096 visible ASCII characters",
        ),
        (
            "oauth: { authorize_url: https://a/x, token_url: http://a/t, redirect_url: https://a/r }",
            "G003 3: secrets would travel unencrypted to another machine",
        ),
        ("sunset: { old: {} }", "Y021 3: a sunset needs at least one date"),
        ("brownouts: [ { from: 2026-01-02, until: 2026-01-01 } ]", "G003 3: a brownout ends after it begins"),
        ("brownouts: [ { from: 2026-01-02 } ]", "Y021 3: a brownout needs the key `until`"),
        (
            "clients: [{ name: a, old_token: t1234567, sunset: { at: 2026-01-01, deprecated: 2026-02-01 } }]",
            "G003 3: the end comes before the deprecation (RFC 9745, section 4)",
        ),
        ("limits: { connect_timeout: 0s }", "Y024 3: `connect_timeout` is between 1ms and 1d"),
        ("limits: { header_bytes: 100 }", "Y024 3: `header_bytes` is at least 8KiB"),
        (
            "limits: { held_bytes: 1GiB }",
            "G003 3: `held_bytes` (1GiB) is more than `held_bytes_all` (256MiB)",
        ),
        (
            "limits: { held_bytes_all: 1MiB }",
            "G003 3: `held_bytes` (16MiB) is more than `held_bytes_all` (1MiB)",
        ),
        ("limits: { requests: 0 }", "Y024 3: a whole number from 1 to 1000000 is needed here"),
        (
            "telemetry: { otlp: { endpoint: 'http://127.0.0.1:4318/v1/traces' } }",
            "G002 3: `/v1/traces` is added to the address of the collector, and stands there already",
        ),
        (
            "telemetry: { otlp: { endpoint: 'https://c:4318', headers: { 'a b': c } } }",
            "G002 3: `a b` is no name of a header field",
        ),
        (
            "telemetry: { otlp: { endpoint: 'https://c:4318?x=1' } }",
            "G002 3: the address of a collector has no query",
        ),
        ("telemetry: { otlp: { ratio: 0.1 } }", "Y021 3: `telemetry.otlp` needs the key `endpoint`"),
        (
            "telemetry: { otlp: { endpoint: 'https://c:4318', ratio: 2 } }",
            "G002 3: expected a share such as `0.1` or `10%`, from 0 to 1, not `2`",
        ),
        ("log: { level: switchback=loud }", "G002 3: this is no level and no list of directives"),
        (
            "notices: { receivers: { a: { url: 'https://a.test' } } }",
            "Y021 3: the form `json` is signed and needs the key `secret`",
        ),
        (
            "notices: { receivers: { a: { url: 'https://a.test', secret: whsec_? } } }",
            "G002 3: this is no secret of Standard Webhooks",
        ),
        (
            "notices: { receivers: { a: { url: 'https://a.test', form: slack, secret: whsec_MfKQ } } }",
            "G003 3: the form `slack` is not signed",
        ),
        (
            "notices: { receivers: { a: { url: 'http://a.test', form: slack } } }",
            "G003 3: notices would travel unencrypted to another machine",
        ),
        (
            "notices: { receivers: { a: { url: 'https://a.test', form: teams, events: [] } } }",
            "G003 3: a receiver without events gets no notices",
        ),
        (
            "notices: { receivers: { 'a b': { url: 'https://a.test', form: teams } } }",
            "G002 3: a receiver's name is 1 to 64 letters, digits, `.`, `_` and `-`",
        ),
        ("notices: { retry_first: 10m }", "G003 1: the longest pause is shorter than the first one"),
        ("shadow: { sample: 2 }", "G002 3: expected a share such as `0.1` or `10%`, from 0 to 1, not `2`"),
        ("shadow: { queue_bytes: 1KiB }", "G003 3: `queue_bytes` has room for the two bodies of a pair"),
        ("gate: { default: { mismatch: 0 } }", "Y024 3: `mismatch` is more than 0 and less than 1"),
        ("gate: { default: { unsettled: 1 } }", "Y024 3: `unsettled` is more than 0 and less than 1"),
        (
            "gate: { default: { latency: { p99: 0.5x } } }",
            "G002 3: expected a factor from 1x to 1000x, such as `1.5x`",
        ),
        ("gate: { default: always }", "Y023 3: `always` is not one of the words possible here"),
        ("shadow: { timeout: 0s }", "Y024 3: `timeout` is at least 1ms"),
        (
            "phases: { 'GET /x': { phase: canary, share: 1.5 } }",
            "G002 3: expected a share such as `0.1` or `10%`, from 0 to 1, not `1.5`",
        ),
        (
            "phases: { 'GET /x': { phase: shadow, share: 0.1 } }",
            "G003 3: `share` belongs to the phase `canary`",
        ),
        (
            "phases: { 'GET /x': { phase: canary, check: 0.1 } }",
            "G003 3: `check` belongs to the phase `translated`",
        ),
        ("phases: { 'GET /x': { rollout: a } }", "Y023 3: there is no rollout plan `a`"),
        ("rollout: { a: { steps: [] } }", "Y021 3: the rollout plan `a` has no steps"),
        (
            "rollout: { a: { steps: [shadow, { phase: canary, share: 0.2 }, { phase: canary, share: 20% }] } }",
            "G003 3: the share of `canary` grows from step to step: 0.2 does not follow 0.2",
        ),
        ("rollout: { a: { steps: [translated, shadow] } }", "G003 3: `shadow` does not follow `translated`"),
        (
            "rollout: { a: { steps: [shadow], when: { between: '09:00-09:00' } } }",
            "G002 3: expected two different times of day such as `09:00-17:00`",
        ),
        ("rollout: { a: { steps: [shadow], when: {} } }", "Y021 3: `when` needs the key `between`"),
        ("settings: [1]", "Y022 3: `settings` is a map from names to values"),
        ("tls: { certificate: a.pem }", "Y021 3: `tls` needs the key `private_key`"),
        ("mapping: ''", "G002 3: expected the path of a file or folder"),
        ("mapping: { writable: true }", "Y021 3: `mapping` needs the key `folder`"),
        ("admin: { token: 'file:/run/secrets/empty' }", "G002 3: a secret must not be empty"),
        ("admin: { token: 'file:/nowhere' }", "G001 3: the file `/nowhere` cannot be read: entity not found"),
    ] {
        assert_eq!(with(more), [finding], "{more}");
    }
}

#[test]
fn a_token_over_an_open_line_is_a_warning_only() {
    let outcome = parsed("key: ${KEY}\nupstreams: { new: { url: 'http://10.0.0.1/new' } }");
    assert!(outcome.config.is_some());
    assert_eq!(
        found("key: ${KEY}\nupstreams: { new: { url: 'http://10.0.0.1/new' } }"),
        ["G003 2: tokens travel unencrypted to another machine"]
    );
}

#[test]
fn the_schema_lists_the_keys_that_are_read() {
    let schema = schema();
    assert_eq!(schema["required"], serde_json::json!(["key", "upstreams"]));
    assert_eq!(schema["additionalProperties"], false);
    let limits = &schema["properties"]["limits"];
    assert_eq!(limits["properties"]["body_bytes"]["default"], "10MiB");
    let masked = config(SMALLEST).masked;
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&schema["properties"]), keys(&masked));
    let check = jsonschema::validator_for(&schema).expect("the schema is a schema");
    assert!(check.is_valid(
        &serde_json::json!({"key": "${K}", "upstreams": {"new": {"url": "https://a"}}, "listen": "[::]:1"})
    ));
    assert!(!check.is_valid(&serde_json::json!({"key": "${K}", "upstreams": {}, "lisen": "x"})));
}
