//! Tower layers within the stack, through sockets: readiness is polled before each request and
//! passed through, a request waits for its turn without blocking others of its connection, and shed
//! requests are refused in the pack's form.

use crate::bounds::{get, h2_client, send};
use crate::support::gateway::{Gateway, Own, Setup, TOKEN, request};
use crate::support::raw::{Client, PATIENCE, answer, exchange};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use switchback_gateway::telemetry::metrics;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

const THING: &str = r#"{"name":"a"}"#;

/// A service that answers on a signal.
struct HeldService {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    asked: Semaphore,
    answers: Semaphore,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
}

impl HeldService {
    async fn start() -> HeldService {
        let state = Arc::new(State {
            asked: Semaphore::new(0),
            answers: Semaphore::new(0),
            in_flight: AtomicUsize::new(0),
            most_in_flight: AtomicUsize::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, theirs) = (listener.local_addr().unwrap(), Arc::clone(&state));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&theirs)));
            }
        });
        HeldService { address, state }
    }

    /// Waits until one more request is here.
    async fn asked(&self) {
        timeout(PATIENCE, self.state.asked.acquire()).await.expect("a request comes").unwrap().forget();
    }

    fn answer(&self, requests: usize) {
        self.state.answers.add_permits(requests);
    }

    fn most_in_flight(&self) -> usize {
        self.state.most_in_flight.load(SeqCst)
    }
}

async fn serve(mut stream: TcpStream, state: Arc<State>) {
    let mut head = Vec::new();
    while stream.read_buf(&mut head).await.is_ok_and(|read| read > 0) {
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        head.clear();
        state.most_in_flight.fetch_max(state.in_flight.fetch_add(1, SeqCst) + 1, SeqCst);
        state.asked.add_permits(1);
        state.answers.acquire().await.unwrap().forget();
        state.in_flight.fetch_sub(1, SeqCst);
        let reply = answer(200, "content-type: application/json\r\n", r#"{"title":"a"}"#);
        stream.write_all(&reply).await.unwrap();
    }
}

async fn gateway(new: &HeldService, layer: Own) -> Gateway {
    Gateway::start(new.address, Setup { layer: Some(layer), ..Setup::default() }).await
}

fn thing() -> Vec<u8> {
    request("GET /old/things/a", "", "")
}

#[tokio::test]
async fn requests_of_other_connections_wait_for_their_turn() {
    let new = HeldService::start().await;
    let gateway = gateway(&new, Own::Waiting(1)).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = Client::connect(gateway.address).await;
        client.send(thing()).await;
        clients.push(client);
    }
    for _ in 0..3 {
        new.asked().await;
        new.answer(1);
    }
    for client in &mut clients {
        let answer = client.answer().await.unwrap();
        assert_eq!((answer.status, answer.text().as_str()), (200, THING));
    }
    assert_eq!(new.most_in_flight(), 1);
}

#[tokio::test]
async fn requests_of_one_http2_connection_wait_for_their_turn() {
    let new = HeldService::start().await;
    let gateway = gateway(&new, Own::Waiting(1)).await;
    let (mut client, _alive) = h2_client(gateway.address, 65_535).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(send(&mut client, get("/old/things/a", TOKEN)).await);
    }
    for _ in 0..3 {
        new.asked().await;
        new.answer(1);
    }
    for answer in answers {
        let answer = timeout(PATIENCE, answer).await.expect("each has its turn").unwrap();
        assert_eq!(answer.status().as_u16(), 200);
    }
    assert_eq!(new.most_in_flight(), 1);
}

#[tokio::test]
async fn a_client_that_leaves_gives_its_turn_to_the_next() {
    let new = HeldService::start().await;
    let gateway = gateway(&new, Own::Waiting(1)).await;
    let mut first = Client::connect(gateway.address).await;
    first.send(thing()).await;
    new.asked().await;
    let mut leaver = Client::connect(gateway.address).await;
    leaver.send(thing()).await;
    leaver.reset();
    new.answer(1);
    assert_eq!(first.answer().await.unwrap().status, 200);
    new.answer(2);
    assert_eq!(exchange(gateway.address, thing()).await.unwrap().status, 200);
    // The connection that had the only place before is idle, and occupies none.
    assert_eq!(exchange(gateway.address, thing()).await.unwrap().status, 200);
}

#[tokio::test]
async fn what_a_layer_sheds_is_refused_in_the_packs_form() {
    let new = HeldService::start().await;
    let gateway = gateway(&new, Own::Shedding(1)).await;
    let mut first = Client::connect(gateway.address).await;
    first.send(thing()).await;
    new.asked().await;
    let refused = exchange(gateway.address, thing()).await.unwrap();
    assert_eq!((refused.status, refused.value("retry-after")), (503, "1"));
    assert!(refused.text().starts_with(r#"{"why":"#), "{}", refused.text());
    assert!(!refused.value("x-request-id").is_empty());
    new.answer(1);
    assert_eq!(first.answer().await.unwrap().status, 200);
    new.answer(1);
    first.send(thing()).await;
    assert_eq!(first.answer().await.unwrap().status, 200);
}

/// Lines that this thread logs.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The connection remains open, the panic is logged at the level of defects, and it counts as an
/// error of the gateway.
#[tokio::test]
async fn a_panic_is_answered_logged_as_an_error_and_counted() {
    let metrics = metrics::install();
    let failed = || -> u64 {
        let text = metrics.render();
        let is_it = |line: &&str| {
            line.starts_with(metrics::REQUESTS)
                && line.contains("outcome=\"gateway_error\"")
                && line.contains("status=\"500\"")
        };
        let counts =
            text.lines().filter(is_it).filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        counts.sum()
    };
    for (layer, text) in [
        (Own::PanickingOnRequest, "panic: no request is expected"),
        (Own::PanickingOnAnswer, "panic: no answer is expected"),
    ] {
        let new = HeldService::start().await;
        new.answer(2);
        let gateway = gateway(&new, layer).await;
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let before = failed();
        let answers = {
            let _logged = tracing::subscriber::set_default(subscriber);
            let mut client = Client::connect(gateway.address).await;
            let mut answers = Vec::new();
            for _ in 0..2 {
                client.send(thing()).await;
                answers.push(client.answer().await.expect("an answer, on the same connection"));
            }
            answers
        };
        for answer in answers {
            assert_eq!(answer.status, 500);
            assert!(
                answer.text().starts_with(r#"{"why":"#) && !answer.text().contains("expected"),
                "{}",
                answer.text()
            );
        }
        let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let errors = log.lines().filter(|line| line.contains("ERROR") && line.contains("a request failed"));
        let told = errors.filter(|line| line.contains("kind=\"internal\"") && line.contains(text)).count();
        assert_eq!(told, 2, "{log}");
        assert!(failed() >= before + 2, "{} then {}", before, failed());
    }
}
