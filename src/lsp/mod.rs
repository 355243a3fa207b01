//! A language server for packs: findings as typed, completion, descriptions, definitions, renames and
//! corrections over the Language Server Protocol. The compiler decides everything about a pack; this
//! room translates its results. Each answer is computed from the files as the editor shows them.

mod complete;
mod memory;
mod names;
mod pack;
mod server;
mod text;

pub use memory::MemoryPack;
pub use server::run;
