//! The lines of a pair other than bodies: paths, queries, header fields and statuses.

use super::conversions::{fits, spelled_values};
use super::spelled::{one_line, quote};
use super::{Bodies, Drafted, RouteDraft};
use crate::contract::{Operation, Parameter, Response};
use crate::init::fields::spelling;
use crate::init::paging;
use switchback_plan::Message;

impl Bodies<'_> {
    pub(super) fn path(&self, old: &Operation, new: &Operation, route: &mut RouteDraft) -> Drafted<()> {
        let (a, b): (Vec<&str>, Vec<&str>) =
            (old.key.path.variables().collect(), new.key.path.variables().collect());
        if a.len() != b.len() {
            return Err(format!("the paths have {} and {} variables", a.len(), b.len()));
        }
        let mut lines = Vec::new();
        for (at, name) in a.iter().enumerate() {
            // Match variables by name, otherwise by position.
            let other = if b.contains(name) { name } else { &b[at] };
            if other != name {
                // Another variable of the path has that name.
                if a.contains(other) {
                    return Err(format!("the variable `{name}` of the path may be any of several"));
                }
                lines.push(format!("{}: {}", quote(name), quote(other)));
            }
        }
        if !lines.is_empty() {
            route.lines.push(format!("path: {{{}}}", lines.join(", ")));
        }
        Ok(())
    }

    pub(super) fn query(&self, old: &Operation, new: &Operation, route: &mut RouteDraft) -> Drafted<()> {
        let mut lines = Vec::new();
        let mut taken: Vec<&str> = Vec::new();
        let pages = paging::pair_parameters(old, new);
        let translated = paging::translate_paging([old, new], self.new, self.names);
        let paged = translated.as_ref().map(|paged| paged.parameters.as_slice()).unwrap_or_default();
        if let Some(translated) = &translated {
            route.lines.push(translated.line.clone());
            let why = pages.differs.as_ref().map_or("pages are asked for differently", |(_, why)| why);
            route.looks.push(format!(
                "{why}: `paging` translates them; look at the number of the first page, the sizes and the places"
            ));
        }
        for parameter in old.query.iter().filter(|parameter| !paged.contains(&parameter.name.as_str())) {
            let same = new.query.iter().find(|other| other.name == parameter.name);
            let spelt = || new.query.iter().find(|other| spelling(&other.name) == spelling(&parameter.name));
            let paged = || {
                let other = pages.renamed.iter().find(|(known, _)| *known == parameter.name)?.1;
                new.query.iter().find(|known| known.name == *other)
            };
            // By name, otherwise by spelling, otherwise by the role in pagination.
            match same.or_else(spelt).or_else(paged) {
                Some(other) if taken.contains(&other.name.as_str()) => {
                    return Err(format!("two parameters would become `{}`", other.name));
                }
                Some(other) => {
                    taken.push(&other.name);
                    lines.push(format!(
                        "{}: {}",
                        quote(&parameter.name),
                        self.parameter(parameter, other, route)
                    ));
                    if spelling(&other.name) != spelling(&parameter.name) {
                        let (from, to) = (one_line(&parameter.name), one_line(&other.name));
                        route
                            .looks
                            .push(format!("`{from}` seems to be called `{to}` now: both are about pages"));
                    }
                }
                None => {
                    route.refuses = true;
                    let name = one_line(&parameter.name);
                    lines.push(format!("{}: {{refuse: todo}}", quote(&parameter.name)));
                    route.lines.push(format!("# the parameter `{name}` has no counterpart"));
                    let about_pages = pages.differs.as_ref().filter(|(known, _)| *known == parameter.name);
                    let why = about_pages.map(|(_, why)| format!(": {why}"));
                    route.looks.push(format!(
                        "a client that sends the parameter `{name}` is refused{}",
                        why.unwrap_or_default()
                    ));
                }
            }
        }
        // A required parameter of the new side must have a source.
        let missing = new.query.iter().find(|other| other.required && !taken.contains(&other.name.as_str()));
        if let Some(missing) = missing {
            return Err(format!(
                "`{}` is required in the query, and the old side has no such parameter",
                missing.name
            ));
        }
        if !lines.is_empty() {
            route.lines.push(format!("query: {{{}}}", lines.join(", ")));
        }
        Ok(())
    }

    /// Returns the target of a query parameter, with the conversion of its values if one is certain.
    fn parameter(&self, old: &Parameter, new: &Parameter, route: &mut RouteDraft) -> String {
        let types = [self.old.types.at(&old.ty), self.new.types.at(&new.ty)];
        let table = match fits(types, Message::Request) {
            true => None,
            false => spelled_values(types, Message::Request),
        };
        route.improves |= table.is_some();
        match table {
            Some(table) => format!("{{{}: {}, {table}}}", quote(self.names[1]), quote(&new.name)),
            None => quote(&new.name),
        }
    }

    /// Checks header fields. Those that both sides declare need no line; those that only the new
    /// side declares must be optional.
    pub(super) fn headers(&self, old: &Operation, new: &Operation) -> Drafted<()> {
        let is_known = |all: &[Parameter], name: &str| {
            // The gateway sets credentials itself.
            let is_credential = self.given.credentials.contains(&name.to_ascii_lowercase());
            is_credential || all.iter().any(|header| header.name.eq_ignore_ascii_case(name))
        };
        let missing =
            new.headers.iter().find(|header| header.required && !is_known(&old.headers, &header.name));
        if let Some(missing) = missing {
            return Err(format!(
                "the header field `{}` is required, and the old side has no such field",
                missing.name
            ));
        }
        Ok(())
    }

    /// Maps successes that the old side does not declare to its first one.
    pub(super) fn statuses(&self, old: &Operation, new: &Operation, route: &mut RouteDraft) -> Drafted<()> {
        let exact = |answer: &&Response| answer.is_success();
        let statuses = |operation: &Operation| -> Vec<u16> {
            operation
                .responses
                .iter()
                .filter(exact)
                .filter_map(|answer| match answer.status {
                    crate::contract::StatusPattern::Exact(status) => Some(status),
                    _ => None,
                })
                .collect()
        };
        let (known, coming) = (statuses(old), statuses(new));
        let unknown: Vec<String> = coming
            .iter()
            .filter(|status| old.response(**status).is_none())
            .map(ToString::to_string)
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let first = known.first().ok_or("the old side knows no success")?;
        // 202 means that the work is pending, 200 that it is complete.
        for status in unknown.iter().filter(|status| *status == "202") {
            route.remarks.push(format!("the new side's {status} is told as {first}"));
        }
        route.lines.push(format!("status: {{{first}: [{}]}}", unknown.join(", ")));
        Ok(())
    }

    /// Declares server errors that only some operations list as regular results, until a person
    /// decides otherwise.
    pub(super) fn business_errors(&self, new: &Operation, route: &mut RouteDraft) {
        let lists = |operation: &Operation, status: u16| {
            let exact = crate::contract::StatusPattern::Exact(status);
            operation.responses.iter().any(|answer| answer.status == exact)
        };
        let listed = new.responses.iter().filter_map(|answer| match answer.status {
            crate::contract::StatusPattern::Exact(status) if status >= 500 => Some(status),
            _ => None,
        });
        let own: Vec<String> = listed
            // A status that all operations list is a failure of the service.
            .filter(|status| !self.new.operations.iter().all(|operation| lists(operation, *status)))
            .map(|status| status.to_string())
            .collect();
        if !own.is_empty() {
            route.lines.push(format!("business_errors: [{}]", own.join(", ")));
        }
    }
}
