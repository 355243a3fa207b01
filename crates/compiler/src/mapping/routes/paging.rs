//! Compiles `paging:` of a route: checks both sides against their contracts, and lowers the
//! parameters and members that clients of the served side use to those of the other side's service.

use super::calls::success_body;
use super::faults;
use super::route::{PagedNames, RouteCheck};
use crate::contract::{Operation, ScalarKind, Type, TypeIn, TypeKind};
use crate::mapping::ast::{BodyDecl, FieldPlace, NextPageDecl, PagedRoute, PagedSideDecl, PairDecl, Spanned};
use crate::mapping::lens::field_type;
use std::sync::Arc;
use switchback_plan::{self as plan, CompareKind, CompareRule, Key, LastPage, PagedBy, SideId};

/// Default maximum of calls for one page.
const UPTO: u32 = 20;

/// String formats of links.
const LINK_FORMATS: [&str; 5] = ["uri", "uri-reference", "url", "iri", "iri-reference"];
/// Names of link relations (IANA link relations registry), plus common variants.
const RELATIONS: [&str; 6] = ["first", "last", "prev", "previous", "self", "start"];

/// Expected type of a member that describes pages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PageMember {
    Text,
    /// A cursor, a page number or an offset.
    Position,
    Boolean,
    Integer,
    List,
}

impl PageMember {
    fn word(self) -> &'static str {
        match self {
            PageMember::Text => "a text",
            PageMember::Position => "a text or an integer",
            PageMember::Boolean => "a boolean",
            PageMember::Integer => "an integer",
            PageMember::List => "a list",
        }
    }

    fn fits(self, ty: TypeIn<'_>) -> bool {
        match (self, ty.types.resolve(ty.ty).kind) {
            (_, TypeKind::Any) | (PageMember::List, TypeKind::Array(_)) => true,
            (_, TypeKind::Scalar(scalar)) => match self {
                PageMember::Text => scalar.kind == ScalarKind::String,
                PageMember::Position => matches!(scalar.kind, ScalarKind::String | ScalarKind::Integer),
                PageMember::Boolean => scalar.kind == ScalarKind::Boolean,
                PageMember::Integer => scalar.kind == ScalarKind::Integer,
                PageMember::List => false,
            },
            _ => false,
        }
    }
}

impl<'a> RouteCheck<'_, 'a> {
    /// Claims the parameters and members that `paging` handles, before the route is checked: it
    /// reads and sends the former and writes the latter.
    pub(super) fn begin_paging(&mut self, paging: Option<&PagedRoute>) {
        let Some(paging) = paging else { return };
        let [own, other] = [self.serves.place(), self.serves.other().place()];
        for parameter in paging.sides[own].parameters() {
            self.summary.reads.places.insert(format!("request.query.{}", parameter.value));
        }
        let names = |side: &PagedSideDecl| side.parameters().map(|name| name.value.clone()).collect();
        let members = |side: &PagedSideDecl| side.members().map(|place| place.0.clone()).collect();
        self.paged = PagedNames {
            parameters: [names(&paging.sides[own]), names(&paging.sides[other])],
            members: paging.sides.each_ref().map(members),
            is_faulty: false,
        };
    }

    /// Reports lines of a pair that `paging` makes redundant. Call it once per pair.
    pub(super) fn paged_twice(&mut self, pair: &PairDecl) {
        let Some(paging) = &pair.paging else { return };
        if let Some(call) = &paging.call {
            self.findings.push(faults::paged_call_of_pair(call));
        }
        let names = |side: usize| -> Vec<&str> {
            paging.sides[side].parameters().map(|name| name.value.as_str()).collect()
        };
        let lines = pair.query.lines.iter().flat_map(|line| [(0, &line.old), (1, &line.new)]);
        let constants = pair.query.constants.iter().map(|constant| (constant.side.side, &constant.name));
        let refused = pair.query.refused.iter().map(|refused| (0, &refused.name));
        let twice: Vec<_> = lines
            .chain(constants)
            .chain(refused)
            .filter(|(side, name)| names(*side).contains(&name.value.as_str()))
            .map(|(_, name)| faults::paged_twice(name))
            .take(1)
            .collect();
        self.findings.extend(twice);
    }

    /// Warns about other links next to the one to the next page, in a response that passes
    /// unchanged: they point to the service, not to the gateway.
    pub(super) fn kept_links(&mut self, pair: &PairDecl) {
        let (Some(paging), Some(BodyDecl::Keep(span))) = (&pair.paging, &pair.response) else { return };
        let side = self.serves;
        let Some(NextPageDecl::LinkMember(next)) =
            paging.sides[side.place()].next.as_ref().map(|told| &told.value)
        else {
            return;
        };
        let Some((answer, _)) = success_body(self.operation) else { return };
        let Some((name, around)) = next.0.split_last() else { return };
        let around = FieldPlace(around.to_vec());
        let types = self.env.types(side);
        let Some((beside, _)) = field_type(types.at(answer), &around) else { return };
        let TypeKind::Object(object) = types.resolve(beside.ty).kind else { return };
        let links = object.fields.iter().filter(|field| field.name != *name);
        let links = links.filter(|field| match types.resolve(&field.ty).kind {
            TypeKind::Scalar(scalar) => {
                let format = scalar.format.as_deref().unwrap_or_default();
                // Few contracts declare a format, so the usual names of relations count as well.
                let is_link = LINK_FORMATS.contains(&format) || RELATIONS.contains(&field.name.as_str());
                scalar.kind == ScalarKind::String && is_link
            }
            _ => false,
        });
        let next = place_text(next);
        for link in links {
            let place = FieldPlace(around.0.iter().cloned().chain([link.name.clone()]).collect());
            self.findings.push(faults::kept_link(*span, &place_text(&place), &next));
        }
    }

    /// Compiles the paging of a `serve` route for the call that reads a page. An outer `None` is an
    /// error.
    pub(super) fn paging_of_serve(
        &mut self,
        paging: Option<&'a PagedRoute>,
    ) -> Option<Option<Arc<plan::Paging>>> {
        let Some(paging) = paging else { return Some(None) };
        let mut called: Vec<&Operation> = Vec::new();
        for operation in &self.summary.called {
            // A route may contain the same call in several branches.
            if !called.iter().any(|known| known.key == operation.key) {
                called.push(operation);
            }
        }
        let keys: Vec<String> = called.iter().map(|operation| operation.key.to_string()).collect();
        let names: Vec<&str> = keys.iter().map(String::as_str).collect();
        let found = match &paging.call {
            Some(call) => match names.iter().position(|name| *name == call.value) {
                Some(at) => called[at],
                None => {
                    let message = format!("the route makes no call `{}`", call.value);
                    self.findings.push(faults::paged_call(call.span, message, &names));
                    return None;
                }
            },
            None => match called.as_slice() {
                [one] => *one,
                _ => {
                    let message = "the route makes several calls, or none".to_owned();
                    self.findings.push(faults::paged_call(paging.span, message, &names));
                    return None;
                }
            },
        };
        self.paging(paging, found).map(Some)
    }

    /// Compiles a route's paging in this direction. Returns `None` if it reports an error.
    pub(super) fn paging(&mut self, paging: &PagedRoute, called: &Operation) -> Option<Arc<plan::Paging>> {
        let mark = self.findings.len();
        let [own, other] = [self.serves, self.serves.other()];
        let client = self.paged_side(&paging.sides[own], self.operation, own);
        let service = self.paged_side(&paging.sides[other], called, other);
        if super::operations::effect(&called.key.method, None) == plan::Effect::Write {
            let message = format!("`{}` writes, and has no pages", called.key);
            self.findings.push(faults::paged_call(paging.span, message, &[]));
        }
        let (client, service) = (client?, service?);
        self.check_next_page(paging, &client, &service);
        self.sizes(paging, &client, &service);
        let upto = match &paging.upto {
            // The bound only applies if a page is found by reading the ones before it.
            Some(upto) if ![0, 1].into_iter().any(|side| paging.walks(side)) => {
                self.findings.push(faults::page_bound(upto.span));
                return None;
            }
            Some(upto) => upto.value as u32,
            None => UPTO,
        };
        if self.findings.errors_since(mark) {
            return None;
        }
        let origin = self.env.origin(paging.span);
        Some(Arc::new(plan::Paging { client, service, call: called.key.to_string().into(), upto, origin }))
    }

    fn paged_side(
        &mut self,
        written: &PagedSideDecl,
        operation: &Operation,
        side: SideId,
    ) -> Option<plan::PagedSide> {
        let mark = self.findings.len();
        let is_client = side == self.serves;
        let kinds = [("page", &written.page), ("offset", &written.offset), ("cursor", &written.cursor)];
        let given: Vec<&str> =
            kinds.iter().filter(|(_, name)| name.is_some()).map(|(kind, _)| *kind).collect();
        let next = written.next.as_ref().map(|told| (&told.value, told.span));
        let by_link = matches!(next, Some((NextPageDecl::Link | NextPageDecl::LinkMember(_), _)));
        if given.len() > 1 || given.is_empty() && !by_link {
            self.findings.push(faults::paged_kind(written.span, &given));
            return None;
        }
        if let (Some(first), None) = (&written.first, &written.page) {
            self.findings.push(faults::paged_key(first.span, "first", "page"));
        }
        for (key, word) in [("start", &written.start), ("end", &written.end)] {
            if let (Some(word), None) = (word, &written.cursor) {
                self.findings.push(faults::paged_key(word.span, key, "cursor"));
            }
        }
        let known: Vec<&str> = operation.query.iter().map(|parameter| parameter.name.as_str()).collect();
        // Clients that follow links need not know the cursor parameter within, so the contract may
        // omit it.
        let free = written.cursor.as_ref().filter(|_| by_link).map(|name| name.value.as_str());
        for name in written.parameters() {
            if !known.contains(&name.value.as_str()) && free != Some(name.value.as_str()) {
                self.findings.push(faults::paged_parameter(name, &operation.key, &known));
            }
        }
        let text = |name: &Spanned<String>| -> Arc<str> { name.value.as_str().into() };
        let by = match (&written.page, &written.offset, &written.cursor) {
            (Some(page), ..) => PagedBy::Page {
                parameter: text(page),
                first: written.first.as_ref().map_or(1, |first| first.value as u32),
            },
            (_, Some(offset), _) => PagedBy::Offset { parameter: text(offset) },
            (.., Some(cursor)) => PagedBy::Cursor {
                parameter: text(cursor),
                start: written.start.as_ref().map(text),
                end: written.end.as_ref().map(text),
            },
            _ => PagedBy::Link,
        };
        let answer = success_body(operation).map(|(ty, _)| ty);
        let more = self.paged_places(written.more.as_ref(), answer, side, PageMember::Boolean);
        let total = self.paged_places(written.total.as_ref(), answer, side, PageMember::Integer);
        let items = self.paged_places(written.items.as_ref(), answer, side, PageMember::List);
        let (mut is_number, mut last) = (false, LastPage::Null);
        let next = match next {
            None => None,
            Some((NextPageDecl::Link, _)) => Some(plan::Told::Link),
            Some((NextPageDecl::Header(name), _)) => {
                Some(plan::Told::Header(name.to_ascii_lowercase().into()))
            }
            Some((told @ (NextPageDecl::Member(place) | NextPageDecl::LinkMember(place)), span)) => {
                let is_link = matches!(told, NextPageDecl::LinkMember(_));
                let wanted = if is_link { PageMember::Text } else { PageMember::Position };
                let place = Spanned { value: place.clone(), span };
                let path = self.paged_places(Some(&place), answer, side, wanted);
                if let (true, Some(answer), Some(_)) = (is_client, answer, &path)
                    && let Some((ty, required)) = field_type(self.env.types(side).at(answer), &place.value)
                {
                    let resolved = ty.types.resolve(ty.ty);
                    is_number = matches!(resolved.kind, TypeKind::Scalar(scalar) if scalar.kind == ScalarKind::Integer);
                    // The last page needs a value that marks it. The contract decides which one is valid.
                    last = match &written.end {
                        Some(end) if !is_link => LastPage::Word(text(end)),
                        _ if resolved.nullable => LastPage::Null,
                        _ if !required => LastPage::Absent,
                        _ => {
                            let place = place_text(&place.value);
                            self.findings.push(faults::last_page(span, &place, ty.ty));
                            LastPage::Null
                        }
                    };
                }
                path.map(if is_link { plan::Told::LinkMember } else { plan::Told::Member })
            }
        };
        let maximum = match &written.maximum {
            Some(maximum) => Some(maximum.value as u32),
            None => self.maximum_of(written, operation, side),
        };
        if self.findings.errors_since(mark) {
            return None;
        }
        Some(plan::PagedSide {
            by,
            size: written.size.as_ref().map(text),
            default: written.default.as_ref().map(|default| default.value as u32),
            maximum,
            next,
            next_is_number: is_number,
            last,
            more,
            total,
            items,
        })
    }

    /// Returns the maximum page size according to the contract's bound of the parameter.
    fn maximum_of(&self, written: &PagedSideDecl, operation: &Operation, side: SideId) -> Option<u32> {
        let size = written.size.as_ref()?;
        let parameter = operation.query.iter().find(|parameter| parameter.name == size.value)?;
        match self.env.types(side).resolve(&parameter.ty).kind {
            TypeKind::Scalar(scalar) => scalar.limits.maximum.as_ref()?.parse().ok().filter(|most| *most > 0),
            _ => None,
        }
    }

    /// Resolves a member of the response, and checks that the contract declares it with the
    /// expected type.
    fn paged_places(
        &mut self,
        place: Option<&Spanned<FieldPlace>>,
        answer: Option<&Type>,
        side: SideId,
        wanted: PageMember,
    ) -> Option<plan::MemberPath> {
        let place = place?;
        let found = answer.and_then(|answer| field_type(self.env.types(side).at(answer), &place.value));
        let fault = match found {
            None => faults::paged_member(place.span, &place_text(&place.value), wanted.word(), None),
            Some((ty, _)) if !wanted.fits(ty) => {
                faults::paged_member(place.span, &place_text(&place.value), wanted.word(), Some(ty.ty))
            }
            Some(_) => return Some(place.value.0.iter().map(|name| Key::new(name)).collect()),
        };
        self.findings.push(fault);
        None
    }

    /// Checks that each side announces the data that the other side needs for paging.
    fn check_next_page(&mut self, paging: &PagedRoute, client: &plan::PagedSide, service: &plan::PagedSide) {
        let names = [self.serves, self.serves.other()].map(|side| self.env.side_name(side));
        let spans = [self.serves, self.serves.other()].map(|side| paging.sides[side].span);
        // The gateway finds a page by number by following cursors from the first page.
        let walks = client.counts() && !service.counts();
        let mut untold = |side: usize, what: String, help: &str| {
            self.findings.push(faults::paged_untold(spans[side], what, help));
        };
        if client.by == PagedBy::Link {
            let what = format!("links for clients of `{}` need a parameter that says which page", names[0]);
            untold(0, what, "name one, which the contract need not have: `cursor: cursor`");
        }
        // A client can only continue with a cursor that it has received, and so can the gateway.
        let is_client_lost = matches!(client.by, PagedBy::Cursor { .. }) && client.next.is_none();
        let is_service_lost = !service.counts() && service.next.is_none();
        for side in [is_client_lost.then_some(0), is_service_lost.then_some(1)].into_iter().flatten() {
            let what = format!("`{}` is asked by a cursor, and nothing says where it gives one", names[side]);
            let help =
                "say where it stands in the answer: `next: $.place`, `next: link` or `next: {header: name}`";
            untold(side, what, help);
        }
        let knows_end = service.next.is_some()
            || service.more.is_some()
            || service.total.is_some()
            || service.items.is_some();
        if service.counts() && client.is_told() && !knows_end {
            let what = format!(
                "clients of `{}` are told of the next page, and nothing says whether `{}` has one",
                names[0], names[1]
            );
            untold(
                1,
                what,
                "say where its items stand: `items: $.place` (a page that is not full is the last), or `more:`, `total:`, `next:`",
            );
        }
        if walks && service.items.is_none() {
            let what = format!("pages of `{}` are counted, and nothing says where its items stand", names[1]);
            untold(
                1,
                what,
                "say where: `items: $.place`; a page behind the last one is answered without items",
            );
        }
    }

    /// Checks that the page size is known wherever the gateway calculates with it.
    fn sizes(&mut self, paging: &PagedRoute, client: &plan::PagedSide, service: &plan::PagedSide) {
        let names = [self.serves, self.serves.other()].map(|side| self.env.side_name(side));
        let spans = [self.serves, self.serves.other()].map(|side| paging.sides[side].span);
        if service.counts() && client.default.is_none() && service.default.is_none() {
            let what = format!(
                "nothing says how many items a page of `{}` has where nobody asks for a number",
                names[1]
            );
            self.findings.push(faults::page_size(spans[1], what, "say it: `default: 20`"));
        }
        // Without a size parameter, the service always returns pages of its default size.
        let fixed = service.default.filter(|_| service.size.is_none());
        if service.size.is_none() && fixed.is_none() && client.size.is_some() {
            let what = format!(
                "clients of `{}` ask for a number of items, and `{}` cannot be asked for one",
                names[0], names[1]
            );
            self.findings.push(faults::page_size(
                spans[1],
                what,
                "name its parameter: `size: limit`; or say how large its pages are: `default: 20`",
            ));
        }
        if let (Some(fixed), Some(default), true) =
            (fixed, client.default, client.counts() && !client.is_told())
            && fixed != default
        {
            let what = format!(
                "pages of `{}` have {default} items, and those of `{}` always {fixed}",
                names[0], names[1]
            );
            self.findings.push(faults::page_size(spans[0], what, "whoever counts pages would pass over items: name the other side's `size:`, or a place where clients are told of the next page"));
        }
    }
}

/// Returns the noise rule for the next page in a dual run: a sealed cursor and a URL always differ
/// from the service's own.
pub(super) fn noise(paging: Option<&plan::Paging>) -> Option<CompareRule> {
    let paging = paging?;
    let told = paging.client.next.as_ref()?;
    let is_own = paging.seals() || matches!(told, plan::Told::LinkMember(_));
    let at = told.member().filter(|_| is_own)?.iter().map(|key| Arc::clone(&key.text)).collect();
    Some(CompareRule { at, kind: CompareKind::Noise, origin: paging.origin.clone() })
}

fn place_text(place: &FieldPlace) -> String {
    place.0.iter().fold("$".to_owned(), |text, name| format!("{text}.{name}"))
}
