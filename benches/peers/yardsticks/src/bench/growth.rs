//! Growth of the gateway's cost with connections, operations of a pack and clients. Each size has
//! the time to the first answer, CPU time per request, latency and memory; the exponent of growth
//! is computed from the two largest sizes.

use super::calls::{Call, call_with};
use super::measure::{Sample, Setting, Span, measure_requests};
use super::peers::{Grown, Running, Site};
use super::transport::Transport;
use crate::fixture::{CLIENT_TOKEN, Fixture};
use crate::load::{Pace, fetch};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const READY_WAIT_MAX: Duration = Duration::from_secs(300);
const READY_STEP: Duration = Duration::from_millis(2);
/// Number of connections if connections are not the subject, and the total requests per second.
const CONNECTIONS: usize = 64;
const PER_SECOND: u32 = 2000;
/// Number of operations and clients in one measurement, spread over all of them.
const SPREAD: usize = 64;
/// Number of operations per shape.
const OPERATIONS_OF_SHAPE: usize = 5;
const MEMBERS: usize = 12;

/// The quantity that grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Axis {
    Connections,
    Operations,
    Clients,
}

/// The measurements of one size.
#[derive(Serialize)]
pub struct Point {
    pub axis: Axis,
    pub count: usize,
    pub seen: Option<Seen>,
}

#[derive(Clone, Copy, Serialize)]
pub struct Seen {
    /// From the start of the process to its first answer.
    pub ready_ms: f64,
    pub cpu_us: f64,
    pub p99_us: f64,
    pub resident_bytes: u64,
}

/// A measure: its name and its getter.
pub type Measure = (&'static str, fn(&Seen) -> f64);

/// All measures, in the order of the tables.
pub const MEASURES: [Measure; 4] = [
    ("time until it serves", |seen| seen.ready_ms),
    ("CPU per request", |seen| seen.cpu_us),
    ("p99", |seen| seen.p99_us),
    ("memory", |seen| seen.resident_bytes as f64),
];

impl Axis {
    /// Returns all quantities, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Connections, Self::Operations, Self::Clients];

    fn sizes(self, is_tiny: bool) -> &'static [usize] {
        match self {
            _ if is_tiny => &[2, 20],
            Self::Connections => &[1, 10, 100, 1000, 10_000],
            Self::Operations => &[10, 50, 200, 500, 2000],
            // A configuration is limited to a million values, which suffices for 76,000 such clients.
            Self::Clients => &[10, 100, 1000, 10_000, 50_000],
        }
    }
}

/// Returns the exponent of growth between two sizes, and whether it exceeds that of n log n.
pub fn slope(one: (usize, f64), other: (usize, f64)) -> (f64, bool) {
    let (sizes, values) = (other.0 as f64 / one.0 as f64, other.1 / one.1);
    let allowed = sizes * (other.0 as f64).ln().max(1.0) / (one.0 as f64).ln().max(1.0);
    (values.ln() / sizes.ln(), values > allowed)
}

/// Measures all sizes. A failure of a gateway is printed to standard error, and its value is
/// omitted.
pub fn measure(site: &Site, span: Span, is_tiny: bool, fixture: &Fixture) -> Vec<Point> {
    let mut points = Vec::new();
    for axis in Axis::ALL {
        for count in axis.sizes(is_tiny).iter().copied() {
            let seen = measure_one(axis, count, site, span, fixture);
            match &seen {
                Ok(seen) => {
                    eprintln!("growth, {count} {axis:?}: {:.1} µs, {:.0} ms", seen.cpu_us, seen.ready_ms)
                }
                Err(error) => eprintln!("growth, {count} {axis:?}: fails: {error:#}"),
            }
            points.push(Point { axis, count, seen: seen.ok() });
        }
    }
    points
}

fn measure_one(axis: Axis, count: usize, site: &Site, span: Span, fixture: &Fixture) -> Result<Seen> {
    let connections = if axis == Axis::Connections { count } else { CONNECTIONS };
    let clients = if axis == Axis::Clients { count } else { 1 };
    let generated = if axis == Axis::Operations { Some(pack(count, &site.folder)?) } else { None };
    let grown =
        Grown { pack: generated.as_deref(), clients: client_lines(clients), connections: connections + 100 };
    let begun = Instant::now();
    let mut running = site.start_grown(&grown)?;
    let requests = requests(axis, count, &running);
    let ready_ms = await_answer(&mut running, &requests[0], begun)?;
    // The first request of each client fetches its token, and is not a part of the measured growth.
    for request in &requests {
        fetch(&running.target, request)?;
    }
    // By then, each connection has sent a request.
    let all = Duration::from_secs_f64(connections as f64 / f64::from(PER_SECOND));
    let span = Span { warm: span.warm.max(all), ..span };
    let pace = Pace::Open { per_second: PER_SECOND };
    let setting = Setting { transport: Transport::Plain, call: Call::List, connections, pace };
    let sample: Sample = measure_requests(&mut running, requests, setting, span, fixture)?;
    let resident_bytes = running.process.memory("VmRSS").max(sample.peak_bytes);
    Ok(Seen { ready_ms, cpu_us: sample.cpu_us, p99_us: sample.p99_us, resident_bytes })
}

fn await_answer(running: &mut Running, request: &[u8], begun: Instant) -> Result<f64> {
    loop {
        running.process.check()?;
        if fetch(&running.target, request).is_ok_and(|answer| answer.status == 200) {
            return Ok(begun.elapsed().as_secs_f64() * 1e3);
        }
        if begun.elapsed() > READY_WAIT_MAX {
            bail!("it does not serve: {}", running.process.last_words());
        }
        std::thread::sleep(READY_STEP);
    }
}

/// Returns requests for all operations or clients.
fn requests(axis: Axis, count: usize, running: &Running) -> Vec<Vec<u8>> {
    let spread = (0..count.min(SPREAD)).map(|at| at * count / count.min(SPREAD));
    match axis {
        Axis::Connections => Call::List.requests(running),
        Axis::Operations => {
            spread.map(|at| call_with(&format!("/things-{at}/7"), "", running, CLIENT_TOKEN)).collect()
        }
        Axis::Clients => {
            spread.map(|at| call_with("/chats/481/messages", "", running, &client_token(at))).collect()
        }
    }
}

fn client_token(at: usize) -> String {
    if at == 0 { CLIENT_TOKEN.to_owned() } else { format!("{CLIENT_TOKEN}-{at}") }
}

/// Short tokens, because a configuration is limited to 16 MiB.
fn client_lines(count: usize) -> String {
    let mut lines = String::new();
    for at in 0..count {
        let token = client_token(at);
        writeln!(
            lines,
            "  - {{ name: c-{at}, v2_token: {token}, grant: {{ client_id: A-{at}, client_secret: not-a-secret, refresh_token: r-{at} }} }}"
        )
        .expect("a string takes whatever is written");
    }
    lines
}

/// Writes a pack with this number of operations, each with a name of its own, five per shape.
fn pack(operations: usize, folder: &Path) -> Result<PathBuf> {
    let folder = folder.join(format!("growth-{operations}"));
    fs::create_dir_all(folder.join("contracts")).context("the generated pack")?;
    fs::write(folder.join("pack.yaml"), include_str!("../../../configs/growth-pack.yaml"))?;
    let shapes = operations.div_ceil(OPERATIONS_OF_SHAPE);
    for (side, name) in [("v2", old_name as fn(usize) -> String), ("v3", new_name)] {
        fs::write(
            folder.join(format!("contracts/{side}.openapi.yaml")),
            contract(side, operations, shapes, name),
        )?;
    }
    let mut mapping = "mapping: 1\nshapes:\n".to_owned();
    for shape in 0..shapes {
        let renamed: Vec<_> = (0..MEMBERS).map(|at| format!("{}: {}", old_name(at), new_name(at))).collect();
        let renamed = renamed.join(", ");
        writeln!(
            mapping,
            "  Thing{shape}: {{of: {{v2: Thing{shape}, v3: Thing{shape}}}, same: [id], rename: {{{renamed}}}}}"
        )?;
    }
    mapping.push_str("routes:\n");
    for at in 0..operations {
        let shape = at / OPERATIONS_OF_SHAPE;
        let address = format!("'GET /things-{at}/{{id}}'");
        writeln!(mapping, "  - {{pair: {{v2: {address}, v3: {address}}}, response: Thing{shape}}}")?;
    }
    fs::write(folder.join("things.map.yaml"), mapping)?;
    Ok(folder)
}

fn old_name(at: usize) -> String {
    format!("old_{at}")
}

fn new_name(at: usize) -> String {
    format!("new{at}")
}

fn contract(side: &str, operations: usize, shapes: usize, name: impl Fn(usize) -> String) -> String {
    let mut text = format!("openapi: 3.1.0\ninfo: {{title: Things, version: '{side}'}}\npaths:\n");
    for at in 0..operations {
        let shape = at / OPERATIONS_OF_SHAPE;
        text.push_str(&format!(
            "  /things-{at}/{{id}}:\n    parameters: [{{name: id, in: path, required: true, schema: {{type: string}}}}]\n    get:\n      operationId: getThing{at}\n      responses: {{'200': {{description: ok, content: {{application/json: {{schema: {{$ref: '#/components/schemas/Thing{shape}'}}}}}}}}}}\n"
        ));
    }
    let names: Vec<_> = (0..MEMBERS).map(&name).collect();
    let members: Vec<_> = names.iter().map(|name| format!("{name}: {{type: [string, 'null']}}")).collect();
    let (names, members) = (names.join(", "), members.join(", "));
    text.push_str("components:\n  schemas:\n    Error: {type: object, additionalProperties: false, required: [reason], properties: {reason: {type: string}}}\n");
    for shape in 0..shapes {
        text.push_str(&format!(
            "    Thing{shape}: {{type: object, additionalProperties: false, required: [id, {names}], properties: {{id: {{type: integer}}, {members}}}}}\n"
        ));
    }
    text
}

/// Returns the fixture's answer for each of them.
pub fn thing() -> String {
    let members: Vec<_> = (0..MEMBERS).map(|at| format!(r#""{}":"value {at}""#, new_name(at))).collect();
    format!(r#"{{"id":7,{}}}"#, members.join(","))
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn what_grows_faster_than_n_log_n_is_told_from_what_does_not() {
        assert_eq!(slope((100, 5.0), (1000, 5.0)), (0.0, false));
        let (exponent, is_worse) = slope((100, 1.0), (1000, 10.0));
        assert!((exponent - 1.0).abs() < 1e-9 && !is_worse);
        assert!(!slope((100, 4.7), (1000, 69.0)).1, "n log n itself");
        assert!(slope((100, 1.0), (1000, 100.0)).1);
    }
}
