//! Syntax tree of archives: declarations, the steps that store and look up entries, and harvests
//! that fill archives from a side.

use super::{BlockDecl, ExprDecl, PredicateDecl, SideRef, Spanned};
use crate::diagnostic::Span;

/// One entry of `archives:`.
#[derive(Debug)]
pub(crate) struct ArchiveDecl {
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
pub(crate) struct HarvestDecl {
    pub name: Spanned<String>,
    pub about: Spanned<String>,
    /// `from: v1`
    pub from: SideRef,
    /// `steps:`, with `page:` as the answer of the block.
    pub block: BlockDecl,
    /// `page: path`: the list on the fetched page.
    pub page: Spanned<String>,
    pub span: Span,
}

/// `recall: NAME, key: value`, with `each: {name: list}` and `when: predicate`
#[derive(Debug)]
pub(crate) struct RecallDecl {
    pub archive: Spanned<String>,
    pub key: ExprDecl,
    pub each: Option<EachOfDecl>,
    pub when: Option<PredicateDecl>,
}

/// `keep: NAME, key: value, value: value`, with `each: {name: list}` and `when: predicate`
#[derive(Debug)]
pub(crate) struct KeepDecl {
    pub archive: Spanned<String>,
    pub key: ExprDecl,
    pub value: Option<ExprDecl>,
    pub each: Option<EachOfDecl>,
    pub when: Option<PredicateDecl>,
}

/// `each: {name: list}`. It has no bound because it makes no calls.
#[derive(Debug)]
pub(crate) struct EachOfDecl {
    pub name: Spanned<String>,
    pub list: Spanned<String>,
}
