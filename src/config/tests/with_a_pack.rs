//! Configurations against the facts of a pack.

use super::*;
use crate::config::against_pack::{SettingFacts, SettingType, SideFacts, WaitFacts};
use switchback_compiler::diagnostic::Severity;
use switchback_plan::ClientAuth;

pub(super) fn pack() -> PackFacts {
    let side = |name: &str, is_served| SideFacts {
        name: name.to_owned(),
        hosts: Vec::new(),
        operations: vec!["GET /things".to_owned(), "GET /things/{id}".to_owned()],
        events: Vec::new(),
        waits: Vec::new(),
        is_served,
        has_scope: true,
    };
    let setting = |name: &str, kind, is_required, values: &[&str]| SettingFacts {
        name: name.to_owned(),
        kind,
        is_required,
        read_by: vec!["old".to_owned()],
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        about: "What it is for.".to_owned(),
    };
    PackFacts {
        sides: [side("old", true), side("new", false)],
        client_auth: None,
        settings: vec![
            setting("a.limit", SettingType::Integer, true, &[]),
            setting("b", SettingType::String, false, &[]),
            setting("a.form", SettingType::String, false, &["short", "long"]),
            setting("a.until", SettingType::Date, false, &[]),
        ],
    }
}

fn mismatches(more: &str) -> Vec<String> {
    let config = config(&format!("{SMALLEST}{more}\n"));
    against_pack(&config, &pack()).in_order().iter().map(|finding| finding.message.clone()).collect()
}

#[test]
fn a_configuration_that_fits_has_no_findings() {
    let more = "settings: { a: { limit: 1 }, b: x }\nphases: { 'GET /things': translated }";
    assert_eq!(mismatches(more), Vec::<String>::new());
}

/// Events are matched before the fronts, so a front may be at `/`; operations that become
/// unreachable are reported.
#[test]
fn events_may_come_within_a_front_where_no_operation_is() {
    let found = |front: &str, path: &str| {
        let secret = "{ secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw }";
        mismatches(&format!(
            "settings: {{ a: {{ limit: 1 }} }}\nfronts: {{ {front}: {{ speaks: old }} }}\n\
             events: {{ receivers: {{ acme: {{ {path} verify: {secret}, url: 'https://acme.test' }} }} }}"
        ))
    };
    assert_eq!(found("/", ""), Vec::<String>::new());
    assert_eq!(found("/old", "path: /old/hooks,"), Vec::<String>::new());
    let taken = |path: &str, operation: &str| {
        vec![format!("`{path}` is the address of `{operation}` too, whose calls would be taken for events")]
    };
    assert_eq!(found("/old", "path: /old/things,"), taken("/old/things", "GET /things"));
    assert_eq!(found("/", "path: /things/hooks,"), taken("/things/hooks", "GET /things/{id}"));
}

/// Jobs that may exceed the request timeout cause a warning at the place of the limit.
#[test]
fn a_wait_beyond_the_end_of_a_request_is_said_with_its_line() {
    let found = |limits: &str| {
        let config = config(&format!("{SMALLEST}settings: {{ a: {{ limit: 1 }} }}\n{limits}\n"));
        let mut pack = pack();
        let longest = std::time::Duration::from_secs(60);
        let (operation, route) = ("GET /things".to_owned(), "things.map.yaml:7".to_owned());
        pack.sides[0].waits = vec![WaitFacts { operation, route, longest }];
        against_pack(&config, &pack)
            .in_order()
            .iter()
            .map(|f| (f.message.clone(), f.severity == Severity::Error))
            .collect::<Vec<_>>()
    };
    let what = "`GET /things` waits 60s for the service (things.map.yaml:7), and a request ends after";
    let said = |ends: &str| vec![(format!("{what} {ends} (`limits.total_timeout`)"), false)];
    assert_eq!(found(""), said("30s"));
    assert_eq!(found("limits: { total_timeout: 45s }"), said("45s"));
    assert_eq!(found("limits: { total_timeout: 60s }"), []);
    // The limit of the operation, else of the front; of several fronts, the shortest.
    let fronts = |old: &str, other: &str| {
        format!("fronts: {{ /old: {{ speaks: old, {old} }}, /other: {{ speaks: old, {other} }} }}")
    };
    let of_operation = "operation_limits: { GET /things: { total_timeout: 1m } }";
    assert_eq!(found(&fronts(of_operation, "limits: { total_timeout: 2m }")), []);
    let said =
        |ends: &str, key: &str| vec![(format!("{what} {ends} (`fronts./old.{key}.total_timeout`)"), false)];
    assert_eq!(
        found(&fronts("limits: { total_timeout: 20s }", "limits: { total_timeout: 2m }")),
        said("20s", "limits")
    );
    let short = "limits: { total_timeout: 2m }, operation_limits: { GET /things: { total_timeout: 10s } }";
    assert_eq!(found(&fronts(short, of_operation)), said("10s", "operation_limits.GET /things"));
}

/// With both fronts, a phase in which the side's own service answers must name its side.
#[test]
fn where_clients_speak_both_sides_a_phase_says_which_one_it_is_for() {
    let both = "settings: { a: { limit: 1 } }\nfronts: { /old: { speaks: old }, /new: { speaks: new } }\n\
        upstreams: { new: { url: 'http://a' }, old: { url: 'http://b' } }";
    let pack = || {
        let mut pack = pack();
        pack.sides[1].is_served = true;
        pack.sides[1].operations.push("GET /new/things".to_owned());
        pack
    };
    let found = |phases: &str| -> Vec<String> {
        let smallest = SMALLEST.lines().filter(|line| !line.starts_with("upstreams"));
        let text = smallest.chain(both.lines()).chain([phases]).collect::<Vec<_>>().join("\n");
        let findings = against_pack(&config(&text), &pack());
        findings.in_order().iter().map(|finding| finding.message.clone()).collect()
    };
    for (phases, message) in [
        (
            "phases: { 'GET /things': shadow }",
            "`GET /things` does not say which of `old` and `new` is meant to be `shadow`",
        ),
        (
            "phases: { default: legacy }",
            "`default` does not say which of `old` and `new` is meant to be `legacy`",
        ),
    ] {
        assert_eq!(found(phases), [message], "{phases}");
    }
    for fine in [
        "phases: { 'old GET /things': shadow, 'new default': legacy }",
        "phases: { 'GET /new/things': shadow }",
        "phases: { default: translated, 'GET /things': translated }",
    ] {
        assert_eq!(found(fine), Vec::<String>::new(), "{fine}");
    }
    let phases = config(&format!("{SMALLEST}phases: {{ 'old GET /things': shadow }}\n")).phases;
    assert_eq!(phases.for_operation("old", "GET /things"), Phase::Shadow);
    assert_eq!(
        phases.for_operation("new", "GET /things"),
        Phase::default(),
        "clients of the other side are spared"
    );
}

#[test]
fn a_setting_is_demanded_only_where_clients_speak_a_side_that_reads_it() {
    let mut pack = pack();
    pack.sides[1].is_served = true;
    let found = |fronts: &str| -> Vec<String> {
        let smallest = SMALLEST.lines().filter(|line| !line.starts_with("upstreams"));
        let upstreams = "upstreams: { new: { url: 'http://a' }, old: { url: 'http://b' } }";
        let text = smallest.chain([upstreams, fronts]).collect::<Vec<_>>().join("\n");
        let findings = against_pack(&config(&text), &pack);
        findings.in_order().iter().map(|finding| finding.message.clone()).collect()
    };
    let demanded = ["the pack needs the setting `a.limit`"];
    assert_eq!(found("fronts: { /new: { speaks: new } }"), Vec::<String>::new());
    assert_eq!(found("fronts: { /new: { speaks: new }, /old: { speaks: old } }"), demanded);
    assert_eq!(found(""), demanded, "clients speak the old side where nothing is said");
}

#[test]
fn a_setting_is_blamed_where_it_stands_and_the_nearest_one_is_offered() {
    let text = format!("{SMALLEST}settings:\n  a:\n    limit: 1\n    from: long\n");
    let findings = against_pack(&config(&text), &pack());
    let finding = &findings.in_order()[0];
    assert_eq!(text.get(finding.span.start as usize..finding.span.end as usize), Some("long"));
    let help = finding.help.as_ref().map(ToString::to_string);
    assert_eq!(help.as_deref(), Some("did you mean `a.form`?"));
}

#[test]
fn what_the_pack_does_not_have_is_refused() {
    let settings = "settings: { a: { limit: 1 } }";
    for (more, message) in [
        ("fronts: { /x: { speaks: olde } }", "`olde` is not a side of the pack"),
        ("fronts: { /x: { speaks: old, backend: old } }", "a front's backend is the other side"),
        ("clients: [{ name: a, odl_token: t1234567 }]", "`odl` is not a side of the pack"),
        (
            "clients: [{ name: a, new_token: t1234567 }]",
            "no front speaks `new`, so this token selects nobody",
        ),
        ("phases: { 'GET /thing': translated }", "the pack has no operation `GET /thing`"),
        ("phases: { 'old GET /thing': translated }", "`old` has no operation `GET /thing`"),
        ("phases: { 'olde GET /things': translated }", "`olde` is not a side of the pack"),
        ("gate: { 'GET /thing': never }", "the pack has no operation `GET /thing`"),
        (
            "phases: { 'GET /things': legacy }",
            "the phase `legacy` forwards to the upstream of `old`, and there is none",
        ),
        ("sunset: { v1: { sunset: 2026-01-01 } }", "`v1` is not a side of the pack"),
        (
            "brownouts: [ { from: 2026-01-01, until: 2026-01-02, operations: ['GET /thing'] } ]",
            "`old` has no operation `GET /thing`",
        ),
        (
            "brownouts: [ { from: 2026-01-01, until: 2026-01-02, side: new } ]",
            "no front speaks `new`, so nothing of it can end",
        ),
        (
            "brownouts: [ { from: 2026-01-01, until: 2026-01-02, clients: [nobody] } ]",
            "no client `nobody` is configured; it may have been added at run time",
        ),
        (
            "clients: [{ name: a, old_token: t1234567, sunset: { at: 2026-01-01, side: olde } }]",
            "`olde` is not a side of the pack",
        ),
    ] {
        assert_eq!(mismatches(&format!("{settings}\n{more}")), [message], "{more}");
    }
    assert_eq!(mismatches("settings: { a: { limit: x } }"), ["the setting `a.limit` is a whole number"]);
    assert_eq!(
        mismatches("settings: { a: { limit: 1, form: lon, until: 2027-02-30 } }"),
        [
            "the setting `a.form` is one of `short`, `long`",
            "the setting `a.until` is a day, written `YYYY-MM-DD`"
        ]
    );
    assert_eq!(
        mismatches("settings: { a: { limit: 1, form: long, until: '2027-02-28' }, b: null }"),
        Vec::<String>::new()
    );
    assert_eq!(mismatches("settings: { b: x }"), ["the pack needs the setting `a.limit`"]);
    assert_eq!(mismatches("settings: { a: { limit: 1 }, c: 1 }"), ["the pack reads no setting `c`"]);
    let reversed = mismatches(&format!("{settings}\nfronts: {{ /new: {{ speaks: new }} }}"));
    assert_eq!(
        reversed,
        ["calls of `new` are translated to `old`, which has no upstream", "the pack cannot serve `new`"]
    );
}

#[test]
fn a_client_of_the_new_side_needs_a_credential_for_the_old_one() {
    let mut both = pack();
    both.sides[1].is_served = true;
    both.sides[0].has_scope = false;
    let said = |pack: &PackFacts, client: &str| {
        let text = format!(
            "key: ${{KEY}}\nupstreams: {{ new: {{ url: http://127.0.0.1:1 }}, old: {{ url: http://127.0.0.1:2 }} }}\n\
             settings: {{ a: {{ limit: 1 }} }}\nfronts: {{ /old: {{ speaks: old }}, /new: {{ speaks: new }} }}\n\
             oauth: {{ authorize_url: https://a/x, token_url: https://a/t, redirect_url: https://a/r }}\n\
             clients:\n- {{ name: a, {client} }}\n"
        );
        let findings = against_pack(&config(&text), pack);
        let shown = |finding: &&switchback_compiler::diagnostic::Finding| {
            format!("{} {}", finding.severity.word(), finding.message)
        };
        findings.in_order().iter().map(shown).collect::<Vec<_>>()
    };
    let grant = "grant: { client_id: i, client_secret: s }";
    assert_eq!(said(&both, "new_token: t1234567, credentials: { old: u1234567 }"), [""; 0]);
    assert_eq!(
        said(
            &both,
            &format!("old_token: t1234567, new_token: t1234567, {grant}, credentials: {{ old: t1234567 }}")
        ),
        [""; 0]
    );
    assert_eq!(said(&both, "old_token: t1234567, company: 42"), [""; 0]);
    both.client_auth = Some(ClientAuth::PrivateKeyJwt);
    assert_eq!(
        said(&both, &format!("old_token: t1234567, {grant}")),
        ["error the grant of `a` needs the key `client_key`"]
    );
    both.client_auth = None;
    for (client, findings) in [
        (
            "new_token: t1234567".to_owned(),
            ["warning nothing here says what calls of `a` to `old` go out with"],
        ),
        (
            "new_token: t1234567, credentials: { odl: u1234567, old: x1234567 }".to_owned(),
            ["error `odl` is not a side of the pack"],
        ),
        (
            "new_token: t1234567, company: 42, credentials: { old: u1234567 }".to_owned(),
            ["error `old` has no secondary accounts, so no call to it can be for one"],
        ),
        (
            format!("old_token: t1234567, {grant}, credentials: {{ new: u1234567 }}"),
            ["error calls to `new` go out with the grant, or with this token, not with both"],
        ),
    ] {
        assert_eq!(said(&both, &client), findings, "{client}");
    }
}
