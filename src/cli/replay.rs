//! `switchback replay`: replays recorded traffic through a pack that may have changed.

use super::output::{COULD_NOT_RUN, HAS_FINDINGS, Progress, count_noun};
use super::pack::{PackArg, SettingsArg, fail};
use super::stored::{Format, OutputArgs};
use crate::replay::{Fronts, Live, ReplayChange, ReplayOutcome, ReplayVerdict, Replayer};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use switchback_engine::har::{self, Exchange, Malformed};
use switchback_engine::redact::Salt;
use switchback_gateway::http_client::ServiceAddress;
use switchback_gateway::tls::ServiceTls;
use switchback_plan::{Pack, Side};

/// Runs the exchanges of an HTTP Archive (HAR) through a pack and reports the answers and the calls to the
/// other version that differ from the recording.
///
/// Archives of `switchback capture` contain the calls with their replies and run offline. Archives of
/// browsers and proxies do not: with --upstream, calls are sent to a live service and its answers are
/// compared with the recorded ones.
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 nothing that was judged changed, 1 something changed, or more exchanges than --max-unknown could not be judged, \
    2 wrong use, 3 nothing could be judged.\n\n\
    Examples:\n  switchback replay traffic.har mappings/things\n  \
    switchback replay browser.har --front https://old.example/api=v1 --upstream http://127.0.0.1:9003/v2 \
    --header 'Authorization: Bearer …'"
)]
pub struct ReplayArgs {
    /// Archive; - for standard input
    #[arg(value_name = "FILE.har")]
    archive: PathBuf,

    #[command(flatten)]
    pack: PackArg,

    /// Base of a side in the recording, such as https://old.example/api=v1 or /api=v1; repeat for several
    /// [default: the path segment with the name of the side]
    #[arg(long = "front", value_name = "PREFIX=SIDE")]
    fronts: Vec<String>,

    #[command(flatten)]
    settings: SettingsArg,

    /// Send calls to this service instead of using recorded replies
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,

    /// Address of a further host of the side, by its name in the pack; repeat for several. Calls to a host
    /// without an address cannot be compared
    #[arg(long = "host", value_name = "NAME=URL", requires = "upstream")]
    hosts: Vec<String>,

    /// Header field of every call; repeat for several. ${NAME} is replaced by the environment variable
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "upstream")]
    headers: Vec<String>,

    /// Also send operations with side effects, which take effect again
    #[arg(long, requires = "upstream")]
    effects: bool,

    /// Also fail if more than this share of exchanges cannot be compared, such as 10%
    #[arg(long, value_name = "SHARE", value_parser = percent)]
    max_unknown: Option<f64>,

    /// Also fail if an exchange cannot be compared: --max-unknown 0%
    #[arg(long, conflicts_with = "max_unknown")]
    strict: bool,

    /// Number of exchanges printed in full
    #[arg(long, value_name = "N", default_value_t = 20)]
    show: usize,

    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &ReplayArgs) -> Result<ExitCode, ExitCode> {
    let failed = |why: String| fail(COULD_NOT_RUN, format_args!("switchback replay: {why}"));
    let tally = replay(args, args.pack.pack()?).map_err(failed)?;
    let said = match args.output.format() {
        Format::Text => tally.text(args.upstream.is_some()),
        Format::Json => format!("{:#}\n", tally.to_json()),
    };
    print!("{said}");
    Ok(tally.exit_code(if args.strict { Some(0.0) } else { args.max_unknown }))
}

fn replay(args: &ReplayArgs, pack: Arc<Pack>) -> Result<ReplayTally, String> {
    let settings = args.settings.resolve(&pack)?;
    let mut fronts = Fronts::from_pack(&pack);
    args.fronts.iter().try_for_each(|text| fronts.add(text)).map_err(|error| error.to_string())?;
    let mut salt = [0; 32];
    getrandom::fill(&mut salt).map_err(|error| format!("the system gives no random bytes: {error}"))?;
    let hosts = hosts_of(&pack, &args.hosts)?;
    let replayer = Replayer::new(pack, settings, fronts, Salt::new(salt));
    let input = open(&args.archive).map_err(|error| format!("{}: {error}", args.archive.display()))?;
    let mut tally = ReplayTally::new(args.show);
    let mut progress = Progress::new();
    let outcome = match &args.upstream {
        None => har::parse(input, |entry| {
            tally.add(entry, |exchange| replayer.offline(exchange));
            tally.show(&mut progress);
        }),
        Some(upstream) => {
            let headers =
                args.headers.iter().map(|text| expand_variables(text)).collect::<Result<Vec<_>, _>>()?;
            let at = |url: &String| ServiceAddress { url: url.clone(), tls: ServiceTls::default() };
            let live = Live::new(&at(upstream), &headers, args.effects)
                .and_then(|live| live.with_hosts(hosts.iter().map(|url| url.as_ref().map(at))))
                .map_err(|error| error.to_string())?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| format!("no run time: {error}"))?;
            har::parse(input, |entry| {
                tally.add(entry, |exchange| runtime.block_on(live.run(&replayer, exchange)));
                tally.show(&mut progress);
            })
        }
    };
    progress.end();
    outcome.map_err(|error| format!("{}: {error}", args.archive.display()))?;
    Ok(tally)
}

/// Returns the URLs of the pack's hosts, in its order, from arguments `NAME=URL`. A replay calls
/// one side, so all names must belong to the same one.
fn hosts_of(pack: &Pack, given: &[String]) -> Result<Vec<Option<String>>, String> {
    let mut pairs = Vec::new();
    for text in given {
        pairs.push(text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=URL"))?);
    }
    let has_all = |side: &&Side| pairs.iter().all(|(name, _)| side.hosts.iter().any(|host| host == name));
    // The new side first: without any name, both sides have all hosts.
    let Some(side) = pack.sides.iter().rev().find(has_all) else {
        let known: Vec<&str> =
            pack.sides.iter().flat_map(|side| side.hosts.iter().map(String::as_str)).collect();
        return Err(format!("no side of the pack has all these hosts; it names {}", known.join(", ")));
    };
    let url =
        |host: &String| pairs.iter().rev().find(|(name, _)| name == host).map(|(_, url)| (*url).to_owned());
    Ok(side.hosts.iter().map(url).collect())
}

/// Parses `10%` as a fraction of one.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    let share = number.filter(|number| (0.0..=100.0).contains(number)).map(|number| number / 100.0);
    share.ok_or_else(|| "expected a share such as 10%".to_owned())
}

fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path.as_os_str() == "-" { Ok(Box::new(io::stdin().lock())) } else { Ok(Box::new(File::open(path)?)) }
}

/// Replaces `${NAME}` with the environment variable: other users can read a command line, so
/// credentials must not be part of it.
fn expand_variables(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}').ok_or("a `${` in a header is never closed")?;
        let value = std::env::var(name).map_err(|_| format!("the environment has no variable `{name}`"))?;
        out.push_str(before);
        out.push_str(&value);
        rest = after;
    }
    Ok(out + rest)
}

#[derive(Clone, Debug, Default)]
struct ReplayCounts {
    same: u64,
    /// Those of `same` that are planned writes, for which only the calls were compared.
    calls_only: u64,
    changed: u64,
    unknown: u64,
    /// The number of unknown exchanges, by reason.
    reasons: BTreeMap<String, u64>,
}

impl ReplayCounts {
    fn add(&mut self, verdict: &ReplayVerdict) {
        match verdict {
            ReplayVerdict::Same => self.same += 1,
            ReplayVerdict::SameCalls => {
                self.same += 1;
                self.calls_only += 1;
            }
            ReplayVerdict::Changed(_) => self.changed += 1,
            ReplayVerdict::Unknown(why) => self.add_unknown(why.to_string()),
        }
    }

    fn add_unknown(&mut self, why: String) {
        self.unknown += 1;
        *self.reasons.entry(why).or_default() += 1;
    }

    fn judged_count(&self) -> u64 {
        self.same + self.changed
    }

    fn to_json(&self) -> serde_json::Value {
        let ReplayCounts { same, calls_only, changed, unknown, reasons } = self;
        json!({"same": same, "calls_only": calls_only, "changed": changed, "unknown": unknown, "reasons": reasons})
    }
}

/// The results of all exchanges.
struct ReplayTally {
    show: usize,
    exchanges: usize,
    total: ReplayCounts,
    operations: BTreeMap<String, ReplayCounts>,
    /// Whether a gateway recorded any exchange.
    has_gateway: bool,
    malformed: Vec<Malformed>,
    /// Changed exchanges with the number of their entry, up to `show`.
    changed: Vec<(usize, Exchange, ReplayOutcome)>,
}

impl ReplayTally {
    fn new(show: usize) -> ReplayTally {
        ReplayTally {
            show,
            exchanges: 0,
            total: ReplayCounts::default(),
            operations: BTreeMap::new(),
            has_gateway: false,
            malformed: Vec::new(),
            changed: Vec::new(),
        }
    }

    fn add(&mut self, entry: Result<Exchange, Malformed>, run: impl FnOnce(&Exchange) -> ReplayOutcome) {
        self.exchanges += 1;
        let exchange = match entry {
            Ok(exchange) => exchange,
            Err(malformed) => {
                self.total.add_unknown("the entry is malformed".to_owned());
                if self.malformed.len() < self.show {
                    self.malformed.push(malformed);
                }
                return;
            }
        };
        self.has_gateway |= exchange.gateway.is_some();
        let outcome = run(&exchange);
        self.count(&outcome);
        if matches!(outcome.verdict, ReplayVerdict::Changed(_)) && self.changed.len() < self.show {
            self.changed.push((self.exchanges, exchange, outcome));
        }
    }

    fn show(&self, progress: &mut Progress) {
        progress.show(format_args!("{} exchanges, {} changed", self.exchanges, self.total.changed));
    }

    fn count(&mut self, outcome: &ReplayOutcome) {
        let counts = outcome.operation.as_ref().map(|name| self.operations.entry(name.clone()).or_default());
        for counts in counts.into_iter().chain([&mut self.total]) {
            counts.add(&outcome.verdict);
        }
    }

    /// Returns the exit code. `unknown_max` is the largest permitted share of unknown exchanges;
    /// `None`: any.
    fn exit_code(&self, unknown_max: Option<f64>) -> ExitCode {
        let ReplayCounts { same, changed, unknown, .. } = self.total;
        let share = unknown as f64 / (self.exchanges.max(1)) as f64;
        match () {
            // Changes take precedence: they are findings even if most exchanges could not be judged.
            () if changed > 0 || unknown_max.is_some_and(|most| share > most) => ExitCode::from(HAS_FINDINGS),
            // Success without any judged exchange would suggest that the pack was verified.
            () if same == 0 => ExitCode::from(COULD_NOT_RUN),
            () => ExitCode::SUCCESS,
        }
    }

    fn text(&self, is_live: bool) -> String {
        let mut out = String::new();
        for malformed in &self.malformed {
            let _ = writeln!(out, "{malformed}");
        }
        for (number, exchange, outcome) in &self.changed {
            let operation = outcome.operation.as_deref().unwrap_or_default();
            let asked = format!("{} {}", exchange.request.method, exchange.request.url);
            let _ = writeln!(out, "entry {number}: {operation} ({asked})");
            for change in changes(outcome) {
                let _ = writeln!(out, "    {change}");
            }
        }
        let not_shown = self.total.changed - self.changed.len() as u64;
        if not_shown > 0 {
            let _ = writeln!(out, "and {not_shown} more that changed (--show {})", self.total.changed);
        }
        let width = self.operations.keys().map(String::len).max().unwrap_or(0);
        for (name, ReplayCounts { same, changed, unknown, .. }) in &self.operations {
            let _ = writeln!(out, "{name:width$}  {same} the same, {changed} changed, {unknown} unknown");
        }
        let ReplayCounts { same, calls_only, changed, unknown, reasons } = &self.total;
        let _ = writeln!(
            out,
            "{}: {} judged ({same} the same, {changed} changed), {unknown} unknown",
            count_noun(self.exchanges as u64, "exchange"),
            self.total.judged_count()
        );
        if *calls_only > 0 {
            let _ = writeln!(
                out,
                "    {calls_only} the same by their calls alone: writes that were planned and not sent have no answer"
            );
        }
        for (why, count) in reasons {
            let _ = writeln!(out, "    {count} unknown: {why}");
        }
        if let Some(advice) = self.advice(is_live) {
            let _ = writeln!(out, "{advice}");
        }
        out
    }

    /// Returns advice for a replay without any judged exchange.
    fn advice(&self, is_live: bool) -> Option<&'static str> {
        match () {
            () if self.total.judged_count() > 0 => None,
            () if self.exchanges == 0 => Some("The archive has no exchanges."),
            () if self.operations.is_empty() => Some(
                "Nothing could be judged: no exchange is a call of the API. --front says where clients spoke it.",
            ),
            () if !self.has_gateway && !is_live => Some(
                "Nothing could be judged: the archive has no calls of a gateway. --upstream asks a live service instead.",
            ),
            () => Some("Nothing could be judged."),
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let changed = self.changed.iter().map(|(number, exchange, outcome)| {
            json!({
                "entry": number,
                "method": exchange.request.method,
                "url": exchange.request.url,
                "operation": outcome.operation,
                "calls": outcome.calls,
                "changes": changes(outcome).map(ToString::to_string).collect::<Vec<_>>(),
            })
        });
        let operations = self.operations.iter().map(|(name, of)| (name.clone(), of.to_json()));
        json!({
            "exchanges": self.exchanges,
            "judged": self.total.judged_count(),
            "total": self.total.to_json(),
            "operations": operations.collect::<serde_json::Map<_, _>>(),
            "unknown": self.total.reasons,
            "malformed": self.malformed.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "changed": changed.collect::<Vec<_>>(),
        })
    }
}

fn changes(outcome: &ReplayOutcome) -> impl Iterator<Item = &ReplayChange> {
    match &outcome.verdict {
        ReplayVerdict::Changed(changes) => changes.iter(),
        _ => [].iter(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::UnknownReason;

    fn tally(verdicts: Vec<(Option<&str>, ReplayVerdict)>, is_by_gateway: bool) -> ReplayTally {
        let mut tally = ReplayTally::new(20);
        for (operation, verdict) in verdicts {
            let gateway = is_by_gateway.then(har::Gateway::default);
            let exchange = Exchange { gateway, ..Exchange::default() };
            let operation = operation.map(str::to_owned);
            tally.add(Ok(exchange), |_| ReplayOutcome {
                operation,
                calls: Vec::new(),
                verdict,
                is_by_kind: false,
            });
        }
        tally
    }

    #[test]
    fn the_text_says_how_many_were_judged_how_far_and_why_the_rest_was_not() {
        let list = Some("v2 GET /things");
        let tally = tally(
            vec![
                (list, ReplayVerdict::Same),
                (list, ReplayVerdict::Unknown(UnknownReason::Forwarded)),
                (Some("v2 POST /things"), ReplayVerdict::SameCalls),
                (None, ReplayVerdict::Unknown(UnknownReason::Foreign)),
            ],
            true,
        );
        assert_eq!(
            tally.text(false),
            "v2 GET /things   1 the same, 0 changed, 1 unknown\n\
             v2 POST /things  1 the same, 0 changed, 0 unknown\n\
             4 exchanges: 2 judged (2 the same, 0 changed), 2 unknown\n    \
             1 the same by their calls alone: writes that were planned and not sent have no answer\n    \
             1 unknown: not a call of the API\n    \
             1 unknown: the old service answered it, and nobody asked the other side\n"
        );
        let json = tally.to_json();
        assert_eq!(json["total"]["calls_only"], 1);
        assert_eq!(
            json["operations"]["v2 GET /things"]["reasons"],
            json!({"the old service answered it, and nobody asked the other side": 1})
        );
    }

    #[test]
    fn what_to_do_is_said_where_nothing_could_be_judged() {
        let unknown = |operation, why| vec![(operation, ReplayVerdict::Unknown(why))];
        let list = Some("v2 GET /things");
        for (tally, wanted) in [
            (tally(Vec::new(), false), "The archive has no exchanges.\n"),
            (tally(unknown(None, UnknownReason::Foreign), false), "--front says where clients spoke it.\n"),
            (
                tally(unknown(list, UnknownReason::NoReply), false),
                "--upstream asks a live service instead.\n",
            ),
            (
                tally(unknown(list, UnknownReason::Forwarded), true),
                "    1 unknown: the old service answered it, and nobody asked the other side\nNothing could be judged.\n",
            ),
        ] {
            assert!(tally.text(false).ends_with(wanted), "{wanted}: {}", tally.text(false));
        }
    }
}
