//! The outcomes of a route, and the rows of its tables, that examples must cover.

use std::fmt;
use switchback_plan::{Beyond, Block, End, OnFail, Origin, Route, RouteKind};

/// A part of a route that a run passed through.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A pair answered without an error.
    Answered,
    /// The entire route is refused.
    Refused,
    /// A pair refuses a parameter (by index).
    Parameter(usize),
    /// A check (by index) failed.
    Check(usize),
    /// The end of the block that these outcomes lead to.
    End(Vec<u16>),
    /// A row (by index) of the table at the end of the block that these outcomes lead to.
    Row(Vec<u16>, usize),
    /// A call failed whose `on_fail` is not `pass`: outcomes, and index of the step.
    OnFail(Vec<u16>, usize),
    /// A call was skipped because its condition is false: outcomes, and index of the step.
    Skipped(Vec<u16>, usize),
    /// A list exceeded its bound and is not silently truncated: outcomes, and index of the step.
    Beyond(Vec<u16>, usize),
}

/// An outcome that examples must cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The part of the route.
    pub mark: Mark,
    /// A description for messages.
    pub what: String,
    /// The line of the mapping that declares it.
    pub origin: Origin,
}

impl fmt::Display for Reach {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.what)
    }
}

/// Returns all outcomes of a route, in the order of the mapping.
pub fn ends(route: &Route) -> Vec<Reach> {
    let one = |mark, what: &str| vec![Reach { mark, what: what.into(), origin: route.origin.clone() }];
    match &route.kind {
        RouteKind::Pair(pair) => {
            let refused = pair.refused.iter().enumerate().map(|(at, refusal)| Reach {
                mark: Mark::Parameter(at),
                what: format!("the refusal of the parameter `{}`", refusal.name),
                origin: refusal.origin.clone(),
            });
            one(Mark::Answered, "the answer").into_iter().chain(refused).collect()
        }
        RouteKind::Refuse(_) => one(Mark::Refused, "the refusal"),
        RouteKind::Serve(serve) => {
            let checks = serve.checks.iter().enumerate().map(|(at, check)| Reach {
                mark: Mark::Check(at),
                what: format!("check {} failing", at + 1),
                origin: check.origin.clone(),
            });
            let mut reaches = checks.collect();
            block_ends(&serve.block, &mut Vec::new(), "", &route.origin, &mut reaches);
            reaches
        }
    }
}

fn block_ends(block: &Block, way: &mut Vec<u16>, name: &str, origin: &Origin, reaches: &mut Vec<Reach>) {
    for (at, step) in block.steps.iter().enumerate() {
        let Some(call) = step.call() else { continue };
        let operation = &call.head.operation;
        let mut reach = |mark, what| reaches.push(Reach { mark, what, origin: step.origin.clone() });
        // Passing the error on is the default and needs no example.
        if !matches!(call.on_fail, OnFail::Pass) {
            reach(Mark::OnFail(way.clone(), at), format!("{operation} failing"));
        }
        if call.when.is_some() {
            reach(Mark::Skipped(way.clone(), at), format!("{operation} left out"));
        }
        if call.pages.as_ref().is_some_and(|pages| !matches!(pages.beyond, Beyond::Cut)) {
            reach(Mark::Beyond(way.clone(), at), format!("{operation} with more pages than are read"));
        }
        if call.each.as_ref().is_some_and(|each| each.beyond.is_some()) {
            reach(Mark::Beyond(way.clone(), at), format!("{operation} for more elements than its bound"));
        }
    }
    match &block.end {
        End::Decide(decision) => {
            for (at, row) in decision.rows.iter().enumerate() {
                let outcome = &decision.outcomes[usize::from(row.outcome)].name;
                let what = format!("row {} (`{outcome}`)", at + 1);
                reaches.push(Reach { mark: Mark::Row(way.clone(), at), what, origin: row.origin.clone() });
            }
            for (at, outcome) in decision.outcomes.iter().enumerate() {
                // The compiler rejects tables with more outcomes.
                way.push(u16::try_from(at).unwrap_or(u16::MAX));
                block_ends(&outcome.block, way, &outcome.name, &outcome.origin, reaches);
                way.pop();
            }
        }
        end => {
            let end = if matches!(end, End::Answer(_)) { "the answer" } else { "the refusal" };
            let what = if name.is_empty() { end.to_owned() } else { format!("outcome `{name}`") };
            reaches.push(Reach { mark: Mark::End(way.clone()), what, origin: origin.clone() });
        }
    }
}
