//! Archives as written: what is kept, the steps that keep and look up, and how a side is read to fill them.

use super::{Block, Expr, Predicate, SideRef, Spanned};
use crate::diagnostic::Span;

/// One entry of `archives:`.
#[derive(Debug)]
pub(crate) struct Archive {
    pub name: Spanned<String>,
    pub about: Spanned<String>,
    /// None where entries are their keys alone.
    pub value: Option<ArchiveValue>,
}

/// `value: {v1: Type}`, or `{v1: Type, field: name}` for a field of it.
#[derive(Debug)]
pub(crate) struct ArchiveValue {
    pub side: SideRef,
    pub ty: Spanned<String>,
    pub field: Option<Spanned<String>>,
}

/// One entry of `harvests:`.
#[derive(Debug)]
pub(crate) struct Harvest {
    pub name: Spanned<String>,
    pub about: Spanned<String>,
    /// `from: v1`
    pub from: SideRef,
    /// `steps:`, and `page:` as its answer.
    pub block: Block,
    /// `page: path`: the list that one page brought.
    pub page: Spanned<String>,
    pub span: Span,
}

/// `recall: NAME, key: value`, with `each: {name: list}` and `when: predicate`
#[derive(Debug)]
pub(crate) struct Recall {
    pub archive: Spanned<String>,
    pub key: Expr,
    pub each: Option<EachOf>,
    pub when: Option<Predicate>,
}

/// `keep: NAME, key: value, value: value`, with `each: {name: list}` and `when: predicate`
#[derive(Debug)]
pub(crate) struct Keep {
    pub archive: Spanned<String>,
    pub key: Expr,
    pub value: Option<Expr>,
    pub each: Option<EachOf>,
    pub when: Option<Predicate>,
}

/// `each: {name: list}` without a bound: nothing is called.
#[derive(Debug)]
pub(crate) struct EachOf {
    pub name: Spanned<String>,
    pub list: Spanned<String>,
}
