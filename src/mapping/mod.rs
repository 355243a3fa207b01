//! Mapping files → plans: what is written (`ast`, `syntax`, `load`), whether it is right, and what it means.

pub mod ast;
pub mod examples;
pub mod lens;
mod literal;
pub mod load;
pub mod names;
pub mod syntax;
