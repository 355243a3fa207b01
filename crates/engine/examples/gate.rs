//! Simulates services and measures how often the gate decides wrongly, for planted differences,
//! races, resets and clients that send invalid calls. Only the readings are simulated; [`settle`],
//! [`Counts`] and [`Gate`] are the program's own code.
//!
//! `cargo run -p switchback-engine --example gate -- --runs 1000` prints a table in Markdown.

use fastrand::Rng;
use std::time::Duration;
use switchback_engine::diff::{
    Cause, Comparison, Counts, Finding, FindingKind, Party, Readings, Settled, SkipReason, Step, is_accepted,
    settle, settle_unfinished,
};
use switchback_engine::evidence::{Counted, Gate, Policy, Stage, Timed, Transition};

/// Maximum number of calls in one run. A run stops earlier when the gate decides.
const CALLS: u64 = 2_500;
/// Number of readings between two evaluations of the latency, which is the slowest step of a run.
const TIMES_LOOKED_AT: u64 = 25;
/// Simulated time between two calls.
const CALL_MS: u64 = 10_000;

/// Two services and their clients. Every field but `slower` is a probability.
#[derive(Clone, Copy, Default)]
struct World {
    /// The candidate renders a resource wrongly, on every reading.
    steady: f64,
    /// A single reading of the candidate is wrong, independently of earlier ones.
    random: f64,
    /// The same client writes through the gateway between two readings.
    known_writes: f64,
    /// A write that the gateway does not see happens between two readings.
    other_writes: f64,
    /// A call is cut off. The call is then repeated once.
    resets: f64,
    /// A call is a write.
    writes: f64,
    /// Both sides refuse a write, and its plan violates the contract.
    invalid: f64,
    /// The plan of a valid write violates the contract.
    wrong_plans: f64,
    /// The effect of a write reads back differently.
    wrong_effects: f64,
    /// Factor by which the candidate is slower. Above 0, the policy demands a latency and every
    /// reading is timed.
    slower: f64,
}

/// The kind of decision that must be rare in a scenario.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Promotion,
    Rollback,
    /// Both kinds must be rare: the true rate equals the tolerated one.
    Either,
}

struct Scenario {
    name: &'static str,
    stage: Stage,
    world: World,
    wrong: Wrong,
}

/// The outcomes of all runs of a scenario.
#[derive(Default)]
struct Tally {
    promoted: u64,
    rolled_back: u64,
    /// Number of calls before the decision, for each run that reached one.
    calls: Vec<u64>,
}

fn scenarios() -> Vec<Scenario> {
    let mut all = Vec::new();
    let mut add = |name, stage, world, wrong| all.push(Scenario { name, stage, world, wrong });
    for stage in [Stage::Shadow, Stage::Canary] {
        let none = World::default();
        add("equal sides", stage, none, Wrong::Rollback);
        add("steady 0.1 %", stage, World { steady: 0.001, ..none }, Wrong::Rollback);
        add("steady 1 %", stage, World { steady: 0.01, ..none }, Wrong::Either);
        add("steady 5 %", stage, World { steady: 0.05, ..none }, Wrong::Promotion);
        add("steady 20 %", stage, World { steady: 0.2, ..none }, Wrong::Promotion);
        add("random 0.1 %", stage, World { random: 0.001, ..none }, Wrong::Rollback);
        // The rate is above the limit because a wrong answer that repeats by chance counts as a
        // difference.
        add("random 1 %", stage, World { random: 0.01, ..none }, Wrong::Either);
        add("random 2 %", stage, World { random: 0.02, ..none }, Wrong::Promotion);
        add("random 5 %", stage, World { random: 0.05, ..none }, Wrong::Promotion);
        add("random 20 %", stage, World { random: 0.2, ..none }, Wrong::Promotion);
        let writes = World { known_writes: 0.1, ..none };
        add("races, 10 % of readings", stage, writes, Wrong::Rollback);
        add("races and random 2 %", stage, World { random: 0.02, ..writes }, Wrong::Promotion);
        add("unseen races, 0.5 %", stage, World { other_writes: 0.005, ..none }, Wrong::Rollback);
        let resets = World { resets: 0.05, ..none };
        add("resets, 5 % of calls", stage, resets, Wrong::Rollback);
        add("resets and steady 5 %", stage, World { steady: 0.05, ..resets }, Wrong::Promotion);
        let timed = |slower| World { slower, ..none };
        add("as fast, at most 1.5x demanded", stage, timed(1.0), Wrong::Rollback);
        add("1.5 times slower, as much demanded", stage, timed(1.5), Wrong::Promotion);
        add("twice as slow, at most 1.5x demanded", stage, timed(2.0), Wrong::Promotion);
        let write = World { writes: 1.0, ..none };
        add("invalid clients, 10 % of writes", stage, World { invalid: 0.1, ..write }, Wrong::Rollback);
        add("wrong plans, 5 % of writes", stage, World { wrong_plans: 0.05, ..write }, Wrong::Promotion);
        add(
            "wrong effects, 0.1 % of writes",
            stage,
            World { wrong_effects: 0.001, ..write },
            Wrong::Rollback,
        );
        add("wrong effects, 5 % of writes", stage, World { wrong_effects: 0.05, ..write }, Wrong::Promotion);
        add("wrong effects, all", stage, World { wrong_effects: 1.0, ..write }, Wrong::Promotion);
    }
    all
}

/// A reading: the version of the data, and how the answer is wrong (0: correct).
#[derive(Clone, Copy, PartialEq)]
struct Reading {
    version: u64,
    wrong: u64,
}

fn compare(reference: &Reading, other: &Reading) -> Comparison {
    let finding = || Finding::new("$.value", FindingKind::Value, Cause::Upstream);
    let findings = if reference == other { Vec::new() } else { vec![finding()] };
    Comparison { findings, ..Comparison::default() }
}

/// A call and its contribution to the counts.
struct Call<'w> {
    world: &'w World,
    random: &'w mut Rng,
    version: u64,
    is_steady: bool,
    /// Set if a write through the gateway happened after the call.
    is_written: bool,
}

impl Call<'_> {
    fn happens(&mut self, chance: f64) -> bool {
        chance > 0.0 && self.random.f64() < chance
    }

    /// Reads one side, some time after the previous reading. Returns `None` if two attempts failed.
    fn read(&mut self, party: Party) -> Option<Reading> {
        if self.happens(self.world.known_writes) {
            self.version += 1;
            self.is_written = true;
        }
        if self.happens(self.world.other_writes) {
            self.version += 1;
        }
        if self.happens(self.world.resets) && self.happens(self.world.resets) {
            return None;
        }
        let wrong = match party {
            Party::Reference => 0,
            Party::Candidate if self.happens(self.world.random) => self.random.u64(2..),
            Party::Candidate => u64::from(self.is_steady),
        };
        Some(Reading { version: self.version, wrong })
    }

    fn compared(&mut self, first: Party, counts: &mut Counts) {
        let (of_first, of_second) = match first {
            Party::Reference => (self.read(Party::Reference), self.read(Party::Candidate)),
            Party::Candidate => (self.read(Party::Candidate), self.read(Party::Reference)),
        };
        let (Some(first_reading), Some(second)) = (of_first, of_second) else {
            counts.skip(SkipReason::CandidateFailed);
            return;
        };
        let (reference, candidate) = match first {
            Party::Reference => (first_reading, second),
            Party::Candidate => (second, first_reading),
        };
        let is_written = first == Party::Candidate && self.is_written;
        let mut readings =
            Readings { first, is_written, references: vec![reference], candidates: vec![candidate] };
        let settled = loop {
            let party = match settle(&readings, compare) {
                Step::End(settled) => break Some(settled),
                Step::Ask(party) => party,
            };
            match (party, self.read(party)) {
                (Party::Reference, Some(reading)) => readings.references.push(reading),
                (Party::Candidate, Some(reading)) => readings.candidates.push(reading),
                (_, None) => break settle_unfinished(&readings, compare),
            }
        };
        match settled {
            Some(Settled::Compared(found)) => counts.add(found.verdict(), &found.findings, found.excused),
            Some(Settled::Unsettled(found)) => counts.add_unsettled(&found.findings, found.excused),
            Some(Settled::Moved) => counts.skip(SkipReason::Moved),
            None => counts.skip(SkipReason::CandidateFailed),
        }
    }

    fn written(&mut self, stage: Stage, counts: &mut Counts) {
        let is_invalid = self.happens(self.world.invalid);
        if !is_accepted(if is_invalid { 400 } else { 204 }) {
            counts.skip(SkipReason::NotAccepted);
            return;
        }
        if stage == Stage::Shadow {
            let is_wrong = self.happens(self.world.wrong_plans);
            counts.add_planned(&compare(&reading(0), &reading(u64::from(is_wrong))).findings);
        }
        let is_wrong = self.happens(self.world.wrong_effects);
        let found = compare(&reading(0), &reading(u64::from(is_wrong)));
        counts.add_read_back(found.verdict(), &found.findings);
    }
}

fn reading(wrong: u64) -> Reading {
    Reading { version: 0, wrong }
}

/// Returns a long-tailed duration whose median is 20 ms times `slower`.
fn time(random: &mut Rng, slower: f64) -> Duration {
    let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
    Duration::from_secs_f64(0.02 * slower * (normal * 0.4).exp())
}

/// Simulates one period in a phase, with a decision after every call.
fn run(scenario: &Scenario, gate: &Gate, seed: u64) -> (Option<Transition>, u64) {
    let mut random = Rng::with_seed(seed);
    let (mut counts, stage) = (Counts::default(), scenario.stage);
    let (mut timed, mut latency) = (Timed::default(), gate.latency(&Timed::default()));
    let first = if stage == Stage::Shadow { Party::Reference } else { Party::Candidate };
    for number in 1..=CALLS {
        let is_steady = scenario.world.steady > 0.0 && random.f64() < scenario.world.steady;
        let mut call =
            Call { world: &scenario.world, random: &mut random, version: 0, is_steady, is_written: false };
        if call.happens(scenario.world.writes) {
            call.written(stage, &mut counts);
        } else {
            call.compared(first, &mut counts);
        }
        if scenario.world.slower > 0.0 {
            let (reference, candidate) = (time(&mut random, 1.0), time(&mut random, scenario.world.slower));
            timed.add(reference, candidate);
            if number % TIMES_LOOKED_AT == 0 {
                latency = gate.latency(&timed);
            }
        }
        let counted = Counted { latency, ..counts.evidence() };
        let transition = gate.step(stage, counted, number * CALL_MS);
        if !matches!(transition, Transition::None(_)) {
            return (Some(transition), number);
        }
    }
    (None, CALLS)
}

fn policy(world: &World) -> Policy {
    let latency_max = if world.slower > 0.0 { [Some(1.5), Some(1.5), None] } else { [None; 3] };
    Policy { latency_max, ..Policy::default() }
}

fn runs(scenario: &Scenario, runs: u64) -> Tally {
    let gate = Gate::new(policy(&scenario.world));
    let mut tally = Tally::default();
    for seed in 0..runs {
        let (transition, calls) = run(scenario, &gate, seed);
        match transition {
            Some(Transition::Promote { .. }) => tally.promoted += 1,
            Some(Transition::RollBack { .. }) => tally.rolled_back += 1,
            Some(Transition::None(_)) | None => continue,
        }
        tally.calls.push(calls);
    }
    tally.calls.sort_unstable();
    tally
}

impl Tally {
    /// Returns the number of runs with a wrong decision. At the tolerated rate, the more frequent
    /// kind counts.
    fn wrong(&self, wrong: Wrong) -> u64 {
        match wrong {
            Wrong::Promotion => self.promoted,
            Wrong::Rollback => self.rolled_back,
            Wrong::Either => self.promoted.max(self.rolled_back),
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--runs").skip(1);
    let count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    println!(
        "| Phase | Scenario | Runs | Wrong decisions | Share | Promised | Promoted | Rolled back | Median calls |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for scenario in scenarios() {
        let tally = runs(&scenario, count);
        let wrong = tally.wrong(scenario.wrong);
        println!(
            "| {} | {} | {count} | {wrong} | {:.1} % | ≤ {:.0} % | {} | {} | {} |",
            scenario.stage.word(),
            scenario.name,
            wrong as f64 / count as f64 * 100.0,
            (1.0 - Policy::default().confidence) * 100.0,
            tally.promoted,
            tally.rolled_back,
            tally.calls.get(tally.calls.len() / 2).map_or_else(|| "–".to_owned(), u64::to_string),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: u64 = 40;

    /// Returns the number of runs that may be wrong: the guaranteed share plus four standard
    /// deviations of the binomial distribution.
    fn tolerated(runs: u64) -> f64 {
        let chance = 1.0 - Policy::default().confidence;
        let mean = runs as f64 * chance;
        mean + 4.0 * (mean * (1.0 - chance)).sqrt()
    }

    #[test]
    fn no_scenario_is_decided_wrongly_more_often_than_promised() {
        for scenario in scenarios() {
            let (tally, phase) = (runs(&scenario, RUNS), scenario.stage.word());
            let wrong = tally.wrong(scenario.wrong);
            assert!(wrong as f64 <= tolerated(RUNS), "{phase}, {}: {wrong} of {RUNS}", scenario.name);
        }
    }

    /// A gate that never decides is never wrong, so correct decisions need a test of their own.
    #[test]
    fn equal_sides_are_promoted_and_wrong_ones_rolled_back() {
        let of = |name: &str, stage: Stage| {
            let all = scenarios();
            let scenario = all.iter().find(|one| one.name == name && one.stage == stage);
            runs(scenario.unwrap_or_else(|| panic!("no scenario `{name}`")), RUNS)
        };
        for stage in [Stage::Shadow, Stage::Canary] {
            for name in [
                "equal sides",
                "races, 10 % of readings",
                "resets, 5 % of calls",
                "as fast, at most 1.5x demanded",
            ] {
                assert_eq!(of(name, stage).promoted, RUNS, "{name}");
            }
        }
        for name in ["steady 5 %", "random 5 %", "wrong effects, 5 % of writes"] {
            let rolled_back = of(name, Stage::Canary).rolled_back;
            assert!(rolled_back * 10 >= RUNS * 9, "{name}: {rolled_back} of {RUNS} are rolled back");
        }
    }

    #[test]
    fn a_rate_is_measured_as_it_is_whichever_side_answers() {
        for (first, writes) in [(Party::Reference, 0.1), (Party::Candidate, 0.0), (Party::Candidate, 0.1)] {
            let world = World { random: 0.05, known_writes: writes, ..World::default() };
            let (mut random, mut counts) = (Rng::with_seed(7), Counts::default());
            for _ in 0..20_000 {
                let mut call = Call {
                    world: &world,
                    random: &mut random,
                    version: 0,
                    is_steady: false,
                    is_written: false,
                };
                call.compared(first, &mut counts);
            }
            let rate = (counts.different + counts.unsettled) as f64 / counts.compared_count() as f64;
            assert!(
                (0.035..0.06).contains(&rate),
                "{first:?} with writes {writes}: 5 % is measured as {rate}"
            );
        }
    }
}
