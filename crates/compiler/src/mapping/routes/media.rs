//! Media types of bodies that a pair passes unchanged: both sides must share them, or the mapping
//! relates them.

use super::faults;
use super::route::RouteCheck;
use crate::contract::{Media, Narrowing, Operation, RequestBody, UnreadMedia};
use crate::diagnostic::Span;
use crate::mapping::ast::{BodyDecl, PairDecl, Spanned};
use std::sync::Arc;
use switchback_plan::{
    Expr, HeaderRule, Key, MediaTypes, Response, SideId, StatusFrom, StatusTo, is_json, media_in_range,
};

/// The media types of the request and the responses that pass unchanged; `None` where the body is
/// translated.
#[derive(Default)]
pub(super) struct Passed {
    pub request: Option<Arc<MediaTypes>>,
    pub answers: Option<Arc<MediaTypes>>,
}

impl<'a> RouteCheck<'_, 'a> {
    /// Records media types that the served contract lists and the gateway does not read as losses.
    /// Those of bodies that pass unchanged are no losses if the other side lists them too.
    pub(super) fn unread_media(&mut self, passed: Option<&Passed>, span: Span) {
        let is_passed = |types: Option<&Arc<MediaTypes>>, media: &UnreadMedia| {
            types.is_some_and(|types| types.from.contains(&media.name) && types.to.contains(&media.name))
        };
        let (request, answers) =
            passed.map_or((None, None), |passed| (passed.request.as_ref(), passed.answers.as_ref()));
        let lost = |what: &str, types: Option<&Arc<MediaTypes>>, all: Vec<&UnreadMedia>| -> Vec<Narrowing> {
            let lost = all.into_iter().filter(|media| !is_passed(types, media));
            lost.map(|media| Narrowing::of_both_messages(format!("{what} of `{}`", media.name))).collect()
        };
        let operation = self.operation;
        let mut unread = unread_of_request(operation);
        // Where the body is translated, the second format is read.
        if request.is_none()
            && let Some(also) = operation.body.as_ref().and_then(RequestBody::also_named)
        {
            unread.retain(|media| &*media.name != also);
        }
        let mut found = lost("requests", request, unread);
        found.extend(lost("answers", answers, unread_of_answers(operation)));
        self.lose_narrower(&found, self.serves.other(), "$", span);
    }

    /// Adds the request headers for a called side that uses its own name for JSON.
    pub(super) fn json_names(&self, called: &Operation, headers: &mut Vec<HeaderRule>) {
        if let Some(Media::OtherJson(name)) = called.body.as_ref().map(|body| &body.media) {
            name_json(http::header::CONTENT_TYPE, name, headers);
        }
        let answered = called.responses.iter().filter(|answer| answer.is_success() && answer.body.is_some());
        let medias: Vec<&Media> = answered.map(|answer| &answer.media).collect();
        // The names of other formats are set with their bodies.
        if medias.iter().all(|media| media.is_json()) && medias.iter().any(|media| **media != Media::Json) {
            let mut names: Vec<&str> = medias.iter().map(|media| media.name()).collect();
            names.dedup();
            name_json(http::header::ACCEPT, &names.join(", "), headers);
        }
    }

    /// Adds the response header for a served side that uses its own name for JSON.
    pub(super) fn json_name_of_answer(&self, status: u16, headers: &mut Vec<HeaderRule>) {
        let promised = self.operation.response(status).filter(|answer| answer.body.is_some());
        if let Some(Media::OtherJson(name)) = promised.map(|answer| &answer.media) {
            name_json(http::header::CONTENT_TYPE, name, headers);
        }
    }

    /// Determines whether the request and the responses pass unchanged: with `keep`, and with media
    /// types that are opaque or forms on both sides. Returns `None` if it reports an error, for
    /// example an opaque body with a shape.
    pub(super) fn passed_bodies(&mut self, pair: &'a PairDecl, called: &'a Operation) -> Option<Passed> {
        let request = |operation: &'a Operation| -> Vec<&'a Media> {
            operation.body.iter().map(|body| &body.media).collect()
        };
        let answers = |operation: &'a Operation| -> Vec<&'a Media> {
            let successes = operation.responses.iter().filter(|answer| answer.is_success());
            successes.filter(|answer| answer.body.is_some()).map(|answer| &answer.media).collect()
        };
        let of_request = Medias {
            what: "request",
            from: (self.serves, request(self.operation)),
            to: (self.serves.other(), request(called)),
            unread: [unread_of_request(self.operation), unread_of_request(called)],
            lines: &pair.media.request,
        };
        let of_answers = Medias {
            what: "response",
            from: (self.serves.other(), answers(called)),
            to: (self.serves, answers(self.operation)),
            unread: [unread_of_answers(called), unread_of_answers(self.operation)],
            lines: &pair.media.response,
        };
        let request = self.passed_one(pair, pair.request.as_ref(), &of_request);
        let answers = self.passed_one(pair, pair.response.as_ref(), &of_answers);
        Some(Passed { request: request?, answers: answers? })
    }

    /// Determines it for one body. An outer `None` is an error.
    fn passed_one(
        &mut self,
        pair: &PairDecl,
        line: Option<&BodyDecl>,
        medias: &Medias<'_>,
    ) -> Option<Option<Arc<MediaTypes>>> {
        let mut all = medias.from.1.iter().chain(&medias.to.1);
        let is_nothing = medias.from.1.is_empty() && medias.to.1.is_empty();
        if pair.sides.made
            && matches!(line, Some(BodyDecl::Keep(_)))
            && let Some(types) = medias.shared()
        {
            return Some(Some(Arc::new(types)));
        }
        // Bytes of one layout mean something else in another one, so such documents are read and written.
        let is_laid_out_unlike =
            medias.from.1.iter().any(|from| medias.to.1.iter().any(|to| from.is_laid_out_unlike(to)));
        if matches!(line, Some(BodyDecl::Keep(_)))
            && !is_nothing
            && !is_laid_out_unlike
            && all.clone().all(|media| !media.is_json())
        {
            return self.media_types(pair, medias).map(Some);
        }
        if let Some((old, _)) = medias.lines.first() {
            self.findings.push(faults::media_of_no_passed(old.span, medias.what));
            return None;
        }
        // A shape can map the fields of a multipart body.
        let is_shaped =
            medias.what == "request" && matches!(line, Some(BodyDecl::Shape(_) | BodyDecl::Inline(_)));
        let is_mapped = |media: &&&Media| is_shaped && matches!(media, Media::Multipart(..));
        let opaque = all.find(|media| !media.is_read() && !is_mapped(media));
        if matches!(line, None | Some(BodyDecl::Empty(_))) {
            return Some(None);
        }
        let Some(opaque) = opaque else {
            self.xml_bodies(medias.from.1.iter().chain(&medias.to.1).copied());
            return Some(None);
        };
        self.findings.push(faults::opaque_body(pair.span, opaque.name()));
        None
    }

    /// Reports constructs of translated bodies that XML cannot represent.
    pub(super) fn xml_bodies<'m>(&mut self, medias: impl Iterator<Item = &'m Media>) {
        for media in medias {
            if let Media::Xml(body) = media {
                body.problems.iter().for_each(|problem| self.findings.push(problem.finding()));
            }
        }
    }

    /// Reports the same for an operation of a route of several calls.
    pub(super) fn xml_operation(&mut self, operation: &Operation) {
        let successes = operation.responses.iter().filter(|answer| answer.is_success());
        let answers = successes.filter(|answer| answer.body.is_some()).map(|answer| &answer.media);
        self.xml_bodies(operation.body.iter().map(|body| &body.media).chain(answers));
    }

    /// Returns the media types of a body that passes unchanged. Reports an error if no type of the
    /// sender is accepted, and a warning if only some are.
    fn media_types(&mut self, pair: &PairDecl, medias: &Medias<'_>) -> Option<Arc<MediaTypes>> {
        let ranges =
            |medias: &[&Media]| -> Vec<Arc<str>> { medias.iter().flat_map(|media| media.ranges()).collect() };
        let (from, to) = (ranges(&medias.from.1), ranges(&medias.to.1));
        let mark = self.findings.len();
        let mut renamed = Vec::new();
        for (old, new) in medias.lines {
            let (source, target) = if medias.from.0 == SideId::OLD { (old, new) } else { (new, old) };
            self.known_media(source, (medias.from.0, &from), medias.what);
            self.known_media(target, (medias.to.0, &to), medias.what);
            renamed.push((small(source), small(target)));
        }
        if self.findings.errors_since(mark) {
            return None;
        }
        let types = MediaTypes { from, to, renamed };
        // A missing body is reported elsewhere.
        if types.from.is_empty() || types.to.is_empty() {
            return Some(Arc::new(types));
        }
        let goes = |range: &Arc<str>| {
            types.renamed.iter().any(|(from, _)| from == range)
                || types.to.iter().any(|to| media_in_range(range, to) || media_in_range(to, range))
        };
        let names = [self.env.side_name(medias.from.0), self.env.side_name(medias.to.0)];
        // Ranges such as `image/*` overlap in part, which counts as accepted: the run time decides
        // by the actual type.
        let stays: Vec<&Arc<str>> = types.from.iter().filter(|range| !goes(range)).collect();
        match stays.first() {
            Some(_) if stays.len() == types.from.len() => {
                // Order the sides, so that both directions report the same finding, which is then
                // shown once.
                let mut sides = [(names[0], &types.from[..]), (names[1], &types.to[..])];
                if medias.from.0 != SideId::OLD {
                    sides.reverse();
                }
                self.findings.push(faults::media_apart(pair.span, medias.what, sides));
                return None;
            }
            // A generated pair has no line to correct, so only declared ones are reported.
            Some(_) if !pair.sides.made => {
                let stays: Vec<&str> = stays.into_iter().map(|range| &**range).collect();
                self.findings.push(faults::media_in_part(pair.span, medias.what, names, &stays));
            }
            _ => {}
        }
        Some(Arc::new(types))
    }

    fn known_media(&mut self, named: &Spanned<String>, (side, ranges): (SideId, &[Arc<str>]), what: &str) {
        let essence = small(named);
        // A line relates two single media types. Ranges and parameters are ambiguous.
        let is_one = essence.contains('/') && !essence.contains(['*', ';', ' ']);
        if !is_one || !ranges.iter().any(|range| media_in_range(&essence, range)) {
            let known: Vec<&str> = ranges.iter().map(|range| &**range).collect();
            self.findings.push(faults::unknown_media(named, self.env.side_name(side), what, &known));
        }
    }
}

/// The media types of one body, in the direction of its transfer.
struct Medias<'m> {
    /// `request` or `response`.
    what: &'static str,
    from: (SideId, Vec<&'m Media>),
    to: (SideId, Vec<&'m Media>),
    /// The types that the gateway does not read, of the sender and the receiver.
    unread: [Vec<&'m UnreadMedia>; 2],
    /// `{old: new}`
    lines: &'m [(Spanned<String>, Spanned<String>)],
}

impl Medias<'_> {
    /// Returns the media types of a body that has several of them, some of which the gateway does
    /// not read, if the receiver takes all that the sender's contract reads. Their schemas are
    /// compared as text, because no type represents them.
    fn shared(&self) -> Option<MediaTypes> {
        let ranges = |medias: &[&Media]| -> Vec<Arc<str>> {
            let mut all: Vec<Arc<str>> = medias.iter().flat_map(|media| media.ranges()).collect();
            // JSON first: it is the default of a body without a type.
            all.sort_by_key(|name| (!is_json(name), Arc::clone(name)));
            all.dedup();
            all
        };
        let [sent, taken] = &self.unread;
        let (mut from, mut to) = (ranges(&self.from.1), ranges(&self.to.1));
        let others: Vec<Arc<str>> =
            sent.iter().filter(|media| taken.contains(media)).map(|media| Arc::clone(&media.name)).collect();
        let mut medias = self.from.1.iter().chain(&self.to.1);
        let is_mixed = medias.clone().any(|media| media.is_json()) && medias.any(|media| !media.is_read());
        if others.is_empty() && !is_mixed || !from.iter().all(|range| to.contains(range)) {
            return None;
        }
        from.extend(others.iter().cloned());
        to.extend(others);
        Some(MediaTypes { from, to, renamed: Vec::new() })
    }
}

fn unread_of_request(operation: &Operation) -> Vec<&UnreadMedia> {
    operation.body.iter().flat_map(|body| &body.unread).collect()
}

fn unread_of_answers(operation: &Operation) -> Vec<&UnreadMedia> {
    let successes = operation.responses.iter().filter(|answer| answer.is_success());
    successes.flat_map(|answer| &answer.unread).collect()
}

/// Returns the status that clients receive.
pub(super) fn client_status(response: &Response) -> u16 {
    match (response.to, response.from) {
        (StatusTo::Exact(status), _) | (StatusTo::Same, StatusFrom::Exact(status)) => status,
        (StatusTo::Same, StatusFrom::Class(class)) => u16::from(class) * 100,
    }
}

/// Adds a header with a constant value, unless the mapping sets it.
fn name_json(field: http::HeaderName, name: &str, headers: &mut Vec<HeaderRule>) {
    if !headers.iter().any(|rule| rule.name.text.eq_ignore_ascii_case(field.as_str())) {
        let value = Expr::Constant(serde_json::Value::from(name).to_string().into_bytes().into());
        headers.push(HeaderRule { name: Key::new(field.as_str()), value });
    }
}

fn small(name: &Spanned<String>) -> Arc<str> {
    name.value.to_ascii_lowercase().into()
}
