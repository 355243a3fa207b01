//! What a pack keeps, changes, loses and refuses, operation by operation: the document for the people whose integrations
//! run through it. Works on the compiled pack alone.

use super::{Class, Direction, Effect, Loss, NoteKind, Pack, Route, RouteKind, Shape, Verdict};
use serde::Serialize;
use std::fmt::Write as _;

/// A pack's report: what clients of each side can expect.
#[derive(Debug, Serialize)]
pub struct Report {
    pub pack: String,
    pub sides: Vec<SideReport>,
    pub shapes: Vec<ShapeReport>,
}

/// What clients of one side can expect when the other side answers.
#[derive(Debug, Serialize)]
pub struct SideReport {
    pub side: String,
    pub backend: String,
    pub exact: usize,
    pub different: usize,
    pub partly: usize,
    pub refused: usize,
    pub operations: Vec<OperationReport>,
}

/// What becomes of one operation.
#[derive(Debug, Serialize)]
pub struct OperationReport {
    pub operation: String,
    pub verdict: &'static str,
    /// `pair`, `serve` or `refuse`.
    pub route: &'static str,
    pub calls_min: u32,
    pub calls_max: u32,
    /// How much of a body is held, and why not less; none when nothing is called.
    pub class: Option<&'static str>,
    pub because: Option<String>,
    pub effect: &'static str,
    pub lost: Vec<LossReport>,
    pub differs: Vec<String>,
    pub approximate: Vec<String>,
    pub despite: Vec<String>,
    /// Why a refused operation is refused, in the default language; for others, the reasons of what is refused of it.
    pub refusals: Vec<String>,
    pub place: String,
}

/// A field that does not survive.
#[derive(Debug, Serialize)]
pub struct LossReport {
    pub side: String,
    pub place: String,
    pub instead: Option<String>,
}

/// How much a shape carries.
#[derive(Debug, Serialize)]
pub struct ShapeReport {
    pub shape: String,
    /// `iso`: nothing is lost; `lens`: one side has more; `symmetric`: both have.
    pub law: &'static str,
    pub lost: Vec<LossReport>,
    pub place: String,
}

/// The report of a pack.
pub fn report(pack: &Pack) -> Report {
    Report {
        pack: pack.name.clone(),
        sides: pack.directions.iter().map(|direction| side(pack, direction)).collect(),
        shapes: pack.shapes.iter().map(|shape| shape_report(pack, shape)).collect(),
    }
}

fn side(pack: &Pack, direction: &Direction) -> SideReport {
    let count = |verdict| direction.routes.iter().filter(|route| route.verdict == verdict).count();
    SideReport {
        side: pack.sides[usize::from(direction.serves.0)].name.clone(),
        backend: pack.sides[usize::from(direction.serves.other().0)].name.clone(),
        exact: count(Verdict::Exact),
        different: count(Verdict::Different),
        partly: count(Verdict::Partly),
        refused: count(Verdict::Not),
        operations: direction.routes.iter().map(|route| operation(pack, route)).collect(),
    }
}

fn operation(pack: &Pack, route: &Route) -> OperationReport {
    let notes = |kind| -> Vec<String> {
        let of_kind = route.notes.iter().filter(|note| note.kind == kind);
        of_kind.map(|note| note.text.clone()).collect()
    };
    OperationReport {
        operation: route.operation.key.to_string(),
        verdict: route.verdict.word(),
        route: match &route.kind {
            RouteKind::Pair(_) => "pair",
            RouteKind::Serve(_) => "serve",
            RouteKind::Refuse(_) => "refuse",
        },
        calls_min: route.calls_min,
        calls_max: route.calls_max,
        class: route.class().map(Class::word),
        because: super::explain::because(route),
        effect: match route.operation.effect {
            Effect::None => "none",
            Effect::Write => "write",
        },
        lost: route.losses.iter().map(loss).collect(),
        differs: notes(NoteKind::Differs),
        approximate: notes(NoteKind::Approximate),
        despite: notes(NoteKind::Despite),
        refusals: super::explain::refusals(route)
            .into_iter()
            .filter_map(|id| pack.reasons[usize::from(id.0)].texts.get(pack.languages.first()?).cloned())
            .collect(),
        place: format!("{}:{}", route.origin.file, route.origin.line),
    }
}

fn loss(loss: &Loss) -> LossReport {
    LossReport { side: loss.side.clone(), place: loss.place.clone(), instead: loss.instead.clone() }
}

fn shape_report(pack: &Pack, shape: &Shape) -> ShapeReport {
    let lost: Vec<&Loss> = shape.to.iter().flatten().flat_map(|plan| &plan.losses).collect();
    let of = |side: usize| lost.iter().any(|loss| loss.side == pack.sides[side].name);
    ShapeReport {
        shape: shape.name.clone(),
        law: match (of(0), of(1)) {
            (false, false) => "iso",
            (true, true) => "symmetric",
            _ => "lens",
        },
        lost: lost.into_iter().map(loss).collect(),
        place: format!("{}:{}", shape.origin.file, shape.origin.line),
    }
}

impl Verdict {
    /// The verdict in words.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Exact => "exact",
            Verdict::Different => "different",
            Verdict::Partly => "partly",
            Verdict::Not => "not possible",
        }
    }
}

impl Class {
    /// The class in a word.
    pub fn word(self) -> &'static str {
        match self {
            Class::Pass => "pass",
            Class::Tokens => "tokens",
            Class::Captures => "captures",
            Class::Element => "element",
            Class::Document => "document",
        }
    }
}

impl Report {
    /// A table for each side, and the details below each operation.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for side in &self.sides {
            let _ = writeln!(out, "{}\n", side.headline());
            let width = side.operations.iter().map(|op| op.operation.chars().count()).max().unwrap_or(0);
            for op in &side.operations {
                let calls = op.calls();
                let class = op.class.unwrap_or("-");
                let _ = writeln!(out, "  {:width$}  {:12}  {calls:>7}  {class}", op.operation, op.verdict);
                for (what, text) in op.details() {
                    let _ = writeln!(out, "      {what}: {text}");
                }
            }
            out.push('\n');
        }
        for shape in &self.shapes {
            let _ = writeln!(out, "shape {} ({}): {}", shape.shape, shape.law, lost(&shape.lost));
        }
        out
    }

    /// A document for customers.
    pub fn markdown(&self) -> String {
        let mut out = format!("# What is kept, and what changes: `{}`\n", self.pack);
        for side in &self.sides {
            let _ = writeln!(out, "\n## For clients of `{}`, answered by `{}`\n", side.side, side.backend);
            let _ = writeln!(out, "{}\n", side.headline());
            out.push_str("| Operation | Verdict | Calls | Held in memory |\n|---|---|---|---|\n");
            for op in &side.operations {
                let class = op.class.unwrap_or("–");
                let _ = writeln!(out, "| `{}` | {} | {} | {class} |", op.operation, op.verdict, op.calls());
            }
            for op in side.operations.iter().filter(|op| op.route != "refuse" && !op.details().is_empty()) {
                let _ = writeln!(out, "\n### `{}`\n", op.operation);
                for (what, text) in op.details() {
                    let _ = writeln!(out, "- **{what}**: {text}");
                }
            }
            let refused: Vec<_> = side.operations.iter().filter(|op| op.route == "refuse").collect();
            if !refused.is_empty() {
                out.push_str("\n### Refused\n\n");
                for op in refused {
                    let _ = writeln!(out, "- `{}`: {}", op.operation, op.refusals.join(" "));
                }
            }
        }
        out
    }
}

impl SideReport {
    fn headline(&self) -> String {
        format!(
            "{} in front of {}: {} operations; {} exact, {} different, {} partly, {} not possible",
            self.side,
            self.backend,
            self.operations.len(),
            self.exact,
            self.different,
            self.partly,
            self.refused,
        )
    }
}

impl OperationReport {
    fn calls(&self) -> String {
        match (self.calls_min, self.calls_max) {
            (0, 0) => "no call".to_owned(),
            (min, max) if min == max => min.to_string(),
            (min, max) => format!("{min} to {max}"),
        }
    }

    fn details(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let mut all = |what, texts: &[String]| lines.extend(texts.iter().map(|text| (what, text.clone())));
        all("differs", &self.differs);
        all("approximate", &self.approximate);
        all("despite the contract", &self.despite);
        all("refused", &self.refusals);
        if !self.lost.is_empty() {
            lines.push(("lost", lost(&self.lost)));
        }
        lines
    }
}

/// `v3 $.a, $.b (null instead); v2 $.c`
fn lost(losses: &[LossReport]) -> String {
    if losses.is_empty() {
        return "nothing is lost".to_owned();
    }
    let mut sides: Vec<&str> = losses.iter().map(|loss| loss.side.as_str()).collect();
    sides.dedup();
    sides.sort_unstable();
    sides.dedup();
    let of_side = |side: &str| {
        let places = losses.iter().filter(|loss| loss.side == side).map(|loss| match &loss.instead {
            Some(instead) => format!("{} ({instead} instead)", loss.place),
            None => loss.place.clone(),
        });
        format!("{side} {}", places.collect::<Vec<_>>().join(", "))
    };
    sides.iter().map(|side| of_side(side)).collect::<Vec<_>>().join("; ")
}
