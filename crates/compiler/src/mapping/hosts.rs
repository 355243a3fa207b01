//! `hosts:` of `pack.yaml`: assigns operations to hosts other than the side's own address.
//!
//! Contracts declare such hosts by `servers` of a path or an operation (OpenAPI 3.1, section
//! 4.8.9.1). Operations that the pack does not list use the side's own address.

use super::ast::{HostDecl, Manifest, Spanned};
use super::faults;
use super::routes::find_operation;
use crate::contract::{Contract, Contracts, Operation};
use crate::diagnostic::Findings;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use switchback_plan::{HostId, SideId};

/// Maximum number of hosts per side. Each host has its own connections.
pub(super) const HOSTS_MAX: usize = 32;
const NAME_BYTES_MAX: usize = 32;

/// Sets the host of each operation.
pub(super) fn place(manifest: &Manifest, contracts: &mut Contracts, findings: &mut Findings) {
    for (side, contract) in contracts.iter_mut().enumerate() {
        let hosts = &manifest.hosts[SideId(side as u8)];
        if let Some(more) = hosts.get(HOSTS_MAX) {
            findings.push(faults::too_many_hosts(&more.name, HOSTS_MAX));
            continue;
        }
        if hosts.is_empty() {
            continue;
        }
        let contract = Arc::make_mut(contract);
        let mark = findings.len();
        for host in hosts.iter().filter(|host| !is_name(&host.name.value)) {
            findings.push(faults::host_name(&host.name));
        }
        // Operations listed by key take precedence over those listed by server, regardless of their
        // order in the file.
        let mut own = HashSet::new();
        // Id 0 denotes the side's own address.
        for (host, id) in hosts.iter().zip(1..) {
            for answered in host.answers.iter().filter(|answered| !is_server(answered)) {
                let Some(found) = find_operation(contract, answered, findings) else { continue };
                let key = found.key.clone();
                set(contract, hosts, id, answered, |operation| operation.key == key, findings);
                own.insert(key);
            }
        }
        for (host, id) in hosts.iter().zip(1..) {
            for server in host.answers.iter().filter(|answered| is_server(answered)) {
                let is_at = |known: &String| without_slash(known) == without_slash(&server.value);
                let has = |operation: &Operation| operation.servers.iter().any(is_at);
                if !contract.operations.iter().any(has) {
                    findings.push(faults::unknown_server(server, &servers(contract)));
                }
                let of = |operation: &Operation| has(operation) && !own.contains(&operation.key);
                set(contract, hosts, id, server, of, findings);
            }
        }
        // An error in a host's list may be the reason that it has no operations.
        if findings.errors_since(mark) {
            continue;
        }
        for (host, id) in hosts.iter().zip(1..) {
            if !contract.operations.iter().any(|operation| operation.host == HostId(id)) {
                findings.push(faults::idle_host(&host.name));
            }
        }
    }
}

/// Assigns the operations of one line to a host.
fn set(
    contract: &mut Contract,
    hosts: &[HostDecl],
    id: u8,
    answered: &Spanned<String>,
    of: impl Fn(&Operation) -> bool,
    findings: &mut Findings,
) {
    for operation in contract.operations.iter_mut().filter(|operation| of(operation)) {
        match operation.host.place() {
            Some(first) if operation.host != HostId(id) => {
                findings.push(faults::host_twice(answered, &operation.key.to_string(), &hosts[first].name));
                // Report each line once.
                return;
            }
            _ => operation.host = HostId(id),
        }
    }
}

/// Returns the distinct servers that operations declare.
fn servers(contract: &Contract) -> Vec<&str> {
    let all = contract.operations.iter().flat_map(|one| one.servers.iter().map(String::as_str));
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

fn is_name(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Returns whether an entry is a server URL, absolute or relative to the document (OpenAPI 3.1,
/// section 4.8.5). Other entries are operation keys, which start with a method.
fn is_server(answered: &Spanned<String>) -> bool {
    answered.value.contains("://") || answered.value.starts_with('/')
}

fn without_slash(url: &str) -> &str {
    url.strip_suffix('/').unwrap_or(url)
}
