//! Retirement in the admin API: usage by client, brownouts, and client sunsets.

use super::AdminParts;
use super::answer::{AdminResponse, Answer};
use super::api::parse_body;
use crate::after_sunset::{AfterSunset, after_sunset};
use crate::operate::{Refusal, moment, operation_names, suggest_client};
use http::{Request, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use switchback_gateway::body::Body;
use switchback_gateway::retire::{NewBrownout, UsageInfo};

/// Returns the calls by side, client, operation and outcome, summed over all gateways of the store.
/// With `after_sunset` in the query, returns the losses of each client once the old service is
/// gone.
pub(super) async fn usage(parts: &AdminParts, query: &str) -> Answer {
    let usage = parts.usage.list().await?;
    let names: Vec<&str> = query.split('&').filter_map(|pair| pair.split('=').next()).collect();
    match names.as_slice() {
        [""] => AdminResponse::ok(&usage),
        ["after_sunset"] => AdminResponse::ok(&after_sunset_rows(parts, &usage)),
        _ => Err(Refusal::invalid("the only parameter of this address is `after_sunset`").into()),
    }
}

/// Returns the losses of each client once the old service is gone, under the served pack and
/// settings.
pub(crate) fn after_sunset_rows(parts: &AdminParts, usage: &[UsageInfo]) -> Vec<AfterSunset> {
    let (board, program) = (parts.board.load(), parts.program.load_full());
    let (pack, settings) = (program.pack(), program.settings());
    let is_on = |name: &str| {
        pack.settings.iter().zip(0..).any(|(setting, at)| setting.name == name && settings.is_on(at))
    };
    match &board.shown {
        Some(shown) => after_sunset(usage, &shown.report, is_on),
        None => after_sunset(usage, &switchback_plan::report(pack), is_on),
    }
}

/// Returns the brownouts, earliest first, including those that ended within the last month.
pub(super) async fn brownouts(parts: &AdminParts) -> Answer {
    parts.retirement.sync().await?;
    AdminResponse::ok(&parts.retirement.brownouts())
}

pub(super) async fn sunsets(parts: &AdminParts) -> Answer {
    parts.retirement.sync().await?;
    AdminResponse::ok(&parts.retirement.sunsets())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddBrownout {
    /// Needed only if clients speak several sides.
    side: Option<String>,
    #[serde(default)]
    operations: Vec<String>,
    #[serde(default)]
    clients: Vec<String>,
    /// Confirms a window that names neither operations nor clients.
    #[serde(default)]
    everything: bool,
    /// A day or a moment (RFC 3339); `None`: now.
    from: Option<String>,
    until: String,
    #[serde(default)]
    reason: String,
}

pub(super) async fn add(parts: &AdminParts, by: &str, request: Request<Body>) -> Answer {
    let asked: AddBrownout = parse_body(request).await?;
    let from_ms = asked.from.map(|text| moment("from", &text)).transpose()?;
    let until_ms = moment("until", &asked.until)?;
    let (side, operations) = operation_names(asked.side, &asked.operations);
    let new = NewBrownout {
        side,
        operations,
        clients: asked.clients,
        everything: asked.everything,
        from_ms: from_ms.unwrap_or_else(|| parts.clock.unix_ms()),
        until_ms,
        reason: asked.reason,
        seen: None,
    };
    let added = match parts.retirement.by(by).add(new).await {
        Ok(added) => added,
        Err(error) => return Err(suggest_client(error.into(), &parts.store).await.into()),
    };
    Ok(AdminResponse::json(StatusCode::CREATED, &added))
}

pub(super) async fn remove(parts: &AdminParts, by: &str, id: &str) -> Answer {
    parts.retirement.by(by).remove(id).await?;
    AdminResponse::ok(&json!({ "removed": id }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetSunset {
    /// Needed only if clients speak several sides.
    side: Option<String>,
    /// A day or a moment (RFC 3339). Null: never, which overrides the configuration.
    at: Option<String>,
    deprecated: Option<String>,
    #[serde(default = "default_announce")]
    announce: bool,
}

fn default_announce() -> bool {
    true
}

pub(super) async fn set_sunset(parts: &AdminParts, by: &str, name: &str, request: Request<Body>) -> Answer {
    let asked: SetSunset = parse_body(request).await?;
    let at = asked.at.map(|text| moment("at", &text)).transpose()?;
    let deprecated = asked.deprecated.map(|text| moment("deprecated", &text)).transpose()?;
    let (retirement, side) = (parts.retirement.by(by), asked.side.as_deref());
    AdminResponse::ok(&retirement.set_sunset(name, side, at, deprecated, asked.announce, None).await?)
}
