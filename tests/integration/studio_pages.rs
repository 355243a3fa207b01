//! Statements of the studio's pages, each in its situation: calls, enrolled clients, planted
//! differences, rows of the store.

use crate::dual_evidence::copy;
use crate::dual_gate::configured;
use crate::support::dual::{
    ADMIN_TOKEN, Dual, Running, Upstreams, ask, control, eventually, received, request, started,
};
use crate::support::packs::messaging_folder;
use crate::support::raw::{Client, exchange};
use crate::support::serving::Serving;
use crate::support::studio::{
    Session, address, cells, encoded, markup, page, page_with, section, text, texts,
};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;
use switchback_sandbox::{Options, Sandbox};

async fn sandbox() -> Sandbox {
    Sandbox::start(Options::default()).await.expect("a loopback address")
}

/// A gateway between clients of both sides and both services; `clients` are additional entries of
/// the configuration, after the administrator of v2.
async fn both_ways(service: &Sandbox, clients: &str, settings: &str) -> (Dual, Running) {
    let dual = Dual::new();
    // The pack as it is, but that refused operations of v3 are forwarded too.
    let pack = dual.folder.path().join("pack");
    copy(&messaging_folder(), &pack);
    let policy = std::fs::read_to_string(pack.join("pack.yaml")).expect("it was copied");
    assert!(policy.contains("v3: never"), "{policy}");
    std::fs::write(pack.join("pack.yaml"), policy.replace("v3: never", "v3: forward"))
        .expect("it is written");
    let fronts = "fronts: { /v2: { speaks: v2 }, /v3: { speaks: v3 } }";
    let more = format!("{fronts}\nmapping: '{}'\n", pack.display());
    dual.configure(service, Upstreams::of(service), &["administrator"], &more);
    let written = std::fs::read_to_string(dual.file()).expect("it was written");
    let written = written
        .replace("clients:\n", &format!("clients:\n{clients}"))
        .replace("{ agents: { max_chats: 5 } }", settings);
    std::fs::write(dual.file(), written).expect("it is written");
    let gateway = dual.started().await;
    (dual, gateway)
}

/// The report of the messaging pack, as the command line gives it.
fn report() -> Value {
    let mut reporting = Command::new(env!("CARGO_BIN_EXE_switchback"));
    let output = reporting.arg("report").arg(messaging_folder()).args(["--format", "json"]).output();
    serde_json::from_slice(&output.expect("the program runs").stdout).expect("JSON")
}

fn list<'v>(of: &'v Value, name: &str) -> &'v [Value] {
    of[name].as_array().map_or(&[], Vec::as_slice)
}

fn word<'v>(of: &'v Value, name: &str) -> &'v str {
    of[name].as_str().unwrap_or_default()
}

/// The items of the list below this headline, up to the next one.
fn below(markup: &str, headline: &str) -> Vec<String> {
    let part = markup.split("<h3>").find(|part| part.starts_with(&format!("{headline}</h3>")));
    part.map_or_else(Vec::new, |part| texts(part, "li"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_the_pack_and_of_operations_state_what_the_report_states() {
    let service = sandbox().await;
    let settings = "{ agents: { max_chats: 5 }, refusals: { final_from: 2030-01-01 } }";
    let (_dual, gateway) = both_ways(&service, "", settings).await;
    let (pack, report) = (page(&gateway, "/pack").await, report());
    for side in list(&report, "sides") {
        let (name, operations) = (word(side, "side"), list(side, "operations"));
        let answered = operations.iter().filter(|one| word(one, "verdict") != "not possible").count();
        let degraded = operations.iter().filter(|one| one["degraded"] == true).count();
        let sum = format!(
            "{answered} of {} operations are answered, {degraded} of them degraded",
            operations.len()
        );
        assert!(section(&pack, &format!("routes-{name}")).contains(&sum), "{sum}: {pack}");
        let all = page(&gateway, &format!("/operations?side={name}")).await;
        for one in operations {
            let (operation, verdict) = (word(one, "operation"), word(one, "verdict"));
            let (lost, gaps) = (list(one, "lost"), list(one, "without_source"));
            let (least, most) = (&one["calls_min"], &one["calls_max"]);
            let calls = if least == most { most.to_string() } else { format!("{least}–{most}") };
            let mark = if one["degraded"] == true { " degraded" } else { "" };
            let row = cells(&pack, &format!("route-{name}-{}", encoded(operation)));
            let expected = [
                operation,
                &format!("{verdict}{mark}"),
                word(one, "route"),
                word(one, "counterpart"),
                &calls,
                &lost.len().to_string(),
                &gaps.len().to_string(),
                word(one, "place"),
            ];
            assert_eq!(row, expected);
            let row = cells(&all, &format!("operation-{name}-{}", encoded(operation)));
            assert_eq!(row[10], verdict, "{operation}");

            let detail = page(&gateway, &address("operations", name, operation)).await;
            let losses = markup(&detail, "losses");
            for side in ["v2", "v3"] {
                let headline = format!("Fields of {side} that do not reach the other side");
                let on_page = below(losses, &headline);
                let lost: Vec<&Value> = lost.iter().filter(|loss| loss["side"] == side).collect();
                assert_eq!(on_page.len(), lost.len(), "{name} {operation}: {on_page:?}");
                for (text, loss) in on_page.iter().zip(lost) {
                    assert!(text.starts_with(word(loss, "place")), "{text}: {loss}");
                }
            }
            assert_eq!(below(losses, "Fields without a source").len(), gaps.len(), "{name} {operation}");
            assert_eq!(below(losses, "Refused").len(), list(one, "refusals").len(), "{name} {operation}");
            let is_whole = losses.contains("all fields are preserved in both directions");
            let nothing = ["lost", "without_source", "differs", "approximate", "despite"];
            let is_exact = verdict == "exact" && nothing.iter().all(|kind| list(one, kind).is_empty());
            assert_eq!(is_whole, is_exact, "{name} {operation} is {verdict}");
        }
    }

    let shapes = page(&gateway, "/pack?show=shapes").await;
    for shape in list(&report, "shapes") {
        let row = cells(&shapes, &format!("shape-{}", encoded(word(shape, "shape"))));
        let carries = match word(shape, "law") {
            "iso" => "everything",
            "lens" => "one side has more",
            _ => "both sides have more",
        };
        let lost = list(shape, "lost");
        assert_eq!(row[..2], [word(shape, "shape"), carries]);
        match lost.len() {
            0 => assert_eq!(row[2], "–"),
            1..=3 => assert!(lost.iter().all(|loss| row[2].contains(word(loss, "place"))), "{row:?}"),
            more => assert!(row[2].starts_with(&format!("{more} fields")), "{row:?}"),
        }
    }

    let settings = page(&gateway, "/pack?show=settings").await;
    let rows = texts(markup(&settings, "settings"), "tr");
    for start in [
        "agents.max_chats requiredinteger5 set–",
        "refusals.final_fromdate&quot;2030-01-01&quot; set–",
        "ids.as_integersbooleanfalse defaultfalse",
    ] {
        assert!(rows.iter().any(|row| row.starts_with(start)), "{start}: {rows:?}");
    }
    assert_eq!(rows.len(), list(&report, "settings").len() + 1, "with the head: {rows:?}");

    for side in list(&report, "sides") {
        let (name, count) = (word(side, "side"), list(side, "operations").len());
        let contract = page(&gateway, &format!("/pack?show=contract&side={name}")).await;
        let operations = section(&contract, "contract-operations");
        assert!(operations.starts_with(&format!("Operations of {name}{count}")), "{operations}");
        assert_eq!(
            contract.matches(" id=\"contract-").count() - 4,
            count,
            "with two panels and their headlines"
        );
    }
    let source = std::fs::read_to_string(messaging_folder().join("pack.yaml")).expect("it can be read");
    let file = page(&gateway, "/pack?show=files&file=pack.yaml").await;
    let headline = format!("pack.yaml{} lines", source.lines().count());
    assert!(section(&file, "file").contains(&headline), "{headline}: {file}");
}

/// The decisions of a draft are those of `switchback decide`, in its order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_the_pack_lists_the_decisions_of_its_draft() {
    let service = sandbox().await;
    let (dual, gateway) = both_ways(&service, "", "{ agents: { max_chats: 5 } }").await;
    let none = page(&gateway, "/pack?show=decisions").await;
    assert!(section(&none, "decisions").starts_with("No decisions"), "{none}");
    let list = json!({"lines": {}, "decisions": [
        {"weight": "blocker", "traffic": {"calls": 1200, "clients": 3}, "text": "`total` is <always> there",
         "places": [{"file": "contracts/v2.yaml", "line": 7}, null],
         "choices": [{"label": "it is `sum`", "line": "rename: {total: sum}"}],
         "cases": [{"id": "order-total", "operation": "GET /orders", "at": ["$.total"], "proposal": null},
                   {"id": "order-total", "operation": "GET /orders/{id}", "at": [], "proposal": null}]},
        {"weight": "changed", "text": "texts longer than 5 characters", "places": [null, null], "choices": [],
         "cases": [{"id": "order-name", "operation": "Order: name", "at": [], "proposal": null}]},
    ]});
    let pack = dual.folder.path().join("pack");
    std::fs::write(pack.join("DECISIONS.json"), list.to_string()).expect("it is written");
    let decisions = page(&gateway, "/pack?show=decisions").await;
    let whole = section(&decisions, "decisions");
    assert!(whole.contains("1 question open, 1 to review"), "{whole}");
    assert!(whole.contains(&format!("switchback decide {}", pack.display())), "{whole}");
    let row = cells(&decisions, "decision-order-total");
    let expected = [
        "refused until decided order-total",
        "2 operationsGET /orders $.totalGET /orders/{id}",
        "1 200",
        "3",
        "total is &lt;always&gt; there contracts/v2.yaml:7",
        "it is sum: rename: {total: sum}",
    ];
    assert_eq!(row.iter().map(|cell| cell.replace('\u{202f}', " ")).collect::<Vec<_>>(), expected);
    let row = cells(&decisions, "decision-order-name");
    assert_eq!(row[..4], ["passes, but changed", "Order: name", "–", "–"]);
    // No form: decisions are made on the terminal.
    assert!(!markup(&decisions, "decisions").contains("<form"), "{decisions}");
    let found = page(&gateway, "/pack?show=decisions&q=ORDERS/").await;
    assert!(found.contains("id=\"decision-order-total\"") && !found.contains("id=\"decision-order-name\""));
}

/// The calls that a diagram has, in its order: whether it writes, the method, the template of the path.
fn drawn(page: &str) -> Vec<(bool, String, String)> {
    let cards = markup(page, "route").split("flow-card call\">").skip(1);
    let call = |card: &str| {
        let (head, rest) = card.split_once("</p>").expect("a headline");
        let head = text(head);
        let mut words = head.split(' ').map(str::to_owned);
        let hint = text(rest.split_once("</p>").expect("a hint").0);
        (hint.contains("writes"), words.next().unwrap_or_default(), words.next().unwrap_or_default())
    };
    cards.map(call).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_diagram_of_an_operation_has_the_calls_that_are_made() {
    let service = sandbox().await;
    let (_dual, gateway) = started(&service, Upstreams::of(&service), "").await;
    // A gateway that has just started, with one connected client.
    let overview = page_with(&gateway, "/", "Nothing needs attention.").await;
    assert!(section(&overview, "busiest").contains("No request since counting started"), "{overview}");

    let contact = r#"{"name":"Ana","phone":"5511988887777"}"#;
    for (line, operation, body) in [
        ("GET /v2/contacts/1001", "GET /contacts/{id}", ""),
        ("PUT /v2/contacts/1001", "PUT /contacts/{id}", contact),
        (
            "POST /v2/contacts",
            "POST /contacts",
            r#"{"name":"Bea","email":"bea@example.com","phone":"5511977776666"}"#,
        ),
        ("GET /v2/chats/7/messages", "GET /chats/{id}/messages", ""),
    ] {
        control(&service, "DELETE requests", Value::Null).await;
        let answer = ask(&gateway, &service, line, body).await;
        assert!(answer.status < 300, "{line}: {}", answer.text());
        let made = received(&service, "/v3/").await;
        let drawn = drawn(&page(&gateway, &address("operations", "v2", operation)).await);
        assert_eq!(drawn.len(), made.len(), "{operation}: {drawn:?} {made:?}");
        for ((writes, method, template), call) in drawn.iter().zip(&made) {
            assert_eq!((method.as_str(), *writes), (word(call, "method"), method != "GET"), "{operation}");
            let path = word(call, "path").trim_start_matches("/v3");
            let fits = |(part, found): (&str, &str)| part == found || part.starts_with('{');
            let is_alike = template.split('/').count() == path.split('/').count()
                && template.split('/').zip(path.split('/')).all(fits);
            assert!(is_alike, "{operation}: {template} is not {path}");
        }
    }

    // An operation that the pack refuses, with the old service and without it.
    let refused = address("operations", "v2", "GET /chats/{id}/feedback");
    ask(&gateway, &service, "GET /v2/chats/7/feedback", "").await;
    assert_eq!(received(&service, "/v2/chats/7/feedback").await.len(), 1);
    let route = section(&page(&gateway, &refused).await, "route");
    assert!(route.contains("Forwarded to the service of v2without it, refused with 501"), "{route}");
    let alone = Serving::before(&service).await;
    let account = service.credentials().account("administrator").expect("every sandbox has one");
    let answer = exchange(alone.address, request(account, "GET /v2/chats/7/feedback", "", "")).await;
    let head = format!("GET {refused} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let detail = exchange(alone.admin, head).await.expect("the admin port answers").text();
    let route = section(&detail, "route");
    let status = answer.expect("an answer").status;
    assert!(route.contains(&format!("Refused with {status}")) && !route.contains("Forwarded"), "{route}");
}

/// Has v2 alone change a member of its answers to this path.
async fn only_v2(service: &Sandbox, path: &str, field: &str) {
    let rule = json!({"side": "v2", "path": path, "field": field, "change": {"set": "Only v2"}});
    control(service, "POST differences", rule).await;
}

/// The two numbers of a range in percent: `a % to b %`.
fn range(text: &str) -> Vec<f64> {
    text.split([' ', '<', '>']).filter_map(|word| word.parse().ok()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evidence_is_judged_by_the_thresholds_of_the_gate_and_by_fixed_ones_where_it_is_closed() {
    const CONTACT: &str = "GET /contacts/{id}";
    const AGENT: &str = "GET /agents/{id}";
    let service = sandbox().await;
    let more = "phases: { 'GET /contacts/{id}': shadow, 'GET /agents/{id}': shadow }\nshadow: { noise: 0 }\n\
        gate: { 'GET /contacts/{id}': { mismatch: 0.9, unsettled: 0.3, compared: 1000, min_period: 30d, differences: 7 } }\n";
    let (_dual, gateway) = started(&service, Upstreams::of(&service), more).await;
    let agents = ask(&gateway, &service, "GET /v2/agents", "").await;
    let agents: Value = serde_json::from_slice(&agents.body).expect("JSON");
    let agent = format!("GET /v2/agents/{}", agents[0]["id"]);
    let is_two_of_three = |counts: &Value| counts["different"] == 2 && counts["equal"] == 1;
    for (operation, line) in [(CONTACT, "GET /v2/contacts/1001"), (AGENT, agent.as_str())] {
        assert_eq!(ask(&gateway, &service, line, "").await.status, 200);
        gateway.reported(operation, 1).await;
        only_v2(&service, operation.trim_start_matches("GET "), "$.name").await;
        for _ in 0..2 {
            assert_eq!(ask(&gateway, &service, line, "").await.status, 200);
        }
        gateway.reported_when(operation, is_two_of_three).await;
    }

    // At most 98.3 %: with any higher rate three of three would differ in more than 95 of 100 cases.
    for (operation, proof) in [(CONTACT, "not enough evidence"), (AGENT, "above the threshold")] {
        let path = address("operations", "v2", operation);
        let evidence = section(&page_with(&gateway, &path, "Compared").await, "evidence");
        for part in [
            proof,
            "Compared3 answers, since",
            "Different2, with unsettled ones 66.7 %, truly at most 98.3 % (95.0 % sure)",
        ] {
            assert!(evidence.contains(part), "{operation}: {part} in {evidence}");
        }
        let list = page_with(&gateway, "/operations", "66.7 %").await;
        let row = cells(&list, &format!("operation-v2-{}", encoded(operation)));
        assert_eq!(row[7..9], ["66.7 %", "98.3 %"], "{operation}");
        let list = page_with(&gateway, "/differences", operation.trim_start_matches("GET ")).await;
        let row = cells(&list, &format!("difference-v2-{operation}"));
        assert_eq!(row[1..5], ["shadow", "3", "2", "98.3 %"], "{operation}");
        assert!(row[5].starts_with("value $.name, "), "{row:?}");
        let detail = page_with(&gateway, &address("differences", "v2", operation), "id=\"counts\"").await;
        let counts = section(&detail, "counts");
        assert!(counts.contains("3 answers compared since") && counts.contains("2 different."), "{counts}");
        assert!(section(&detail, "difference-$.name-value").contains("2 calls of 3, last"), "{detail}");
        assert_eq!(texts(markup(&detail, "samples"), "summary").len(), 2, "{detail}");
    }
    let overview = page_with(&gateway, "/", "differs too much").await;
    assert!(section(&overview, "attention").contains("2 of 3 answers."), "{overview}");
    let row = |operation: &str| format!("id=\"todo-above-v2-{}\"", encoded(operation));
    assert!(overview.contains(&row(AGENT)) && !overview.contains(&row(CONTACT)), "{overview}");

    let detail = page(&gateway, &address("operations", "v2", AGENT)).await;
    assert!(section(&detail, "evidence").contains("Disabled for this operation"), "{detail}");
    let detail = page(&gateway, &address("operations", "v2", CONTACT)).await;
    let rows = texts(markup(&detail, "evidence"), "tr");
    let now = |start: &str| {
        let row = rows.iter().find_map(|row| row.strip_prefix(start));
        row.unwrap_or_else(|| panic!("no {start}: {rows:?}")).to_owned()
    };
    assert_eq!(now("Comparisons in this phase"), "≥ 1 0003");
    assert!(now("Time in this phase").starts_with("≥ 30 d"), "{rows:?}");
    assert_eq!(now("Rolled back after differences"), "72");
    assert!(now("Unsettled answers, true rate (95.0 % sure)").starts_with("≤ 30.0 %0 % to "), "{rows:?}");
    let wrong = now("Different answers, unsettled ones included, true rate (95.0 % sure)");
    let wrong = range(wrong.strip_prefix("≤ 90.0 %").expect("what is demanded"));
    let evidence = section(&detail, "evidence");
    let said = evidence.split("2 of 3 differed, the true rate is between ").nth(1).expect("the decision");
    let said = range(said.split_inclusive('%').take(2).collect::<String>().as_str());
    assert_eq!((wrong.len(), said.len()), (2, 2), "{rows:?} {evidence}");
    assert!(wrong.iter().zip(&said).all(|(a, b)| (a - b).abs() < 0.1), "{wrong:?} {said:?}");

    // The objection to a transition that an operator makes.
    let session = Session::open(&gateway).await;
    let moving = |operation| format!("{}/move?phase=translated", address("operations", "v2", operation));
    let objected = session.page(&gateway, &moving(AGENT)).await;
    assert!(section(&objected, "objection").contains("2 of 3 compared answers differ"), "{objected}");
    let free = session.page(&gateway, &moving(CONTACT)).await;
    assert!(free.contains("Effects") && !free.contains("id=\"objection\""), "{free}");
    for (operation, status) in [(AGENT, 409), (CONTACT, 200)] {
        let asked = json!({"operation": operation, "phase": "translated"});
        assert_eq!(gateway.admin("POST /api/phases", &asked).await.0, status, "{operation}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn differences_that_a_page_does_not_list_are_counted() {
    let service = sandbox().await;
    let more = "phases: { 'GET /contacts/{id}': shadow }\nshadow: { noise: 0 }\n";
    let (_dual, gateway) = started(&service, Upstreams::of(&service), more).await;
    for wave in 1..=2 {
        for member in 0..35 {
            only_v2(&service, "/contacts/{id}", &format!("$.added_{wave}_{member}")).await;
        }
        assert_eq!(ask(&gateway, &service, "GET /v2/contacts/1001", "").await.status, 200);
        gateway.reported_when("GET /contacts/{id}", |counts| counts["different"] == wave).await;
        control(&service, "DELETE differences", Value::Null).await;
    }
    let path = address("operations", "v2", "GET /contacts/{id}");
    let findings = page_with(&gateway, &path, "id=\"finding-19\"").await;
    let findings = markup(&findings, "findings");
    assert_eq!(texts(findings, "tr").len(), 21, "with the head: {findings}");
    assert!(text(findings).ends_with("50 further differences."), "{findings}");
    let path = address("differences", "v2", "GET /contacts/{id}");
    let all = page_with(&gateway, &path, "class=\"panel difference\"").await;
    assert_eq!(all.matches("class=\"panel difference\"").count(), 60, "{all}");
    assert!(text(&all).contains("10 rarer differences not shown"), "{all}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_clients_have_pages_of_their_own_and_count_what_they_leave_out() {
    const CLIENTS: usize = 120;
    let service = sandbox().await;
    let name = |number: usize| format!("c{number:03}");
    let mut more = String::new();
    for number in 0..CLIENTS {
        let _ = writeln!(more, "- {{ name: {0}, v2_token: token-of-client-{0} }}", name(number));
    }
    more.push_str("phases: { 'GET /chats': legacy }\n");
    let (_dual, gateway) = started(&service, Upstreams::of(&service), &more).await;
    for number in 0..CLIENTS {
        let times = if number == 7 { 3 } else { 1 };
        for _ in 0..times {
            let token = format!("token-of-client-{}", name(number));
            let head = format!(
                "GET /v2/chats HTTP/1.1\r\nhost: service.test\r\nx-authorization: Bearer {token}\r\n\r\n"
            );
            assert_eq!(exchange(gateway.address, head).await.expect("an answer").status, 401);
        }
    }
    let asked = [
        "GET /v2/chats",
        "GET /v2/chats/7",
        "GET /v2/chats/7/messages",
        "GET /v2/chats/7/feedback",
        "GET /v2/agents",
        "GET /v2/agents/1",
        "GET /v2/contacts",
        "GET /v2/contacts/1001",
        "PUT /v2/contacts/1001",
        "POST /v2/contacts",
        "DELETE /v2/contacts/1001",
        "POST /v2/agents",
        "PUT /v2/agents/1",
        "POST /v2/chats/7/messages",
    ];
    for line in asked {
        let body = if line.starts_with("GET") { "" } else { "{}" };
        ask(&gateway, &service, line, body).await;
    }

    let path = address("operations", "v2", "GET /chats");
    let callers = page_with(&gateway, &path, "101 further clients").await;
    assert_eq!(callers.matches("<tr id=\"caller-").count(), 20, "{callers}");
    let overview = page_with(&gateway, "/", "6 further operations").await;
    assert_eq!(overview.matches("<tr id=\"busy-").count(), 8, "{overview}");
    let phases = ["legacy", "shadow", "canary", "translated", "forwarded"];
    let of = |phase: &str| cells(&overview, &format!("progress-{phase}"))[1].parse::<usize>();
    let operations = phases.map(|phase| of(phase).expect("a number"));
    let all = list(&report()["sides"][0], "operations").len();
    assert_eq!((operations[..3].to_vec(), operations.iter().sum::<usize>()), (vec![1, 0, 0], all));

    let mark = "12 of 14 operations are columns, by number of calls.";
    let first = page_with(&gateway, "/clients", mark).await;
    let counted = |page: &str| {
        ["client-", "usage-c", "usage-administrator"]
            .map(|id| page.matches(&format!("<tr id=\"{id}")).count())
    };
    assert_eq!(counted(&first), [100, 99, 1]);
    let row = cells(&first, "usage-c007");
    assert_eq!((row[0].as_str(), row[2].as_str()), ("c007", "3"));
    assert_eq!(row[3..], ["–"; 11]);
    assert!(row[1].ends_with(" ago") || row[1] == "now", "{row:?}");
    assert_eq!(cells(&first, "usage-administrator")[2..], ["1"; 12]);
    assert!(text(&first).contains("Page 1 of 2, 100 of 121"), "{first}");
    for (query, rows) in [
        ("?callers=2", [100, 21, 0]),
        ("?page=2", [21, 99, 1]),
        ("?page=2&callers=2", [21, 21, 0]),
        ("?q=c00", [10, 99, 1]),
        ("?caller=c00", [100, 10, 0]),
        ("?outcome=brownout", [100, 0, 0]),
    ] {
        assert_eq!(counted(&page(&gateway, &format!("/clients{query}")).await), rows, "{query}");
    }
    let none = page(&gateway, "/clients?q=nobody&caller=nobody").await;
    assert_eq!((counted(&none), none.matches("No matches.").count()), ([0, 0, 0], 2), "{none}");
    assert!(!first.contains("No matches."), "{first}");
    let further = page(&gateway, "/clients?operations=2").await;
    assert!(section(&further, "usage").contains("2 of 14 operations are columns"), "{further}");
    assert_eq!(cells(&further, "usage-administrator")[2..], ["1"; 2]);
    assert_eq!(cells(&further, "usage-c007")[2..], ["–"; 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_and_the_last_call_of_a_client_have_their_times() {
    let service = sandbox().await;
    let dual = Dual::new();
    let (app, clock) = configured(&dual, &service, "phases: { 'GET /chats': legacy }\n").await;
    let account = service.credentials().account("administrator").expect("every sandbox has one");
    for pause in [3_600, 0] {
        let answer = exchange(app.addresses().clients, request(account, "GET /v2/chats", "", "")).await;
        assert_eq!(answer.expect("an answer").status, 200);
        clock.advance(Duration::from_secs(pause));
    }
    let head = format!(
        "GET /clients/administrator HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ADMIN_TOKEN}\r\n\r\n"
    );
    let mut row = Vec::new();
    eventually("both calls are counted", async || {
        clock.advance(Duration::from_secs(1));
        let mut client = Client::connect(app.addresses().admin).await;
        client.send(head.clone()).await;
        let page = client.answer().await.expect("the admin port answers").text();
        let markup = page.split("<tr id=\"call-v2-GET /chats-forwarded\"").nth(1).unwrap_or_default();
        row = markup.split("</tr>").next().unwrap_or_default().split("<td").map(str::to_owned).collect();
        row.get(3).is_some_and(|cell| cell.ends_with(">2</td>"))
    })
    .await;
    assert!(row[4].contains("datetime=\"2026-01-01T00:00:00Z\""), "{row:?}");
    assert!(row[5].contains("datetime=\"2026-01-01T01:00:00Z\""), "{row:?}");
    app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_operation_is_forwarded_for_clients_with_a_credential_for_its_service() {
    let service = sandbox().await;
    let account = service.credentials().account("administrator").expect("every sandbox has one");
    let clients = format!(
        "- {{ name: with, v3_token: v3-token-of-the-one, credentials: {{ v2: '{0}', v3: '{1}' }} }}\n\
         - {{ name: without, v3_token: v3-token-of-the-other, credentials: {{ v2: '{0}' }} }}\n",
        account.v2_token, account.access_token
    );
    let (_dual, gateway) = both_ways(&service, &clients, "{ agents: { max_chats: 5 } }").await;
    let target = "/v3/agents/profile";
    for (name, token, is_forwarded) in
        [("with", "v3-token-of-the-one", true), ("without", "v3-token-of-the-other", false)]
    {
        control(&service, "DELETE requests", Value::Null).await;
        let head =
            format!("GET {target} HTTP/1.1\r\nhost: service.test\r\nauthorization: Bearer {token}\r\n\r\n");
        let answer = exchange(gateway.address, head).await.expect("an answer");
        let made = received(&service, target).await;
        assert_eq!(made.len(), usize::from(is_forwarded), "{name}: {} {}", answer.status, answer.text());
        let tried = json!({"request": {"method": "GET", "target": target}, "client": name});
        let (_, ran) = gateway.admin("POST /api/playground", &tried).await;
        assert_eq!(
            (&ran["forwarded"], &ran["needs_credential"]),
            (&json!(is_forwarded), &json!(false)),
            "{ran}"
        );
        assert_eq!(ran["answered_by"] == "plans", !is_forwarded, "{ran}");
    }
    let tried = json!({"request": {"method": "GET", "target": target}});
    let (_, ran) = gateway.admin("POST /api/playground", &tried).await;
    assert_eq!((&ran["forwarded"], &ran["needs_credential"]), (&json!(true), &json!(true)), "{ran}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_beyond_those_that_a_page_reads_are_announced() {
    let service = sandbox().await;
    let dual = Dual::new();
    dual.configure(&service, Upstreams::of(&service), &["administrator"], "");
    let gateway = dual.start().await;
    let before = page_with(&gateway, "/history", "id=\"history\"").await;
    assert!(!before.contains("id=\"older\""), "{before}");
    let store = sqlx::SqlitePool::connect(&dual.store).await.expect("the file opens");
    let numbers = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n <";
    let rows = format!(
        "INSERT INTO history (id, at_ms, kind, subject, who, detail, change) {numbers} 2001) \
         SELECT 'h' || n, n, 'reload', 'pack', 'Ada', '', 0 FROM numbers"
    );
    let moves = format!(
        "INSERT INTO phase_moves (id, side, operation, moved_from, moved_to, moved_by, at_ms, evidence, change) \
         {numbers} 15) SELECT 'm' || n, 'v2', 'GET /chats', 'legacy', 'shadow', 'operator', n, '', 0 FROM numbers"
    );
    for (sql, count) in [(rows, 2001), (moves, 15)] {
        let written = sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&store).await.expect("written");
        assert_eq!(written.rows_affected(), count);
    }
    let history = page_with(&gateway, "/history", "100 of 2015").await;
    let older = section(&history, "older");
    assert!(older.contains("the newest 2 000 each are listed"), "{older}");
    assert!(text(&history).contains("Page 1 of 21, 100 of 2015"), "{history}");
    let all = page(&gateway, "/history/export.csv").await;
    assert!(all.lines().count() > 2001 + 15, "the download has more: {}", all.lines().count());

    let detail = page_with(&gateway, &address("operations", "v2", "GET /chats"), "older transitions").await;
    let transitions = markup(&detail, "transitions");
    assert_eq!(texts(transitions, "tr").len(), 13, "with the head: {transitions}");
    assert!(text(transitions).contains("3 older transitions among the newest 2 000"), "{transitions}");
}
