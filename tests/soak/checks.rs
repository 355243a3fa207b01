//! The invariants at the end: the answers to clients in comparison with the service's state, the
//! output of replicas in comparison with the secrets, the decisions of the gate, and the growth of
//! memory.

use crate::Args;
use crate::disturb::Disturbed;
use crate::faults::Proxy;
use crate::load::{Book, Client, Kind, Told, number, own};
use crate::replicas::{ADMIN_TOKEN, Replica, Setting, V3_TOKEN};
use serde_json::Value;
use sqlx::{Connection as _, PgConnection};
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use switchback_sandbox::Sandbox;

/// The result.
pub struct Verdict {
    notes: Vec<String>,
    wrong: Vec<String>,
}

/// Lines about one kind of wrong that are shown; the rest is counted.
const SHOWN_MAX: usize = 12;

impl Verdict {
    pub fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        for wrong in &self.wrong {
            writeln!(f, "WRONG: {wrong}")?;
        }
        match self.wrong.len() {
            0 => write!(f, "verdict: right"),
            count => write!(f, "verdict: wrong in {count} ways"),
        }
    }
}

/// The data for all checks.
pub struct Seen<'s> {
    pub setting: &'s Setting,
    pub service: &'s Sandbox,
    pub replicas: &'s [Arc<Replica>; 2],
    pub proxies: &'s [Proxy; 2],
    pub book: &'s Book,
}

pub async fn verdict(args: &Args, seed: u64, seen: Seen<'_>, disturbed: Disturbed) -> Verdict {
    let mut verdict = Verdict { notes: Vec::new(), wrong: disturbed.wrong.clone() };
    verdict.notes.push(format!("seed {seed}, {} minutes at {} a second", args.minutes, args.rate));
    told(&seen, &disturbed, &mut verdict);
    alive(&seen, &mut verdict).await;
    effects(&seen, &mut verdict).await;
    gate(&seen, &mut verdict).await;
    leaks(&seen, &mut verdict).await;
    memory(args, &seen, &mut verdict);
    for replica in seen.replicas {
        if let Err(why) = replica.end().await {
            verdict.wrong.push(why);
        }
    }
    verdict
}

fn told(seen: &Seen<'_>, disturbed: &Disturbed, verdict: &mut Verdict) {
    let mut table = String::new();
    let mut last = String::new();
    for ((what, status), count) in seen.book.statuses() {
        let begins = if what == last { String::new() } else { format!("\n  {what:<18}") };
        let _ = write!(table, "{begins} {status} × {count}");
        last = what;
    }
    let (median, late) = seen.book.times();
    let notes = &mut verdict.notes;
    notes.push(format!(
        "{} requests, {} ticks passed over:{table}",
        seen.book.requests(),
        seen.book.passed_over()
    ));
    notes.push(format!("half were answered within {median:.1} ms, 99 of 100 within {late:.0} ms"));
    for (name, proxy) in ["v2", "v3"].iter().zip(seen.proxies) {
        let (calls, reset) = proxy.counts();
        notes.push(format!("{name}: {calls} calls, {reset} of them reset"));
    }
    let Disturbed { expired, stalls, reloads, ends, .. } = disturbed;
    notes.push(format!(
        "tokens ended {expired} times, the store stalled {stalls} times, {reloads} reloads, a replica ended {} times, \
         within {:.1} s at most",
        ends.len(),
        ends.iter().copied().fold(0.0, f64::max)
    ));
    let wrong = seen.book.wrong();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for line in &wrong {
        *kinds.entry(line.clone()).or_default() += 1;
    }
    let shown = kinds.iter().take(SHOWN_MAX).map(|(line, times)| format!("{line} ({times} times)"));
    verdict.wrong.extend(shown);
    if kinds.len() > SHOWN_MAX {
        verdict
            .wrong
            .push(format!("{} further answers that nobody should have got", kinds.len() - SHOWN_MAX));
    }
}

/// Every client is still served: no grant was lost.
async fn alive(seen: &Seen<'_>, verdict: &mut Verdict) {
    for replica in seen.replicas {
        verdict.wrong.extend(replica.has_died());
        for client in &seen.book.clients {
            if !is_served(seen, replica, client).await {
                verdict
                    .wrong
                    .push(format!("{} is no longer served by replica {}", client.name, replica.name));
            }
        }
    }
}

async fn is_served(seen: &Seen<'_>, replica: &Replica, client: &Client) -> bool {
    let (front, header) = if client.is_modern { ("v3", "authorization") } else { ("v2", "x-authorization") };
    // Some of these meet a reset.
    for _ in 0..30 {
        let url = format!("http://{}/{front}/chats/{}", replica.clients, client.chat);
        let asked = seen.setting.http.get(url).header(header, format!("Bearer {}", client.token));
        if asked.send().await.is_ok_and(|answer| answer.status().is_success()) {
            return true;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    false
}

/// An acknowledged write exists once, another one at most once, and each belongs to its client.
async fn effects(seen: &Seen<'_>, verdict: &mut Verdict) {
    let (service, setting) = (seen.service.address(), seen.setting);
    let mut found: HashMap<String, Vec<Option<i64>>> = HashMap::new();
    let mut cities: HashMap<usize, String> = HashMap::new();
    for (at, client) in seen.book.clients.iter().enumerate() {
        let messages = all(setting, service, client, &format!("/chats/{}/messages", client.chat)).await;
        for message in messages.unwrap_or_else(|why| complain(verdict, why)) {
            let mark =
                message["body"].as_str().and_then(|text| text.split_whitespace().next()).unwrap_or_default();
            found.entry(mark.to_owned()).or_default().push(number(&message["sender"]["id"]));
        }
        if client.is_modern {
            continue;
        }
        // Everybody of a company sees the same contacts.
        if matches!(client.name, "administrator" | "second-company") {
            for contact in
                all(setting, service, client, "/contacts").await.unwrap_or_else(|why| complain(verdict, why))
            {
                let mark = contact["email"].as_str().and_then(|email| email.strip_suffix("@example.test"));
                found.entry(mark.unwrap_or_default().to_owned()).or_default().push(None);
            }
        }
        match city(seen, client).await {
            Ok(city) => drop(cities.insert(at, city)),
            Err(why) => verdict.wrong.push(why),
        }
    }
    let writes = seen.book.writes();
    let mut counts: BTreeMap<(Kind, &str), u64> = BTreeMap::new();
    for write in &writes {
        let word = match write.told {
            Told::Done => "acknowledged",
            Told::Unknown => "left open",
            Told::Refused => "refused",
        };
        *counts.entry((write.kind, word)).or_default() += 1;
        if write.kind == Kind::Edit {
            continue;
        }
        let client = &seen.book.clients[write.client];
        let senders = found.get(&write.mark).map_or(&[][..], Vec::as_slice);
        let mark = &write.mark;
        match (write.told, senders.len()) {
            (Told::Done, 1) | (Told::Unknown, 0 | 1) | (Told::Refused, 0) => {}
            (Told::Done, 0) => verdict.wrong.push(format!("lost: {mark} was acknowledged and is not there")),
            (Told::Refused, 1) => verdict.wrong.push(format!("{mark} was refused and is there")),
            (_, times) => verdict.wrong.push(format!("doubled: {mark} is there {times} times")),
        }
        for sender in senders.iter().flatten().filter(|sender| **sender != client.agent) {
            verdict
                .wrong
                .push(format!("crossed: {mark} was written as agent {sender}, not {}", client.agent));
        }
    }
    for (at, city) in &cities {
        let edits: Vec<_> =
            writes.iter().filter(|write| write.kind == Kind::Edit && write.client == *at).collect();
        let Some(last) = edits.iter().rposition(|write| write.told == Told::Done) else { continue };
        if !edits[last..].iter().any(|write| write.mark == *city) {
            let name = seen.book.clients[*at].name;
            verdict.wrong.push(format!("lost: the contact of {name} shows {city}, not {}", edits[last].mark));
        }
    }
    let known: std::collections::HashSet<&str> = writes.iter().map(|write| write.mark.as_str()).collect();
    let strange =
        found.keys().filter(|mark| mark.starts_with("soak-") && !known.contains(mark.as_str())).count();
    if strange > 0 {
        verdict.wrong.push(format!("{strange} things are there that nobody wrote"));
    }
    let counts: Vec<String> =
        counts.iter().map(|((kind, word), count)| format!("{kind:?} {word} {count}")).collect();
    verdict.notes.push(format!("writes: {}", counts.join(", ")));
}

fn complain(verdict: &mut Verdict, why: String) -> Vec<Value> {
    verdict.wrong.push(format!("the service does not say what it knows: {why}"));
    Vec::new()
}

/// All pages of a list.
async fn all(
    setting: &Setting,
    service: SocketAddr,
    client: &Client,
    path: &str,
) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    for page in 0.. {
        let list = own(setting, service, client, "GET", &format!("{path}?page={page}"), None).await?;
        match list {
            Value::Array(list) if !list.is_empty() => found.extend(list),
            _ => break,
        }
    }
    Ok(found)
}

/// The city of a client's contact, which v3 alone shows: by any token that is still good for it.
async fn city(seen: &Seen<'_>, client: &Client) -> Result<String, String> {
    for token in seen.proxies.iter().flat_map(Proxy::tokens) {
        let url = format!("http://{}/v3/contacts/{}", seen.service.address(), client.contact);
        let asked =
            seen.setting.http.get(url).bearer_auth(token).send().await.map_err(|error| error.to_string())?;
        if !asked.status().is_success() {
            continue;
        }
        let contact: Value = asked.json().await.map_err(|error| error.to_string())?;
        return Ok(contact["city"].as_str().unwrap_or_default().to_owned());
    }
    Err(format!("no token is good for the contact of {}", client.name))
}

/// Both sides are the same service, so no rollback may occur.
async fn gate(seen: &Seen<'_>, verdict: &mut Verdict) {
    let transitions = seen.replicas[0].json(seen.setting, "/api/phases/transitions").await;
    let transitions = transitions.as_array().cloned().unwrap_or_default();
    let line = |one: &Value| {
        format!("{} from {} to {}: {}", one["operation"], one["from"], one["to"], one["evidence"])
            .replace('"', "")
    };
    verdict.notes.push(format!("{} transitions of the gate", transitions.len()));
    for one in transitions.iter().rev() {
        match one["to"] == "shadow" {
            true => verdict.wrong.push(format!("rolled back: {}", line(one))),
            false => verdict.notes.push(format!("  {}", line(one))),
        }
    }
    let report = seen.replicas[0].json(seen.setting, "/api/diff").await;
    for operation in report["operations"].as_array().into_iter().flatten() {
        let counts = &operation["counts"];
        let count = |name: &str| counts[name].as_u64().unwrap_or(0);
        verdict.notes.push(format!(
            "  {} {}: {} equal, {} different; {} plans, {} wrong; {} read back, {} different; without an answer {} and {}",
            operation["operation"].as_str().unwrap_or_default(),
            operation["phase"].as_str().unwrap_or_default(),
            count("equal"),
            count("different"),
            count("planned"),
            count("planned_wrong"),
            count("read_back"),
            count("read_back_different"),
            count("reference_unanswered"),
            count("candidate_unanswered"),
        ));
        for finding in operation["top"].as_array().into_iter().flatten() {
            verdict
                .notes
                .push(format!("    {} {} × {}", finding["kind"], finding["pattern"], finding["calls"]));
        }
    }
}

/// Searches all output for secrets and for texts of customers.
async fn leaks(seen: &Seen<'_>, verdict: &mut Verdict) {
    let mut secrets: Vec<(String, String)> = vec![
        ("the admin token".to_owned(), ADMIN_TOKEN.to_owned()),
        ("the v3 client's token".to_owned(), V3_TOKEN.to_owned()),
        ("the sealing key".to_owned(), seen.setting.key.clone()),
        ("the app's secret".to_owned(), seen.service.credentials().client_secret.clone()),
        ("a customer's text".to_owned(), seen.setting.canary.clone()),
    ];
    for account in &seen.service.credentials().accounts {
        secrets.push((format!("the v2 token of {}", account.role), account.v2_token.clone()));
        secrets.push((format!("the refresh token of {}", account.role), account.refresh_token.clone()));
    }
    for proxy in seen.proxies {
        secrets.extend(proxy.tokens().into_iter().map(|token| ("a token of a call".to_owned(), token)));
    }
    let mut shown: Vec<(String, String)> = Vec::new();
    for replica in seen.replicas {
        let pages = [
            "/metrics",
            "/",
            "/api/diff",
            "/api/diff/export",
            "/api/phases",
            "/api/phases/transitions",
            "/api/operations",
            "/api/pack",
            "/api/clients",
            "/api/config",
            "/api/status",
        ];
        for page in pages {
            let text = replica.admin(seen.setting, page).await.unwrap_or_default();
            shown.push((format!("{page} of {}", replica.name), text));
        }
    }
    let logs =
        std::fs::read_dir(&seen.setting.folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for log in logs.filter(|path| path.extension().is_some_and(|extension| extension == "log")) {
        shown.push((
            log.display().to_string(),
            String::from_utf8_lossy(&std::fs::read(&log).unwrap_or_default()).into_owned(),
        ));
    }
    match tables(seen.setting).await {
        Ok(tables) => shown.extend(tables),
        Err(error) => verdict.wrong.push(format!("the store cannot be searched: {error}")),
    }
    let bytes: usize = shown.iter().map(|(_, text)| text.len()).sum();
    let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (what, secret) in &secrets {
        let hex = secret.bytes().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        for (place, text) in &shown {
            let times = text.matches(secret.as_str()).count() + text.matches(&hex).count();
            if times > 0 {
                *found.entry((what.clone(), place.clone())).or_default() += times;
            }
        }
    }
    verdict.notes.push(format!(
        "{} secrets were looked for in {} places, {} MiB of logs, metrics, evidence, exports and tables",
        secrets.len(),
        shown.len(),
        bytes >> 20
    ));
    let leaked =
        found.iter().map(|((what, place), times)| format!("leaked: {what} in {place}, {times} times"));
    verdict.wrong.extend(leaked.take(SHOWN_MAX));
}

/// Every row of every table, as text.
async fn tables(setting: &Setting) -> Result<Vec<(String, String)>, sqlx::Error> {
    let mut connection = PgConnection::connect(&setting.store).await?;
    let names: Vec<(String,)> = sqlx::query_as("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        .fetch_all(&mut connection)
        .await?;
    let mut all = Vec::new();
    for (name,) in names {
        let reading = format!("SELECT row_to_json(t)::text FROM \"{name}\" t");
        let rows: Vec<(String,)> =
            sqlx::query_as(sqlx::AssertSqlSafe(reading)).fetch_all(&mut connection).await?;
        let text = rows.into_iter().map(|(row,)| row + "\n").collect();
        all.push((format!("the table {name}"), text));
    }
    Ok(all)
}

fn memory(args: &Args, seen: &Seen<'_>, verdict: &mut Verdict) {
    for replica in seen.replicas {
        if let Some(folder) = &args.keep {
            // A sample that cannot be stored must not prevent the verdict.
            let _ = std::fs::write(folder.join(format!("{}-memory.csv", replica.name)), replica.samples());
        }
        let Some((life, slope)) = replica.growth(args.warm_up) else {
            verdict.notes.push(format!("memory of {}: too few samples to say anything", replica.name));
            continue;
        };
        let hours = slope.samples as f64 * 5.0 / 3600.0;
        let said = format!(
            "memory of {} in its life {life}: {:+.2} MiB an hour, 95 %: {:+.2} to {:+.2} ({} samples over {:.0} minutes)",
            replica.name,
            slope.slope,
            slope.low,
            slope.high,
            slope.samples,
            hours * 60.0
        );
        // A short life is dominated by its start, and is not informative for an hour.
        let is_short = hours < 0.25;
        match slope.low > 0.0 && !is_short && args.minutes >= 20.0 {
            true => verdict.wrong.push(format!("{said}: it grows")),
            false if is_short => verdict.notes.push(format!("{said}; too short a life to judge")),
            false => verdict.notes.push(said),
        }
    }
}
