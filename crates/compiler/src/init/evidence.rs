//! Evidence for and against the guess that one operation was renamed to another. A person reads it
//! before accepting the guess.

use super::fields::{spelling, words};
use crate::contract::{Contract, Operation, Type, Types};
use std::collections::BTreeSet;

/// Arguments for and against a guess.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GuessEvidence {
    pub supports: Vec<String>,
    pub contradicts: Vec<String>,
}

impl GuessEvidence {
    /// Compares the documentation of the two operations.
    pub(super) fn add_documents(&mut self, [old, new]: [&Operation; 2], contracts: [&Contract; 2]) {
        self.compare_ids(old, new);
        self.compare_texts(old, new);
        self.compare_members("request", [old, new].map(request_type), contracts);
        self.compare_members("answer", [old, new].map(answer_type), contracts);
        if !old.key.method.is_safe() {
            self.contradicts
                .push(format!("{} changes data: a wrong counterpart is destructive", old.key.method));
        }
    }

    /// Renders both lists in parentheses, for use after the guess.
    pub(super) fn render(&self) -> String {
        let list = |all: &[String]| if all.is_empty() { "nothing".to_owned() } else { all.join("; ") };
        format!("(for: {}. Against: {})", list(&self.supports), list(&self.contradicts))
    }

    fn compare_ids(&mut self, old: &Operation, new: &Operation) {
        match (old.id.as_deref(), new.id.as_deref()) {
            (Some(a), Some(b)) if a == b => self.supports.push(format!("both have the `operationId` `{a}`")),
            (Some(a), Some(b)) => self.contradicts.push(format!("the `operationId` was `{a}` and is `{b}`")),
            _ => {}
        }
    }

    /// Compares summaries. They agree if half of their words do.
    fn compare_texts(&mut self, old: &Operation, new: &Operation) {
        let (Some(a), Some(b)) = (old.summary.as_deref(), new.summary.as_deref()) else { return };
        let (a, b) = (words(a), words(b));
        let most = a.len().max(b.len());
        if most == 0 {
            return;
        }
        let shared = a.intersection(&b).count() * 100 / most;
        let list = if shared >= 50 { &mut self.supports } else { &mut self.contradicts };
        list.push(format!("{shared} % of the words of their summaries agree"));
    }

    /// Compares the members of bodies. They agree if half of the names do.
    fn compare_members(&mut self, body: &str, types: [Option<&Type>; 2], contracts: [&Contract; 2]) {
        let names = |side: usize| members(types[side]?, &contracts[side].types);
        let list = match (names(0), names(1)) {
            (Some(a), Some(b)) if !a.is_empty() || !b.is_empty() => {
                let (shared, most) = (a.intersection(&b).count(), a.len().max(b.len()));
                let list = if shared * 2 >= most { &mut self.supports } else { &mut self.contradicts };
                list.push(format!("{shared} of {most} members of the {body} have the same name"));
                return;
            }
            (None, Some(_)) | (Some(_), None) => &mut self.contradicts,
            _ => return,
        };
        list.push(format!("only one side describes the members of the {body}"));
    }
}

fn request_type(operation: &Operation) -> Option<&Type> {
    Some(&operation.body.as_ref()?.ty)
}

fn answer_type(operation: &Operation) -> Option<&Type> {
    operation.success_bodies().next()
}

/// Returns the normalized names of the members of an object, or of the objects in a list.
fn members(ty: &Type, types: &Types) -> Option<BTreeSet<String>> {
    let ty = types.at(ty);
    let object = ty.items().unwrap_or(ty).object()?;
    Some(object.fields.iter().map(|field| spelling(&field.name)).collect())
}
