//! Mapping files → plans: what is written (`ast`), whether it is right, and what it means.

pub mod ast;
