//! The page for people: what serves, who the clients are and how their grants stand, and what was asked how often. It
//! shows what the admin API tells, holds no script, and refreshes itself by reloading.

use super::Parts;
use super::answer::{Answer, escape, escape_lines};
use super::status::{PackStatus, ReloadOutcome};
use http::StatusCode;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use switchback_engine::diff::{OperationReport, Threshold, report as report_on};
use switchback_gateway::shadow::PhaseInfo;
use switchback_gateway::store::GrantState;
use switchback_gateway::telemetry::metrics::OUTCOMES;
use switchback_gateway::token::{ClientInfo, CredentialInfo, CredentialState};

const REFRESH_SECONDS: u32 = 10;

pub(super) fn style() -> Answer {
    Answer::text(StatusCode::OK, "text/css; charset=utf-8", include_str!("dashboard.css"))
}

pub(super) async fn page(parts: &Parts) -> Answer {
    let status = parts.board.load();
    let clients = match parts.registry.list().await {
        Ok(clients) => clients_table(&clients),
        Err(_) => "<p class=\"bad\">The store does not answer; the log says why.</p>\n".to_owned(),
    };
    let differences = match parts.archive.summaries().await {
        Ok(summaries) => differences_table(&report_on(&summaries, Threshold::default()).operations),
        Err(_) => "<p class=\"bad\">The store does not answer; the log says why.</p>\n".to_owned(),
    };
    let body = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"refresh\" content=\"{REFRESH_SECONDS}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Switchback</title>\n\
         <link rel=\"stylesheet\" href=\"/dashboard.css\">\n<h1>Switchback</h1>\n\
         <h2>Pack</h2>\n{}<h2>Clients</h2>\n{clients}<h2>Operations</h2>\n{}<h2>Phases</h2>\n{}<h2>Differences</h2>\n{differences}\
         <p class=\"quiet\">The same as JSON: <a href=\"/api/pack\">pack</a>, <a href=\"/api/clients\">clients</a>, \
         <a href=\"/api/operations\">operations</a>, <a href=\"/api/phases\">phases</a>, \
         <a href=\"/api/diff\">differences</a>, <a href=\"/api/config\">configuration</a>. \
         <a href=\"/metrics\">Metrics</a>.</p>\n</html>\n",
        pack(&status.pack),
        operations_table(&parts.metrics.requests_by_operation()),
        phases_table(&parts.phases.list()),
    );
    Answer::html(StatusCode::OK, body)
}

fn pack(pack: &PackStatus) -> String {
    let facts = [
        ("Name", pack.name.as_str()),
        ("From", &pack.source),
        ("Loaded", &pack.loaded_at),
        ("Hash", pack.hash.get(..16).unwrap_or(&pack.hash)),
    ];
    let mut html = "<table>\n".to_owned();
    for (name, value) in facts {
        let _ = writeln!(html, "<tr><th>{name}<td>{}", escape(value));
    }
    html.push_str("</table>\n");
    html.push_str(&pack.last_reload.as_ref().map(reload).unwrap_or_default());
    html
}

fn reload(outcome: &ReloadOutcome) -> String {
    let at = escape(&outcome.at);
    let mut html = match &outcome.error {
        None => format!("<p class=\"good\">Reloaded at {at}.</p>\n"),
        Some(error) => format!(
            "<p class=\"bad\">The reload at {at} failed; what was loaded before goes on serving.</p>\n<pre>{}</pre>\n",
            escape_lines(error)
        ),
    };
    if !outcome.needs_restart.is_empty() {
        let keys = escape(&outcome.needs_restart.join(", "));
        let _ = writeln!(html, "<p class=\"bad\">Changes of {keys} take a restart.</p>");
    }
    html
}

fn clients_table(clients: &[ClientInfo]) -> String {
    if clients.is_empty() {
        return "<p class=\"quiet\">None yet: <code>switchback client add</code>.</p>\n".to_owned();
    }
    let mut html =
        "<table>\n<tr><th>Name<th>Company<th>Tokens<th>Grant<th>Access token until<th>Credentials\n"
            .to_owned();
    for client in clients {
        let state = client.revoked_at.as_ref().map_or(client.grant.state.name(), |_| "revoked");
        // Nobody misses the grant of a client whose calls go out with something else.
        let is_unused = client.grant.state == GrantState::Unconnected && !client.credentials.is_empty();
        let class = match state {
            "active" => "good",
            "unconnected" if is_unused => "quiet",
            _ => "bad",
        };
        let reason = client.grant.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let _ = writeln!(
            html,
            "<tr><td>{}<td>{}<td class=\"number\">{}<td class=\"{class}\">{}{}<td>{}{}",
            escape(&client.name),
            escape(client.company.as_deref().unwrap_or("main")),
            client.tokens,
            escape(&state.replace('_', " ")),
            escape(&reason),
            escape(client.grant.expires_at.as_deref().unwrap_or("unknown")),
            credentials(client),
        );
    }
    html + "</table>\n"
}

/// What calls go out with to sides that have no grants.
fn credentials(client: &ClientInfo) -> String {
    let cell = |credential: &CredentialInfo| {
        let class = if credential.state == CredentialState::Active { "good" } else { "bad" };
        format!("<span class=\"{class}\">{} {}</span>", escape(&credential.side), credential.state.name())
    };
    format!("<td>{}", client.credentials.iter().map(cell).collect::<Vec<_>>().join(", "))
}

fn operations_table(table: &BTreeMap<String, BTreeMap<String, u64>>) -> String {
    if table.is_empty() {
        return "<p class=\"quiet\">No request yet.</p>\n".to_owned();
    }
    let mut html = "<table>\n<tr><th>Operation".to_owned();
    for outcome in OUTCOMES {
        let _ = write!(html, "<th>{}", outcome.as_str().replace('_', " "));
    }
    html.push('\n');
    for (operation, outcomes) in table {
        let _ = write!(html, "<tr><td>{}", escape(operation));
        for outcome in OUTCOMES {
            let _ =
                write!(html, "<td class=\"number\">{}", outcomes.get(outcome.as_str()).copied().unwrap_or(0));
        }
        html.push('\n');
    }
    html + "</table>\n"
}

fn phases_table(operations: &[PhaseInfo]) -> String {
    let mut html = "<table>\n<tr><th>Operation<th>Phase<th>Share<th>Set by<th>Since\n".to_owned();
    for info in operations {
        let share = info.now.share.map(|share| share.to_string()).unwrap_or_default();
        let _ = writeln!(
            html,
            "<tr><td>{}<td>{}<td class=\"number\">{share}<td>{}<td>{}",
            escape(&info.operation),
            info.now.phase,
            escape(&info.from),
            escape(info.since.as_deref().unwrap_or_default()),
        );
    }
    html + "</table>\n"
}

fn differences_table(operations: &[OperationReport]) -> String {
    if operations.is_empty() {
        return "<p class=\"quiet\">Nothing was compared yet: <code>switchback phase set</code>.</p>\n"
            .to_owned();
    }
    let mut html =
        "<table>\n<tr><th>Operation<th>Phase<th>Compared<th>Different<th>At most<th>What differs most<th>Next\n"
            .to_owned();
    for operation in operations {
        let top = operation
            .top
            .first()
            .map(|top| format!("{} {}{}, {}", top.kind.word(), top.pattern, top.reading(), top.cause));
        let _ = writeln!(
            html,
            "<tr><td>{}<td>{}<td class=\"number\">{}<td class=\"number\">{}<td class=\"number\">{:.2} %<td>{}<td>{}",
            escape(&operation.operation),
            escape(&operation.phase),
            operation.counts.compared(),
            operation.counts.different,
            operation.mismatch_bound * 100.0,
            escape(&top.unwrap_or_default()),
            escape(&operation.next),
        );
    }
    html + "</table>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_gateway::token::GrantInfo;

    const HOSTILE: &str = "\"><script>alert(1)</script><img src=x onerror='alert(1)'>";

    fn is_tame(html: &str) -> bool {
        !html.contains("<script") && !html.contains("<img")
    }

    #[test]
    fn hostile_names_and_errors_are_shown_as_text() {
        let hostile = || HOSTILE.to_owned();
        let client = ClientInfo {
            name: hostile(),
            company: Some(hostile()),
            created_at: hostile(),
            revoked_at: None,
            damaged: false,
            tokens: 1,
            token_sides: vec![Some(hostile())],
            credentials: vec![CredentialInfo {
                side: hostile(),
                state: CredentialState::Refused,
                refused_at: Some(hostile()),
                set_at: hostile(),
            }],
            grant: GrantInfo {
                state: GrantState::NeedsReconnect,
                reason: Some(hostile()),
                generation: 1,
                issued_at: None,
                expires_at: Some(hostile()),
            },
        };
        let clients = clients_table(&[client]);
        assert!(is_tame(&clients) && clients.contains("&lt;script&gt;"), "{clients}");
        let outcome = ReloadOutcome {
            succeeded: false,
            at: hostile(),
            error: Some(hostile()),
            needs_restart: vec![hostile()],
        };
        let pack = pack(&PackStatus {
            name: hostile(),
            source: hostile(),
            hash: hostile(),
            loaded_at: hostile(),
            generation: 1,
            last_reload: Some(outcome),
        });
        assert!(is_tame(&pack) && pack.contains("&lt;script&gt;"), "{pack}");
        let table = BTreeMap::from([(hostile(), BTreeMap::from([("ok".to_owned(), 3)]))]);
        let operations = operations_table(&table);
        assert!(is_tame(&operations) && operations.contains("<td class=\"number\">3"), "{operations}");
    }
}
