//! Asynchronous jobs of a service, through the real binary: the manual's pack, in front of a
//! scripted service. Verifies the client's view, and the calls to the service: never a second
//! write, and never more calls than the bound.

use crate::manual;
use crate::support::program::Program;
use crate::support::raw::{Act, Answer, Client, Seen, Upstream, answer, exchange};
use crate::support::serving;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use switchback_engine::translate::{Event, FailKind, Next, Reply, Request, Run, Settings};
use switchback_gateway::store::seal::SealingKey;
use switchback_json::Limits;
use switchback_plan::{Effect, Pack, SideId};
use tempfile::TempDir;

/// The states of the job, call by call; the last one is repeated.
fn service(polls: Vec<Act>) -> impl Fn(usize, &Seen) -> Act + Send + Sync + 'static {
    let asked = AtomicUsize::new(0);
    move |at, seen| {
        if seen.line().starts_with("POST /token") {
            let body = json!({"token_type": "Bearer", "expires_in": 3600, "access_token": format!("access-{at}"), "refresh_token": format!("refresh-{at}")});
            return Act::json(200, &body.to_string());
        }
        if seen.line().starts_with("POST /exports") {
            let fields = "content-type: application/json\r\njob: j7\r\n";
            return Act::Reply(answer(202, fields, r#"{"id":"j7","status":"queued","url":null}"#));
        }
        assert!(seen.line().starts_with("GET /jobs/j7?"), "{}", seen.line());
        polls[asked.fetch_add(1, Ordering::Relaxed).min(polls.len() - 1)].clone()
    }
}

fn job(status: &str) -> String {
    json!({"id": "j7", "status": status, "url": (status == "done").then_some("/e/7")}).to_string()
}

fn says(status: &str) -> Act {
    Act::json(200, &job(status))
}

/// A gateway before such a service.
struct Shop {
    gateway: SocketAddr,
    admin: SocketAddr,
    service: Upstream,
    _program: Program,
    folder: TempDir,
}

impl Shop {
    async fn asking(times: &str, polls: Vec<Act>) -> Shop {
        Shop::with(times, "", service(polls)).await
    }

    /// `times` take the place of the manual's; `more` is lines of the configuration.
    async fn with(
        times: &str,
        more: &str,
        script: impl Fn(usize, &Seen) -> Act + Send + Sync + 'static,
    ) -> Shop {
        let service = Upstream::answering(script).await;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pack = folder.path().join("pack");
        std::fs::create_dir_all(pack.join("contracts")).expect("it is made");
        for (name, text) in manual::shop() {
            // Its examples go by its own times.
            let text = text.split("examples:\n").next().expect("there is a first part");
            let text = text.replace("every: 1s\n          within: 3s", times);
            std::fs::write(pack.join(name), text).expect("it is written");
        }
        let file = folder.path().join("switchback.yaml");
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{at}/store.db\nkey: ${{TEST_KEY}}\n\
             mapping: {at}/pack\nfronts: {{ /old: {{ speaks: v1, unknown: refuse }} }}\n\
             upstreams: {{ v2: {{ url: 'http://{v2}' }} }}\n\
             oauth: {{ authorize_url: 'http://{v2}/authorize', token_url: 'http://{v2}/token', redirect_url: 'http://{v2}/back' }}\n\
             clients: [{{ name: ci, v1_token: old-token-of-ci, grant: {{ client_id: app, client_secret: s3cret, refresh_token: first }} }}]\n\
             {more}",
            at = folder.path().display(),
            v2 = service.address,
        );
        std::fs::write(&file, text).expect("the file is written");
        let (_program, gateway, admin) = serving::serve(&file, &SealingKey::generate()).await;
        Shop { gateway, admin, service, _program, folder }
    }

    /// Requests the export of a year.
    async fn export(&self, year: u32) -> Answer {
        exchange(self.gateway, request(year)).await.expect("an answer")
    }

    /// Returns the output of `serve --check` for its configuration.
    fn checked(&self) -> String {
        let file = self.folder.path().join("switchback.yaml");
        let key = SealingKey::generate();
        let file = file.to_str().expect("a plain name");
        let checked = Program::start(&["serve", "--check", "--config", file], &[("TEST_KEY", key.expose())]);
        let (status, out, err) = checked.all();
        assert!(status.success(), "{out}{err}");
        out + &err
    }

    /// Number of started jobs, and of queries for them.
    fn made(&self) -> (usize, usize) {
        let seen = self.service.seen();
        let count = |method: &str| seen.iter().filter(|seen| seen.line().starts_with(method)).count();
        (count("POST /exports"), count("GET /jobs"))
    }
}

fn request(year: u32) -> String {
    let body = format!("{{\"year\":{year}}}");
    format!(
        "POST /old/exports HTTP/1.1\r\nhost: g\r\nx-api-key: old-token-of-ci\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn told(answer: &Answer) -> (u16, Value) {
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{}", answer.text())))
}

fn ready() -> (u16, Value) {
    (200, json!({"url": "/e/7"}))
}

const SHORT: &str = "every: 100ms\n          within: 4s";
const LONG: &str = "every: 60s\n          within: 5m";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_waits_for_a_job_until_it_is_done() {
    let shop = Shop::asking(SHORT, vec![says("queued"), says("running"), says("done")]).await;
    assert_eq!(told(&shop.export(2024).await), ready());
    assert_eq!(shop.made(), (1, 3));
    // A finished job is forgotten: the same request is another export, and its job is done at once.
    assert_eq!(told(&shop.export(2024).await), ready());
    assert_eq!(shop.made(), (2, 4));
    let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let metrics = exchange(shop.admin, request).await.expect("the admin port answers").text();
    let counted = metrics.lines().filter(|line| line.starts_with("switchback_upstream_requests_total{"));
    let counted = counted.filter(|line| line.contains("upstream=\"v2\"") && line.contains("role=\"client\""));
    let counts = counted.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    assert_eq!(counts.sum::<f64>(), 6.0, "each call is counted as every other is:\n{metrics}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_fails_is_told_and_a_repeat_begins_another() {
    let shop = Shop::asking(SHORT, vec![says("running"), says("failed"), says("done")]).await;
    assert_eq!(told(&shop.export(2024).await), (422, json!({"error": "The export has failed."})));
    assert_eq!(shop.made(), (1, 2));
    assert_eq!(told(&shop.export(2024).await), ready());
    assert_eq!(shop.made(), (2, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_comes_back_when_time_is_up_waits_for_the_same_job() {
    let polls = [vec![says("running"); 8], vec![says("done")]].concat();
    let shop = Shop::asking("every: 100ms\n          within: 300ms", polls).await;
    let mut tries = 0;
    let last = loop {
        let answer = shop.export(2024).await;
        tries += 1;
        if answer.status != 504 {
            break answer;
        }
        assert_eq!(answer.value("retry-after"), "1");
        assert!(tries < 10, "it ends: at least one call for each try");
    };
    assert!(tries > 1, "the job takes longer than one request may wait");
    assert_eq!(told(&last), ready());
    assert_eq!(shop.made(), (1, 9));
    // Another year is other work.
    assert_eq!(told(&shop.export(2025).await), ready());
    assert_eq!(shop.made(), (2, 10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_wants_more_time_gets_it_or_time_is_up_at_once() {
    let busy = |status, body: &str| {
        Act::Reply(answer(status, "content-type: application/json\r\nretry-after: 40\r\n", body))
    };
    let polls = vec![busy(200, &job("running")), busy(429, "{}"), says("done")];
    let shop = Shop::asking(SHORT, polls).await;
    for asked in 1..=2 {
        let answer = shop.export(2024).await;
        assert_eq!((answer.status, answer.value("retry-after")), (504, "40"));
        assert_eq!(shop.made(), (1, asked));
    }
    assert_eq!(told(&shop.export(2024).await), ready());
    assert_eq!(shop.made(), (1, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_says_nothing_of_a_job_does_not_end_the_waiting() {
    let polls = vec![Act::json(503, "{}"), Act::json(429, "{}"), Act::json(500, "<html>"), says("done")];
    let shop = Shop::asking(SHORT, polls).await;
    assert_eq!(told(&shop.export(2024).await), ready());
    assert_eq!(shop.made(), (1, 4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_gone_ends_the_waiting_and_one_that_may_not_be_seen_is_remembered() {
    let polls = vec![
        Act::json(403, r#"{"error":"Not yours."}"#),
        says("running"),
        Act::json(404, r#"{"error":"No such job."}"#),
        says("done"),
    ];
    let shop = Shop::asking(SHORT, polls).await;
    assert_eq!(told(&shop.export(2024).await), (403, json!({"error": "Not yours."})));
    assert_eq!(shop.made(), (1, 1));
    assert_eq!(told(&shop.export(2024).await), (404, json!({"error": "No such job."})));
    assert_eq!(shop.made(), (1, 3));
    assert_eq!(told(&shop.export(2024).await), ready());
    assert_eq!(shop.made(), (2, 4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_ends_in_between_is_renewed() {
    let inner = service(vec![says("running"), says("done")]);
    let calls = AtomicUsize::new(0);
    let refused = AtomicUsize::new(0);
    let script = move |at: usize, seen: &Seen| {
        // The token of the first two calls expires before the third, which is repeated with another one.
        let is_job = seen.line().starts_with("GET /jobs");
        if is_job && calls.fetch_add(1, Ordering::Relaxed) == 1 {
            assert_eq!(refused.fetch_add(1, Ordering::Relaxed), 0);
            return Act::json(401, r#"{"error":"token"}"#);
        }
        inner(at, seen)
    };
    let shop = Shop::with(SHORT, "", script).await;
    assert_eq!(told(&shop.export(2024).await), ready());
    assert_eq!(shop.made(), (1, 3));
    let seen = shop.service.seen();
    let tokens: Vec<_> = seen.iter().filter(|seen| seen.line().starts_with("GET /jobs")).collect();
    assert_eq!(tokens[0].values("authorization"), tokens[1].values("authorization"));
    assert_ne!(tokens[1].values("authorization"), tokens[2].values("authorization"));
}

/// The second request would wait for the first, which has the work for itself: for a minute, if
/// that went on alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_ends_the_waiting_and_finds_its_job_again() {
    let script = service(vec![says("running"), says("done")]);
    let shop = Shop::with(LONG, "limits: { total_timeout: 10m }\n", script).await;
    let mut client = Client::connect(shop.gateway).await;
    client.send(request(2024)).await;
    // A token, the job, and a first look at it.
    shop.service.received(3).await;
    client.reset();
    assert_eq!(told(&shop.export(2024).await), ready());
    assert_eq!(shop.made(), (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_waits_longer_than_a_request_may_take() {
    let shop = Shop::asking(LONG, vec![says("running"), says("done")]).await;
    let answer = shop.export(2024).await;
    assert_eq!((answer.status, answer.value("retry-after")), (504, "60"));
    assert_eq!(told(&shop.export(2024).await), ready());
    assert_eq!(shop.made(), (1, 2));

    // Reported before startup.
    let said = shop.checked();
    let warning = "`POST /exports` waits 300s for the service (exports.map.yaml:";
    assert!(said.contains(warning) && said.contains("a request ends after 30s"), "{said}");
    let quick = Shop::asking(SHORT, vec![says("done")]).await.checked();
    assert!(!quick.contains("waits"), "{quick}");
}

/// The manual's pack, with times of its own.
fn pack(every: u64, within: u64) -> Arc<Pack> {
    let times = format!("every: {every}ms\n          within: {within}ms");
    let files = manual::shop().into_iter().map(|(name, text)| {
        let text = text.replace("every: 1s\n          within: 3s", &times);
        (name, text)
    });
    manual::compiled(&files.collect::<Vec<_>>()).pack.expect("it compiles")
}

static PACKS: LazyLock<Vec<(Duration, Duration, Arc<Pack>)>> = LazyLock::new(|| {
    let times = [(100, 100), (100, 4_800), (300, 1_000), (7_000, 60_000)];
    let made = times.map(|(every, within)| {
        (Duration::from_millis(every), Duration::from_millis(within), pack(every, within))
    });
    made.into()
});

/// Any answer to a call for the job, and how long it takes to come.
fn any_poll() -> impl Strategy<Value = (Event, u64)> {
    let told = (prop_oneof![6 => Just(200u16), 1 => 100u16..600], 0usize..5, proptest::option::of(0u64..9));
    let told = told.prop_map(|(status, word, pause)| {
        let word = ["queued", "running", "running", "done", "odd"][word];
        let mut reply = Reply { status, body: job(word).into(), ..Reply::default() };
        reply.headers.extend(pause.map(|pause| (http::header::RETRY_AFTER, pause.into())));
        Event::Reply(reply)
    });
    let failed = proptest::sample::select(vec![FailKind::Unreachable, FailKind::Timeout, FailKind::Closed]);
    (prop_oneof![8 => told, 1 => failed.prop_map(Event::from)], 0u64..3_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_service_is_asked_more_often_or_longer_than_the_bound(
        which in 0usize..4,
        polls in proptest::collection::vec(any_poll(), 60),
    ) {
        let (every, within, pack) = &PACKS[which];
        let route = pack.directions[SideId::OLD].routes.iter().find(|route| &*route.operation.key == "POST /exports");
        let sent = Request { body: br#"{"year":2024}"#.to_vec().into(), ..Request::default() };
        let id = route.expect("the manual has it").id;
        let mut run = Run::new(Arc::clone(pack), SideId::OLD, id, sent, Arc::new(Settings::default()), Limits::DOCUMENT);
        let (mut now, mut began) = (Duration::from_secs(1_000), None);
        let (mut writes, mut asked, mut paused) = (0, 0, None);
        let mut polls = polls.into_iter();
        let mut event = Event::Start;
        let ended = loop {
            event = match run.next(event) {
                Ok(Next::Call(call)) if call.effect == Effect::Write => {
                    writes += 1;
                    Event::Reply(Reply { status: 202, body: job("queued").into(), ..Reply::default() })
                }
                Ok(Next::Call(_)) => {
                    prop_assert!(asked == 0 || paused.take().is_some_and(|paused| paused >= *every), "a call without a pause");
                    asked += 1;
                    if let Some(began) = began {
                        prop_assert!(now - began <= *within, "a call after {:?}", now - began);
                    }
                    let (event, took) = polls.next().expect("there are more of them than may be");
                    now += Duration::from_millis(took);
                    began.get_or_insert(now);
                    event
                }
                Ok(Next::Wait(wait)) => {
                    paused = Some(wait.pause);
                    wait.simulate(&mut now)
                }
                Ok(Next::Answer(answer)) => break answer.status,
                Ok(Next::Refuse(_) | Next::Recall(_) | Next::Keep(_)) => panic!("the route has none"),
                Err(fault) => {
                    prop_assert!(["upstream_timeout", "upstream_broken", "internal"].contains(&fault.kind.name()), "{fault}");
                    break 0;
                }
            };
        };
        prop_assert_eq!(writes, 1);
        prop_assert!(asked as u128 <= within.as_millis() / every.as_millis() + 1, "{} calls", asked);
        prop_assert!(ended != 200 || asked > 0);
    }
}
