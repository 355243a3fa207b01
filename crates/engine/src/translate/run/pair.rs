//! Routes with one call: translates the request to a call, and its reply to an answer.

use super::{Run, State, call, during, media_type, no_reply, refusal_for, refused, unsupported_stop};
use crate::translate::coverage::Mark;
use crate::translate::document::{Env, document};
use crate::translate::error::TranslateError;
use crate::translate::expected::check_root;
use crate::translate::fault::{Fault, FaultKind, Sender, Stop};
use crate::translate::head::{self, PairHeads};
use crate::translate::multipart;
use crate::translate::parts::{self, Fields, Gathered, Parts};
use crate::translate::passed;
use crate::translate::reply::{
    begins_as_json, body_type, foreign_success, is_usable_redirect, redirect, unlisted_part,
};
use crate::translate::sources::{self, Traced};
use crate::translate::turn::{Call, Failed, Next, Reply};
use crate::translate::urlencoded;
use crate::xml;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use std::borrow::Cow;
use std::sync::Arc;
use switchback_json::Limits;
use switchback_plan::{
    BodyExpected, BodyFormat, BodyPlan, CallHead, FormFormat, MultipartFormat, Pair, ResponseBody, Route,
    SideId, ValueOp, essence,
};

impl Run {
    pub(super) fn pair_call(&mut self, route: &Route, pair: &Pair) -> Result<Next, Stop> {
        if let Some(at) = head::refused_parameter(&pair.refused, self.request.head().query) {
            self.marks.push(Mark::Parameter(at));
        }
        let body = PairBody {
            bytes: &self.request.body,
            fields: self.multipart.fields.as_deref(),
            limits: &self.limits,
            salt: self.multipart.salt,
        };
        let call = self.pair_heads(route).call(pair, body)?;
        self.note(|| {
            let sources = pair.request.as_ref().filter(|_| call.body.is_some()).map(|plan| {
                sources::of_body(
                    &plan.op,
                    &self.request.body,
                    &Env::new(&self.settings),
                    "$.request.body",
                    "$",
                )
            });
            let origin = Some(pair.call.origin.clone());
            Traced { call: Some(0), step: None, sources: sources.unwrap_or_default(), origin }
        });
        self.state = State::Paired;
        Ok(Next::Call(call))
    }

    /// Converts the body of a successful reply to JSON.
    pub(super) fn decode_reply<'r>(
        &self,
        head: &CallHead,
        reply: &'r Reply,
    ) -> Result<Cow<'r, Reply>, Failed> {
        let format = &head.answers;
        if !format.is_converted() || !(200..300).contains(&reply.status) || reply.body.is_empty() {
            return Ok(Cow::Borrowed(reply));
        }
        // Servers often label forms as text, or send no label.
        let named = reply.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_named = |named: &str| format.takes(named) || named == "text/plain";
        if named.is_some_and(|named| !is_named(essence(named))) {
            let named = body_type(&reply.headers);
            return Err(Failed::broken(format!(
                "a success with {named}, which is no answer of the contract"
            )));
        }
        let json = match format {
            BodyFormat::Form(form) => {
                let mut out = Vec::with_capacity(reply.body.len() * 2);
                urlencoded::decode(form, &reply.body, &self.limits, &mut out).map_err(Failed::broken)?;
                out
            }
            BodyFormat::Xml(format) => xml::decode(format, &reply.body, &self.limits)
                .map_err(|error| Failed::broken(error.to_string()))?,
            BodyFormat::Json
            | BodyFormat::JsonOrForm(_)
            | BodyFormat::Multipart(_)
            | BodyFormat::Opaque(_) => {
                return Ok(Cow::Borrowed(reply));
            }
        };
        let mut headers = reply.headers.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(BodyFormat::JSON));
        Ok(Cow::Owned(Reply { status: reply.status, headers, body: json.into() }))
    }

    /// Encodes JSON in the format of the client's answer.
    pub(super) fn spelt_answer(
        &self,
        route: &Route,
        json: Vec<u8>,
        headers: &mut HeaderMap,
    ) -> Result<Vec<u8>, Fault> {
        let of_body = |error: TranslateError| Fault::of_body(Sender::Upstream, &error);
        let text = match &route.operation.answers {
            BodyFormat::Form(form) => {
                urlencoded::encode(form, &json, &self.limits).map_err(of_body)?.into_bytes()
            }
            BodyFormat::Xml(format) => {
                xml::encode(format, &json, &self.limits).map_err(|error| of_body(error.into()))?
            }
            BodyFormat::Json
            | BodyFormat::JsonOrForm(_)
            | BodyFormat::Multipart(_)
            | BodyFormat::Opaque(_) => return Ok(json),
        };
        if let Some(named) = media_type(&route.operation.answers) {
            headers.insert(header::CONTENT_TYPE, named);
        }
        Ok(text)
    }

    pub(super) fn pair_answer(&mut self, route: &Route, pair: &Pair, reply: &Reply) -> Result<Next, Stop> {
        let broken = |detail: String| no_reply(Failed::broken(detail), &pair.call);
        let spelt = self.decode_reply(&pair.call, reply).map_err(|failed| no_reply(failed, &pair.call))?;
        let reply = spelt.as_ref();
        if let Some(detail) = unlisted_part(reply.status, &pair.call) {
            return Err(broken(detail.to_owned()).into());
        }
        let response = head::response(pair, reply.status)
            .ok_or_else(|| broken("a status that no rule is for".to_owned()))?;
        let status = head::status(response.to, reply.status);
        let mut headers = self.pair_heads(route).answer_headers(response, reply.status, &reply.headers)?;
        let mut cause = None;
        let body = match &response.body {
            ResponseBody::Empty | ResponseBody::Undescribed
                if (300..400).contains(&reply.status)
                    && !is_usable_redirect(reply.status, &headers, None) =>
            {
                return Err(broken(redirect(reply.status, &reply.headers)).into());
            }
            ResponseBody::Empty if (300..400).contains(&reply.status) => None,
            ResponseBody::Empty => {
                match foreign_success(&reply.headers, &self.pack.json_types, &reply.body) {
                    Some(detail) => return Err(broken(detail).into()),
                    None => None,
                }
            }
            ResponseBody::Plan(plan) => {
                let mut out = Vec::new();
                translate_checked(plan, &reply.body, &Env::new(&self.settings), &self.limits, &mut out)
                    .map_err(|error| during(&pair.call, Fault::of_body(Sender::Upstream, &error)))?;
                self.note(|| {
                    let env = Env::new(&self.settings);
                    let sources = sources::of_body(&plan.op, &reply.body, &env, "$.reply.body", "$");
                    Traced { call: None, step: None, sources, origin: Some(route.origin.clone()) }
                });
                Some(self.spelt_answer(route, out, &mut headers).map_err(|fault| during(&pair.call, fault))?)
            }
            ResponseBody::Opaque(media) => {
                passed::answer(media, &reply.headers, reply.body.is_empty(), &mut headers)
                    .map_err(|failed| no_reply(failed, &pair.call))?;
                (!reply.body.is_empty()).then(|| reply.body.to_vec())
            }
            ResponseBody::Undescribed => {
                passed::undescribed(&reply.headers, &mut headers);
                (!reply.body.is_empty()).then(|| reply.body.to_vec())
            }
            ResponseBody::Error(_) if reply.status < 400 => {
                return Err(broken(redirect(reply.status, &reply.headers)).into());
            }
            ResponseBody::Error(plan) => {
                let answer = self
                    .error_answer(&plan.body.op, plan.declared.as_deref(), reply)
                    .map_err(|failed| no_reply(failed, &pair.call))?;
                cause = answer.foreign;
                Some(answer.body)
            }
        };
        if matches!(response.body, ResponseBody::Error(_)) {
            return Ok(self.error(status, headers, body, cause));
        }
        self.marks.push(Mark::Answered);
        Ok(self.answer(status, headers, body, cause))
    }

    pub(super) fn pair_heads<'s>(&'s self, route: &'s Route) -> PairHeads<'s> {
        PairHeads {
            pack: &self.pack,
            route,
            settings: &self.settings,
            language: self.request.language,
            request: self.request.head(),
        }
    }
}

/// The complete body of a pair's request.
#[derive(Clone, Copy, Debug)]
struct PairBody<'a> {
    bytes: &'a Bytes,
    /// The fields of a multipart body whose files are streamed separately.
    fields: Option<&'a Fields>,
    limits: &'a Limits,
    salt: u64,
}

impl PairHeads<'_> {
    /// Builds the call of a pair from a request with this body, as a [`Run`] does at its start, for
    /// callers that process the reply themselves. `served` is the side of the route; `salt` makes
    /// multipart boundaries unpredictable.
    pub fn next(
        &self,
        served: SideId,
        pair: &Pair,
        bytes: &Bytes,
        limits: &Limits,
        salt: u64,
    ) -> Result<Next, Fault> {
        match self.call(pair, PairBody { bytes, fields: None, limits, salt }) {
            Ok(call) => Ok(Next::Call(call)),
            Err(Stop::Fault(fault)) => Err(fault.at(&self.route.origin)),
            Err(Stop::Refused(reason)) => {
                Ok(refused(self.pack, self.language, &refusal_for(self.pack, served, reason), false))
            }
        }
    }

    fn call(&self, pair: &Pair, body: PairBody<'_>) -> Result<Call, Stop> {
        if let Some(at) = head::refused_parameter(&pair.refused, self.request.query) {
            return Err(Stop::Refused(pair.refused[at].reason));
        }
        // The parameter selects this route; another value would silently get the wrong operation.
        head::wrong_constant(&pair.constants, self.request.query)?;
        let target = self.target(&pair.call)?;
        let mut headers = self.call_headers(&pair.call)?;
        let body = self.body(pair, body, &mut headers)?;
        passed::headers(pair, self.request.headers, body.is_some(), &mut headers)?;
        Ok(call(&pair.call, 0, target, headers, body))
    }

    fn body(&self, pair: &Pair, sent: PairBody<'_>, headers: &mut HeaderMap) -> Result<Option<Bytes>, Stop> {
        let (route, Some(plan)) = (self.route, &pair.request) else { return Ok(None) };
        if pair.call.format.is_opaque() {
            let is_missing = route.operation.body != BodyExpected::Required && sent.bytes.is_empty();
            return Ok((!is_missing).then(|| sent.bytes.clone()));
        }
        let is_missing = sent.bytes.is_empty() && sent.fields.is_none();
        if is_missing && route.operation.body == BodyExpected::Optional {
            return Ok(None);
        }
        let parts = match &route.operation.format {
            BodyFormat::Multipart(format) => Some(self.parts(format, pair, &plan.op, sent)?),
            _ => None,
        };
        let body: Cow<'_, [u8]> = match (route.operation.body, &parts) {
            // The body consists of constants only, so the plan runs over an empty object.
            (BodyExpected::No, _) => Cow::Borrowed(b"{}"),
            (_, Some((fields, _))) => Cow::Borrowed(&fields.json),
            (_, None) => json_of_request(route, self.request.headers, sent.bytes, sent.limits)?,
        };
        // Slightly longer than the input, as most outputs are: growing would copy them.
        let mut out = Vec::with_capacity(body.len() + body.len() / 4 + 64);
        translate_checked(plan, &body, &Env::new(self.settings), sent.limits, &mut out)
            .map_err(|error| Stop::of_body(Sender::ClientBody, &error))?;
        match &pair.call.format {
            BodyFormat::Multipart(format) => self.written_parts(format, &out, parts, sent, headers).map(Some),
            format => encode_call(format, out, sent.limits).map(Some),
        }
    }

    /// Returns the fields of a multipart body, and its remaining parts if the body is complete.
    fn parts(
        &self,
        format: &Arc<MultipartFormat>,
        pair: &Pair,
        op: &ValueOp,
        sent: PairBody<'_>,
    ) -> Result<(Fields, Option<Parts>), Stop> {
        if let Some(fields) = sent.fields {
            return match fields.refused {
                Some(reason) => Err(Stop::Refused(reason)),
                None => Ok((Fields::clone(fields), None)),
            };
        }
        let named = self.request.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let bytes = sent.bytes.len();
        let named = named.unwrap_or("");
        let mut parts = Parts::new(named, format, &pair.call.format, op, *sent.limits, 2 * bytes)?;
        parts.push(sent.bytes.clone());
        // The complete body is buffered and its memory reserved, so no callback has to provide
        // more.
        match parts.gather(&mut |_| true)? {
            Gathered::Refused(reason) => Err(Stop::Refused(reason)),
            gathered => {
                if gathered == Gathered::More {
                    parts.finish()?;
                }
                Ok((parts.fields(gathered)?, Some(parts)))
            }
        }
    }

    /// Writes the multipart body of a call. If files follow, this is its start.
    fn written_parts(
        &self,
        format: &MultipartFormat,
        json: &[u8],
        parts: Option<(Fields, Option<Parts>)>,
        sent: PairBody<'_>,
        headers: &mut HeaderMap,
    ) -> Result<Bytes, Stop> {
        let of =
            parts.as_ref().filter(|(fields, _)| fields.has_files).map(|(fields, _)| fields.boundary.as_str());
        let (mut out, boundary) = parts::write_fields(format, json, of, sent.salt, sent.limits)?;
        let named = HeaderValue::from_str(&multipart::media_type(&boundary))
            .map_err(|_| Fault::new(FaultKind::Internal, "a boundary that no header field takes"))?;
        headers.insert(header::CONTENT_TYPE, named);
        match parts {
            Some((fields, None)) if fields.has_files => {}
            Some((fields, Some(mut parts))) if fields.has_files => {
                parts.begin(&boundary, Arc::clone(self.settings));
                while let Some(piece) = parts.pass(&mut |_| true)? {
                    out.extend_from_slice(&piece);
                }
                out.extend_from_slice(&parts.end()?);
            }
            _ => multipart::write_end(&boundary, &mut out),
        }
        Ok(out.into())
    }
}

/// Converts the client's body from its format to JSON.
pub(super) fn json_of_request<'b>(
    route: &Route,
    headers: &HeaderMap,
    body: &'b [u8],
    limits: &Limits,
) -> Result<Cow<'b, [u8]>, Stop> {
    let named = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let format = &route.operation.format;
    let is_foreign = named.is_some_and(|named| named.contains('/') && !format.takes(named));
    match format {
        BodyFormat::Form(_) if is_foreign && !body.is_empty() => Err(unsupported_stop(BodyFormat::FORM)),
        BodyFormat::Form(form) => decode_form(form, body, limits),
        BodyFormat::JsonOrForm(form) if is_sent_as_form(named, body) => decode_form(form, body, limits),
        BodyFormat::Xml(layout) => {
            if is_foreign && !body.is_empty() {
                return Err(unsupported_stop(essence(&layout.content_type)));
            }
            let json = xml::decode(layout, body, limits).map_err(|error| {
                let kind = if error.is_limit() { FaultKind::TooLarge } else { FaultKind::BadBody };
                Fault::new(kind, error.to_string())
            })?;
            Ok(json.into())
        }
        // Some tools set another content type by default although the body is JSON.
        _ if is_foreign && !begins_as_json(body) => Err(unsupported_stop(BodyFormat::JSON)),
        _ if !route.operation.takes_null && body.trim_ascii() == b"null" => {
            Err(Fault::new(FaultKind::BadBody, "the body is null").into())
        }
        _ => Ok(Cow::Borrowed(body)),
    }
}

fn decode_form<'b>(form: &FormFormat, body: &[u8], limits: &Limits) -> Result<Cow<'b, [u8]>, Stop> {
    let mut out = Vec::with_capacity(body.len() * 2);
    urlencoded::decode(form, body, limits, &mut out)
        .map_err(|detail| Fault::new(FaultKind::BadBody, detail))?;
    Ok(out.into())
}

/// Returns whether a body is a form where the contract permits JSON as well.
///
/// The media type decides. Some tools label JSON as a form, or send no label: no encoder of forms
/// starts a text with a bracket (WHATWG URL Standard, section 5.2), so that such a body is JSON.
fn is_sent_as_form(named: Option<&str>, body: &[u8]) -> bool {
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    match named.map(essence).filter(|named| !named.is_empty()) {
        Some(named) if !named.eq_ignore_ascii_case(BodyFormat::FORM) => false,
        Some(_) => !text.starts_with(b"{") && !text.starts_with(b"["),
        None => !text.is_empty() && !text.starts_with(b"{") && !text.starts_with(b"["),
    }
}

/// Converts JSON to the format of the call.
pub(super) fn encode_call(format: &BodyFormat, json: Vec<u8>, limits: &Limits) -> Result<Bytes, Stop> {
    match format {
        BodyFormat::Form(form) => {
            let text = urlencoded::encode(form, &json, limits)
                .map_err(|error| Fault::of_body(Sender::ClientBody, &error))?;
            Ok(text.into_bytes().into())
        }
        BodyFormat::Xml(format) => {
            let text = xml::encode(format, &json, limits)
                .map_err(|error| Fault::of_body(Sender::ClientBody, &error.into()))?;
            Ok(text.into())
        }
        BodyFormat::Json | BodyFormat::JsonOrForm(_) | BodyFormat::Multipart(_) | BodyFormat::Opaque(_) => {
            Ok(json.into())
        }
    }
}

/// Translates a body after checking its root against the contract.
fn translate_checked(
    plan: &BodyPlan,
    body: &[u8],
    env: &Env<'_>,
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<(), TranslateError> {
    check_root(plan.root, body)?;
    document(&plan.op, body, env, limits, out)
}
