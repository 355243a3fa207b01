//! Checks before the measurements: every peer answers every call correctly, all translating peers
//! yield the same JSON, and the upstream receives the same requests. A peer that does less work
//! than the others is not measured.

use super::calls::Call;
use super::peers::Running;
use super::transport::Transport;
use crate::fixture::Fixture;
use crate::load::{Answer, fetch};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Size of the largest answers that are parsed and compared. Larger ones repeat the same elements.
const COMPARED: [Call; 6] =
    [Call::List, Call::Single, Call::Send, Call::Varied, Call::List1Mb, Call::List10Mb];
const READY_WAIT_MAX: Duration = Duration::from_secs(60);

/// Waits until a peer answers a call correctly.
pub fn await_ready(running: &mut Running) -> Result<()> {
    let start = Instant::now();
    let request = Call::Single.requests(running).concat();
    loop {
        running.process.check().with_context(|| format!("{:?}", running.peer))?;
        let answered = fetch(&running.target, &request);
        if answered.as_ref().is_ok_and(|answer| answer.status == 200) {
            return Ok(());
        }
        if start.elapsed() > READY_WAIT_MAX {
            let seen = answered
                .map(|Answer { status, body }| format!("{status}: {}", String::from_utf8_lossy(&body)));
            let last = running.process.last_words();
            anyhow::bail!("{:?} does not serve: {seen:?}: {last}", running.peer);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Checks that the peers agree on the calls to be measured, and that they call the service as
/// documented.
pub fn check(peers: &[Running], transport: Transport, calls: &[Call], fixture: &Fixture) -> Result<()> {
    for call in COMPARED.into_iter().filter(|call| calls.contains(call)) {
        // Grouped by passing and translating peers, then by request.
        let mut first: [Vec<Value>; 2] = [Vec::new(), Vec::new()];
        for running in peers {
            let who = || format!("{:?} asked for {}{}", running.peer, call.title(), transport.title());
            let before = fixture.requests_over(transport.wire());
            let first = &mut first[usize::from(running.peer.translates())];
            let requests = call.requests(running);
            for (at, request) in requests.iter().enumerate() {
                let answer = fetch(&running.target, request).with_context(who)?;
                ensure!(answer.status == call.status(running.peer), "{}: status {}", who(), answer.status);
                let shown =
                    if answer.body.is_empty() { Value::Null } else { serde_json::from_slice(&answer.body)? };
                match first.get(at) {
                    None => first.push(shown),
                    Some(expected) => {
                        ensure!(shown == *expected, "{}: answer {at} is not that of the others", who());
                    }
                }
            }
            let came = fixture.requests_over(transport.wire()) - before;
            ensure!(came == requests.len() as u64, "{}: {came} calls came as they should", who());
            if call == Call::Send {
                let posted: Value = serde_json::from_slice(&fixture.posted()).with_context(who)?;
                ensure!(posted == serde_json::from_str::<Value>(call.body())?, "{}: it sent {posted}", who());
            }
        }
        let [passed, translated] = &first;
        let distinct =
            call == Call::Send || passed.is_empty() || translated.is_empty() || passed != translated;
        ensure!(distinct, "{}: what is translated is what is passed through", call.title());
    }
    Ok(())
}
