#![doc = include_str!("README.md")]

pub mod admin;
pub(crate) mod after_sunset;
pub mod app;
pub mod cli;
pub mod config;
pub(crate) mod figures;
pub mod harvest;
pub mod lsp;
pub(crate) mod operate;
pub mod playground;
pub mod replay;
pub(crate) mod requests;
pub(crate) mod studio;
