//! Before anything is measured: every peer answers every call rightly, all that translate give the same JSON, and what reaches
//! the upstream is the same. Who does less than the others is not measured beside them.

use super::calls::Call;
use super::peers::Running;
use crate::fixture::Fixture;
use crate::load::{Answer, fetch};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Largest answers that are parsed and compared; larger ones are the same elements more often.
const COMPARED: [Call; 5] = [Call::List, Call::Single, Call::Send, Call::List1Mb, Call::List10Mb];
const READY_WAIT_MAX: Duration = Duration::from_secs(60);

/// Waits until a peer answers a call as it should.
pub fn await_ready(running: &mut Running) -> Result<()> {
    let start = Instant::now();
    let request = Call::Single.request(running);
    loop {
        running.process.check().with_context(|| format!("{:?}", running.peer))?;
        let answered = fetch(running.address, &request);
        if answered.as_ref().is_ok_and(|answer| answer.status == 200) {
            return Ok(());
        }
        if start.elapsed() > READY_WAIT_MAX {
            let seen = answered
                .map(|Answer { status, body }| format!("{status}: {}", String::from_utf8_lossy(&body)));
            anyhow::bail!("{:?} does not serve: {seen:?}", running.peer);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Checks that the peers agree on the calls that are to be measured.
pub fn check(peers: &[Running], calls: &[Call], fixture: &Fixture) -> Result<()> {
    for call in COMPARED.into_iter().filter(|call| calls.contains(call)) {
        let mut first: [Option<Value>; 2] = [None, None];
        for running in peers {
            let who = || format!("{:?} asked for {}", running.peer, call.title());
            let answer = fetch(running.address, &call.request(running)).with_context(who)?;
            ensure!(answer.status == call.status(running.peer), "{}: status {}", who(), answer.status);
            let shown =
                if answer.body.is_empty() { Value::Null } else { serde_json::from_slice(&answer.body)? };
            let first = &mut first[usize::from(running.peer.translates())];
            let expected = first.get_or_insert_with(|| shown.clone());
            ensure!(shown == *expected, "{}: its answer is not that of the others", who());
            if call == Call::Send {
                let posted: Value = serde_json::from_slice(&fixture.posted()).with_context(who)?;
                ensure!(posted == serde_json::from_str::<Value>(call.body())?, "{}: it sent {posted}", who());
            }
        }
        let [passed, translated] = &first;
        let distinct = call == Call::Send || passed.is_none() || translated.is_none() || passed != translated;
        ensure!(distinct, "{}: what is translated is what is passed through", call.title());
    }
    Ok(())
}
