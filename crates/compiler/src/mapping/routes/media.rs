//! Bodies that a pair passes as they come: that both sides have their media types, or the mapping says which is which.

use super::faults;
use super::route::RouteCheck;
use crate::contract::{Media, Narrowing, Operation};
use crate::diagnostic::Span;
use crate::mapping::ast::{Body, Pair, Spanned};
use std::sync::Arc;
use switchback_plan::{
    BodyFormat, Expr, HeaderRule, Key, MediaTypes, Response, SideId, StatusFrom, StatusTo, is_json,
    media_in_range,
};

/// The request and the answers of a pair: the media types of each that is passed, none where it is read.
#[derive(Default)]
pub(super) struct Passed {
    pub request: Option<Arc<MediaTypes>>,
    pub answers: Option<Arc<MediaTypes>>,
}

impl<'a> RouteCheck<'_, 'a> {
    /// Clients that send or accept a media type which is not read are not served with it.
    pub(super) fn unread_media(&mut self, span: Span) {
        let operation = self.operation;
        let of_request = operation.body.iter().flat_map(|body| &body.unread);
        let successes = operation.responses.iter().filter(|answer| answer.is_success());
        let of_answers = successes.flat_map(|answer| &answer.unread);
        let found = of_request
            .map(|media| format!("requests of `{media}`"))
            .chain(of_answers.map(|media| format!("answers of `{media}`")));
        let found: Vec<Narrowing> = found.map(Narrowing::of).collect();
        self.lose_narrower(&found, self.serves.other(), "$", span);
    }

    /// The header fields of a call that say under which name of its own the called side writes its JSON.
    pub(super) fn json_names(&self, called: &Operation, headers: &mut Vec<HeaderRule>) {
        if let Some(Media::OtherJson(name)) = called.body.as_ref().map(|body| &body.media) {
            name_json(http::header::CONTENT_TYPE, name, headers);
        }
        let answered = called.responses.iter().filter(|answer| answer.is_success() && answer.body.is_some());
        let names: Vec<&str> = answered.map(|answer| answer.media.name()).collect();
        if let [name, others @ ..] = names.as_slice()
            && *name != BodyFormat::JSON
            && is_json(name)
            && others.iter().all(|other| other == name)
        {
            name_json(http::header::ACCEPT, name, headers);
        }
    }

    /// The header field of an answer that says under which name of its own the served side writes its JSON.
    pub(super) fn json_name_of_answer(&self, status: u16, headers: &mut Vec<HeaderRule>) {
        let promised = self.operation.response(status).filter(|answer| answer.body.is_some());
        if let Some(Media::OtherJson(name)) = promised.map(|answer| &answer.media) {
            name_json(http::header::CONTENT_TYPE, name, headers);
        }
    }

    /// Whether the request and the answers are passed: not read, or forms on both sides, and kept. `None` after a finding: what
    /// is not read is not mapped, and not taken for JSON either.
    pub(super) fn passed(&mut self, pair: &'a Pair, called: &'a Operation) -> Option<Passed> {
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
            lines: &pair.request_media,
        };
        let of_answers = Medias {
            what: "response",
            from: (self.serves.other(), answers(called)),
            to: (self.serves, answers(self.operation)),
            lines: &pair.response_media,
        };
        let request = self.passed_one(pair, pair.request.as_ref(), &of_request);
        let answers = self.passed_one(pair, pair.response.as_ref(), &of_answers);
        Some(Passed { request: request?, answers: answers? })
    }

    /// The outer `None` is a finding.
    fn passed_one(
        &mut self,
        pair: &Pair,
        line: Option<&Body>,
        medias: &Medias<'_>,
    ) -> Option<Option<Arc<MediaTypes>>> {
        let mut all = medias.from.1.iter().chain(&medias.to.1);
        let is_nothing = medias.from.1.is_empty() && medias.to.1.is_empty();
        if matches!(line, Some(Body::Keep(_))) && !is_nothing && all.clone().all(|media| !media.is_json()) {
            return self.media_types(pair, medias).map(Some);
        }
        if let Some((old, _)) = medias.lines.first() {
            self.findings.push(faults::media_of_no_passed(old.span, medias.what));
            return None;
        }
        // Of parts a shape maps the fields.
        let is_shaped = medias.what == "request" && matches!(line, Some(Body::Shape(_) | Body::Inline(_)));
        let is_mapped = |media: &&&Media| is_shaped && matches!(media, Media::Multipart(..));
        let opaque = all.find(|media| !media.is_read() && !is_mapped(media));
        let Some(opaque) = opaque else { return Some(None) };
        if matches!(line, None | Some(Body::Empty(_))) {
            return Some(None);
        }
        self.findings.push(faults::opaque_body(pair.span, opaque.name()));
        None
    }

    /// The media types of a body that is passed. What no side can be sent is found; what only some clients can send is said.
    fn media_types(&mut self, pair: &Pair, medias: &Medias<'_>) -> Option<Arc<MediaTypes>> {
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
        // Where one side has no body, that is what is wrong.
        if types.from.is_empty() || types.to.is_empty() {
            return Some(Arc::new(types));
        }
        let goes = |range: &Arc<str>| {
            types.renamed.iter().any(|(from, _)| from == range)
                || types.to.iter().any(|to| media_in_range(range, to) || media_in_range(to, range))
        };
        let names = [self.ground.side_name(medias.from.0), self.ground.side_name(medias.to.0)];
        let stays: Vec<&Arc<str>> = types.from.iter().filter(|range| !goes(range)).collect();
        match stays.first() {
            Some(_) if stays.len() == types.from.len() => {
                // Said once, whichever side is served.
                let mut sides = [(names[0], &types.from[..]), (names[1], &types.to[..])];
                if medias.from.0 != SideId::OLD {
                    sides.reverse();
                }
                self.findings.push(faults::media_apart(pair.span, medias.what, sides));
                return None;
            }
            Some(_) if !pair.made => {
                let stays: Vec<&str> = stays.into_iter().map(|range| &**range).collect();
                self.findings.push(faults::media_in_part(pair.span, medias.what, names, &stays));
            }
            _ => {}
        }
        Some(Arc::new(types))
    }

    fn known_media(&mut self, named: &Spanned<String>, (side, ranges): (SideId, &[Arc<str>]), what: &str) {
        let essence = small(named);
        let is_one = essence.contains('/') && !essence.contains(['*', ';', ' ']);
        if !is_one || !ranges.iter().any(|range| media_in_range(&essence, range)) {
            let known: Vec<&str> = ranges.iter().map(|range| &**range).collect();
            self.findings.push(faults::unknown_media(named, self.ground.side_name(side), what, &known));
        }
    }
}

/// The media types of one body on its way.
struct Medias<'m> {
    /// `request` or `response`.
    what: &'static str,
    from: (SideId, Vec<&'m Media>),
    to: (SideId, Vec<&'m Media>),
    /// `{old: new}`
    lines: &'m [(Spanned<String>, Spanned<String>)],
}

/// The status that clients get.
pub(super) fn answered(response: &Response) -> u16 {
    match (response.to, response.from) {
        (StatusTo::Exact(status), _) | (StatusTo::Same, StatusFrom::Exact(status)) => status,
        (StatusTo::Same, StatusFrom::Class(class)) => u16::from(class) * 100,
    }
}

/// Adds a constant field, unless the mapping has one.
fn name_json(field: http::HeaderName, name: &str, headers: &mut Vec<HeaderRule>) {
    if !headers.iter().any(|rule| rule.name.text.eq_ignore_ascii_case(field.as_str())) {
        let value = Expr::Constant(format!("\"{name}\"").into_bytes().into());
        headers.push(HeaderRule { name: Key::new(field.as_str()), value });
    }
}

fn small(name: &Spanned<String>) -> Arc<str> {
    name.value.to_ascii_lowercase().into()
}
