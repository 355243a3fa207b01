//! What was aimed at, beside what was measured: for each measure a value that is good and one that is the goal.

use super::calls::Call;
use super::measure::{Cell, Sample};
use super::memory::Memory;
use super::peers::Peer;
use crate::load::Pace;

/// What is measured, and what is hoped for.
pub struct Goal {
    pub title: &'static str,
    measure: Measure,
    pub good: f64,
    pub goal: f64,
}

/// How a number comes out of a run.
enum Measure {
    /// CPU per request of one peer over that of another, at a number of connections.
    Cpu { call: Call, connections: usize, over: [Peer; 2] },
    /// Median latency at the fixed rate that ours has more than another's, in microseconds.
    AddedLatency { call: Call, than: Peer },
    /// Something of our memory, in MB.
    Memory(fn(&Memory) -> Option<u64>),
}

/// How well a goal was met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Met {
    Goal,
    Good,
    Not,
}

impl Met {
    /// How the tables say it.
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
    Goal { title, measure: Measure::Cpu { call, connections, over }, good, goal }
}

const fn memory(title: &'static str, of: fn(&Memory) -> Option<u64>, good: f64, goal: f64) -> Goal {
    Goal { title, measure: Measure::Memory(of), good, goal }
}

/// All goals that a side-by-side run can measure, in the order of the tables.
pub const GOALS: [Goal; 16] = {
    use Call::{List, List10Mb, Send, Single};
    use Peer::{Envoy, Gateway, Hyper, Lua, Nginx, Node, Value};
    const KIB_512: f64 = 512.0 * 1024.0 / 1e6;
    [
        cpu("20 messages, 64 connections: CPU ÷ nginx, passing", List, [Gateway, Nginx], 1.6, 1.25),
        cpu("the same ÷ plain hyper, passing", List, [Gateway, Hyper], 1.5, 1.15),
        cpu("nginx + Lua's CPU ÷ ours", List, [Lua, Gateway], 5.5, 7.5),
        cpu("hyper + `serde_json::Value`'s ÷ ours", List, [Value, Gateway], 4.0, 5.7),
        cpu("Node's ÷ ours", List, [Node, Gateway], 15.0, 20.0),
        cpu("Envoy's, passing, ÷ ours", List, [Envoy, Gateway], 1.25, 1.7),
        cpu("one chat: CPU ÷ nginx, passing", Single, [Gateway, Nginx], 1.15, 1.0),
        cpu("send a message: CPU ÷ nginx, passing", Send, [Gateway, Nginx], 1.25, 1.05),
        cpu("10 MB list: CPU ÷ nginx, passing", List10Mb, [Gateway, Nginx], 2.4, 1.6),
        memory("growth per body of 1 MB in flight, MB", |memory| memory.growth[0], 1.0, 0.3),
        memory("growth per body of 10 MB in flight, MB", |memory| memory.growth[1], 1.0, 0.3),
        memory("growth per body of 100 MB in flight, MB", |memory| memory.growth[2], 1.0, 0.3),
        memory("memory per stalled reader of 20 MB, MB", |memory| memory.stalled, KIB_512, KIB_512 / 2.0),
        memory("idle, MB", |memory| memory.idle, 12.0, 6.0),
        memory("at 256 connections, MB", |memory| memory.connections, 40.0, 20.0),
        Goal {
            title: "added p50 at a fixed rate over nginx's, µs",
            measure: Measure::AddedLatency { call: List, than: Nginx },
            good: 50.0,
            goal: 15.0,
        },
    ]
};

impl Goal {
    /// What the run says about it, where it measured what is needed.
    pub fn measured(&self, cells: &[Cell], memories: &[Memory]) -> Option<f64> {
        match self.measure {
            Measure::Cpu { call, connections, over: [one, other] } => {
                let find = |peer| {
                    cells.iter().find(|cell| {
                        let setting = cell.setting;
                        (cell.peer, setting.call, setting.connections) == (peer, call, connections)
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

    /// Whether a number is as hoped for.
    pub fn met(&self, measured: f64) -> Met {
        let reaches = |bound: f64| if self.is_least() { measured >= bound } else { measured <= bound };
        match (reaches(self.goal), reaches(self.good)) {
            (true, _) => Met::Goal,
            (_, true) => Met::Good,
            _ => Met::Not,
        }
    }

    /// Whether more is better.
    pub fn is_least(&self) -> bool {
        self.goal > self.good
    }
}

#[cfg(test)]
mod tests {
    use super::{GOALS, Met};

    #[test]
    fn goals_are_met_from_their_side() {
        let [at_most, _, at_least, ..] = &GOALS;
        assert_eq!(
            [1.2, 1.25, 1.5, 1.7].map(|value| at_most.met(value)),
            [Met::Goal, Met::Goal, Met::Good, Met::Not]
        );
        assert_eq!([8.0, 6.0, 5.0].map(|value| at_least.met(value)), [Met::Goal, Met::Good, Met::Not]);
    }
}
