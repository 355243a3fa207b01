//! The cost of the store by its size: findings of a dual run, up to a million, and replicas on one
//! PostgreSQL, from one to four. Gateways are processes, as in production, in front of a sandbox;
//! cargo builds the measured program for this bench. Prints a table for each, with the exponent of
//! growth of each measure between its two largest sizes.
//!
//! `cargo bench --bench store` measures both (about five minutes), `cargo bench --bench store --
//! findings` or `replicas` one of them; `cargo test --bench store` runs both once at a tiny size.

mod findings;
mod gateway;
#[path = "../../tests/integration/support/postgres.rs"]
#[expect(dead_code, reason = "what tests of full disks need")]
mod postgres;
mod replicas;
mod table;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        return;
    }
    // `cargo bench` passes this flag; `cargo test` does not.
    let is_whole = arguments.iter().any(|argument| argument == "--bench");
    let named: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|argument| !argument.starts_with("--")).collect();
    let wanted = |name: &str| named.is_empty() || named.iter().any(|part| name.contains(part));
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Runtime::new().expect("threads can be made");
    runtime.block_on(async {
        if wanted("findings") {
            findings::measure(is_whole).await;
        }
        if wanted("replicas") {
            replicas::measure(is_whole).await;
        }
    });
}
