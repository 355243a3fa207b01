//! The goals: for each measure a good value and the target. This is the only place for both; the
//! tables and the JSON output read them here.

use super::calls::Call;
use super::measure::{Cell, Sample};
use super::memory::Memory;
use super::peers::Peer;
use super::transport::Transport;
use crate::load::Pace;

/// A measure with its goal.
pub struct Goal {
    pub title: &'static str,
    measure: Measure,
    pub good: f64,
    pub goal: f64,
}

/// The derivation of a number from a run.
enum Measure {
    /// CPU time per request of one peer divided by that of another, at a number of connections.
    Cpu { transport: Transport, call: Call, connections: usize, over: [Peer; 2] },
    /// Difference of the median latency at the fixed rate between our peer and another, in
    /// microseconds.
    AddedLatency { call: Call, than: Peer },
    /// A part of our memory, in MB.
    Memory(fn(&Memory) -> Option<u64>),
}

/// The degree to which a goal is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Met {
    Goal,
    Good,
    Not,
}

impl Met {
    /// Returns its word in the tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Goal => "goal",
            Self::Good => "good",
            Self::Not => "no",
        }
    }
}

const fn cpu(title: &'static str, call: Call, over: [Peer; 2], good: f64, goal: f64) -> Goal {
    let connections = if call.is_small() { 64 } else { 1 };
    Goal { title, measure: Measure::Cpu { transport: Transport::Plain, call, connections, over }, good, goal }
}

const fn tls(
    title: &'static str,
    transport: Transport,
    call: Call,
    over: [Peer; 2],
    good: f64,
    goal: f64,
) -> Goal {
    Goal { title, measure: Measure::Cpu { transport, call, connections: 64, over }, good, goal }
}

const fn memory(title: &'static str, of: fn(&Memory) -> Option<u64>, good: f64, goal: f64) -> Goal {
    Goal { title, measure: Measure::Memory(of), good, goal }
}

/// All goals that a side-by-side run can measure, in the order of the tables.
pub const GOALS: [Goal; 24] = {
    use Call::{List, List1Mb, List10Mb, Send, Single};
    use Peer::{Envoy, Gateway, GatewayPlain, Hyper, LuaDuties, Nginx, Node, Value};
    use Transport::{UpstreamH2, UpstreamTls};
    [
        cpu("20 messages, 64 connections: CPU ÷ plain hyper, passing", List, [Gateway, Hyper], 1.7, 1.5),
        cpu("one chat: the same", Single, [Gateway, Hyper], 1.4, 1.25),
        cpu("send a message: the same", Send, [Gateway, Hyper], 1.45, 1.3),
        cpu("20 messages: Lua with equal duties ÷ ours", List, [LuaDuties, Gateway], 7.0, 9.0),
        cpu("one chat: the same", Single, [LuaDuties, Gateway], 2.1, 2.5),
        cpu("send a message: the same", Send, [LuaDuties, Gateway], 1.4, 1.6),
        cpu("20 messages: `serde_json::Value` ÷ ours", List, [Value, Gateway], 4.0, 5.7),
        cpu("20 messages: Node ÷ ours", List, [Node, Gateway], 15.0, 20.0),
        cpu("20 messages: Envoy, passing, ÷ ours", List, [Envoy, Gateway], 1.25, 1.7),
        cpu("messages, 1 MB: CPU ÷ nginx, passing", List1Mb, [Gateway, Nginx], 2.4, 1.8),
        cpu("messages, 10 MB: the same", List10Mb, [Gateway, Nginx], 2.2, 1.6),
        tls("TLS to the service, 20 messages: CPU ÷ nginx", UpstreamTls, List, [Gateway, Nginx], 1.5, 1.3),
        tls("the same, one chat", UpstreamTls, Single, [Gateway, Nginx], 1.3, 1.2),
        tls("the same, send a message", UpstreamTls, Send, [Gateway, Nginx], 1.35, 1.2),
        tls("HTTP/2 to the service, 20 messages: CPU ÷ Envoy", UpstreamH2, List, [Gateway, Envoy], 1.0, 0.6),
        tls("the same, one chat", UpstreamH2, Single, [Gateway, Envoy], 1.0, 0.6),
        cpu("20 messages: plain build ÷ ordered build", List, [GatewayPlain, Gateway], 1.15, 1.08),
        memory("growth per body of 1 MB in flight, MB", |memory| memory.growth[0], 0.3, 0.1),
        memory("growth per body of 10 MB in flight, MB", |memory| memory.growth[1], 0.3, 0.1),
        memory("growth per body of 100 MB in flight, MB", |memory| memory.growth[2], 0.3, 0.1),
        memory("memory per stalled reader of 20 MB, MB", |memory| memory.stalled, 0.3, 0.2),
        memory("anonymous memory idle, MB", |memory| memory.idle, 8.0, 6.0),
        memory("anonymous memory at 256 connections, MB", |memory| memory.connections, 25.0, 18.0),
        Goal {
            title: "added p50 at a fixed rate over nginx's, µs",
            measure: Measure::AddedLatency { call: List, than: Nginx },
            good: 50.0,
            goal: 15.0,
        },
    ]
};

impl Goal {
    /// Returns the value of the run, if it contains the necessary measurements.
    pub fn measured(&self, cells: &[Cell], memories: &[Memory]) -> Option<f64> {
        match self.measure {
            Measure::Cpu { transport, call, connections, over: [one, other] } => {
                let find = |peer| {
                    cells.iter().find(|cell| {
                        let setting = cell.setting;
                        (cell.peer, setting.call, setting.connections) == (peer, call, connections)
                            && setting.transport == transport
                            && setting.pace == Pace::Closed
                            && !cell.samples.is_empty()
                    })
                };
                Some(find(one)?.ratio(find(other)?, |sample| sample.cpu_us))
            }
            Measure::AddedLatency { call, than } => {
                let p50 = |peer| {
                    let open = |cell: &&Cell| {
                        cell.setting.call == call && cell.setting.pace != Pace::Closed && cell.peer == peer
                    };
                    Some(cells.iter().find(open)?.median(|sample: &Sample| sample.p50_us))
                };
                Some(p50(Peer::Gateway)? - p50(than)?)
            }
            Measure::Memory(of) => {
                let ours = memories.iter().find(|memory| memory.peer == Peer::Gateway)?;
                of(ours).map(|bytes| bytes as f64 / 1e6)
            }
        }
    }

    /// Returns whether a number reaches a limit.
    pub fn met(&self, measured: f64) -> Met {
        let reaches = |bound: f64| if self.is_least() { measured >= bound } else { measured <= bound };
        match (reaches(self.goal), reaches(self.good)) {
            (true, _) => Met::Goal,
            (_, true) => Met::Good,
            _ => Met::Not,
        }
    }

    /// Returns whether a larger value is better.
    pub fn is_least(&self) -> bool {
        self.goal > self.good
    }
}

#[cfg(test)]
mod tests {
    use super::{GOALS, Goal, Met};

    #[test]
    fn goals_are_met_from_their_side() {
        let find = |title: &str| GOALS.iter().find(|goal| goal.title == title).expect("it is one of them");
        let met = |goal: &Goal, values: [f64; 4]| values.map(|value| goal.met(value));
        let expected = [Met::Goal, Met::Goal, Met::Good, Met::Not];
        let at_most = find("20 messages, 64 connections: CPU ÷ plain hyper, passing");
        assert_eq!(met(at_most, [1.4, 1.5, 1.7, 1.8]), expected);
        let at_least = find("20 messages: Lua with equal duties ÷ ours");
        assert_eq!(met(at_least, [10.0, 9.0, 7.0, 6.9]), expected);
    }
}
