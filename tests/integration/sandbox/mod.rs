//! The sandbox over real sockets.

mod agreement;
mod client;
mod control;
mod faults;
mod messages;
mod oauth;
mod rules;
mod scale;
mod verb;

pub use client::Service;
