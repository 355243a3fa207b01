//! Syntax tree of archives: declarations, the steps that store and look up entries, and harvests
//! that fill archives from a side.

use super::{Block, Expr, Predicate, SideRef, Spanned};
use crate::diagnostic::Span;

/// One entry of `archives:`.
#[derive(Debug)]
pub(crate) struct Archive {
    pub name: Spanned<String>,
    pub about: Spanned<String>,
    /// `None` if entries consist of their keys alone.
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
    /// `steps:`, with `page:` as the answer of the block.
    pub block: Block,
    /// `page: path`: the list on the fetched page.
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

/// `each: {name: list}`. It has no bound because it makes no calls.
#[derive(Debug)]
pub(crate) struct EachOf {
    pub name: Spanned<String>,
    pub list: Spanned<String>,
}
