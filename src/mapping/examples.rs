//! Examples as written → examples as they run. Only their form is judged here; whether they hold is `translate::example`'s
//! business.

use super::ast::{self, ExampleAnswer, Program, Spanned};
use super::literal::json;
use crate::diagnostic::{Code, Finding, Findings, Sources, Span, did_you_mean};
use crate::plan::{
    Example, ExampleCall, ExampleEnd, ExampleKind, Exchange, Origin, RouteExample, ShapeExample, SideId,
    Wanted,
};
use crate::yaml::Node;
use http::Method;

/// The text that asks for a value to be filled in.
pub const OPEN: &str = "?";

/// The examples of a program, in its order. What has no meaning is reported and left out.
pub fn lower(program: &Program, sources: &Sources, findings: &mut Findings) -> Vec<Example> {
    let mut reader = Reader { program, sources, findings };
    program.examples.iter().filter_map(|example| reader.example(example)).collect()
}

struct Reader<'a> {
    program: &'a Program,
    sources: &'a Sources,
    findings: &'a mut Findings,
}

impl Reader<'_> {
    fn origin(&self, span: Span) -> Origin {
        Origin { file: self.sources.name(span.file).into(), line: self.sources.start(span).line }
    }

    fn example(&mut self, example: &ast::Example) -> Option<Example> {
        let (kind, span) = match example {
            ast::Example::Route(route) => (ExampleKind::Route(Box::new(self.route(route)?)), route.span),
            ast::Example::Shape(shape) => (ExampleKind::Shape(self.shape(shape)?), shape.span),
        };
        Some(Example { kind, origin: self.origin(span) })
    }

    fn route(&mut self, route: &ast::RouteExample) -> Option<RouteExample> {
        let (side, call) = route.at.value.split_once(' ')?;
        let serves = self.side(side, route.at.span)?;
        let (method, target) = self.method_and_target(call, route.at.span)?;
        let exchange = self.exchange(&route.exchange)?;
        let again = match &route.again {
            Some(again) => Some(self.exchange(again)?),
            None => None,
        };
        Some(RouteExample {
            serves,
            method,
            target,
            headers: texts(&route.headers),
            body: route.body.as_ref().map(json),
            config: route.config.iter().map(|(name, value)| (name.value.clone(), json(value))).collect(),
            exchange,
            again,
        })
    }

    fn exchange(&mut self, exchange: &ast::Exchange) -> Option<Exchange> {
        let calls = exchange.calls.iter().map(|call| self.call(call)).collect::<Option<Vec<_>>>()?;
        let end = match &exchange.answer {
            ExampleAnswer::Refused(reason) => {
                self.known_reason(reason)?;
                ExampleEnd::Refused(reason.value.clone())
            }
            ExampleAnswer::Answer { status, headers, body } => ExampleEnd::Answer {
                status: self.status(status)?,
                headers: texts(headers),
                body: wanted(body.as_ref()),
            },
        };
        Some(Exchange { calls, end })
    }

    fn call(&mut self, call: &ast::ExampleCall) -> Option<ExampleCall> {
        let (method, target) = self.method_and_target(&call.expect.value, call.expect.span)?;
        Some(ExampleCall {
            method,
            target,
            body: call.body.as_ref().map(json),
            status: self.status(&call.reply_status)?,
            reply: call.reply_body.as_ref().map(json),
            origin: self.origin(call.expect.span),
        })
    }

    fn shape(&mut self, shape: &ast::ShapeExample) -> Option<ShapeExample> {
        let known: Vec<&str> = self
            .program
            .shapes
            .iter()
            .filter_map(|shape| Some(shape.name.as_ref()?.value.as_str()))
            .collect();
        if !known.contains(&shape.shape.value.as_str()) {
            let message = format!("there is no shape `{}`", shape.shape.value);
            self.report(shape.shape.span, message, did_you_mean(&shape.shape.value, known));
            return None;
        }
        let [old, new] = &shape.values;
        Some(ShapeExample {
            shape: shape.shape.value.clone(),
            source: SideId(u8::from(shape.source == 1)),
            values: [wanted(old.as_ref()), wanted(new.as_ref())],
            lost: shape.lost.iter().map(|place| place.value.clone()).collect(),
        })
    }

    fn side(&mut self, name: &str, span: Span) -> Option<SideId> {
        let sides = &self.program.manifest.sides;
        match sides.iter().position(|side| side.value == name) {
            Some(0) => Some(SideId::OLD),
            Some(_) => Some(SideId::NEW),
            None => {
                let help =
                    did_you_mean(name, sides.iter().map(|side| side.value.as_str()).collect::<Vec<_>>());
                self.report(span, format!("`{name}` is not a side of this pack"), help);
                None
            }
        }
    }

    /// `GET /things/7?page=1`
    fn method_and_target(&mut self, text: &str, span: Span) -> Option<(Method, String)> {
        let parts = text.split_once(' ').filter(|(_, target)| target.starts_with('/'));
        let parsed = parts.and_then(|(method, target)| {
            let method = Method::from_bytes(method.as_bytes()).ok()?;
            method.as_str().bytes().all(|byte| byte.is_ascii_uppercase()).then(|| (method, target.to_owned()))
        });
        if parsed.is_none() {
            let help = Some("write it like `GET /things/7?page=1`".to_owned());
            self.report(span, format!("`{text}` is not a method and an address"), help);
        }
        parsed
    }

    fn status(&mut self, status: &Spanned<i64>) -> Option<u16> {
        let known = u16::try_from(status.value).ok().filter(|status| (100..600).contains(status));
        if known.is_none() {
            self.report(status.span, format!("{} is not a status", status.value), None);
        }
        known
    }

    fn known_reason(&mut self, reason: &Spanned<String>) -> Option<()> {
        let known: Vec<&str> = self.program.reasons.iter().map(|reason| reason.name.value.as_str()).collect();
        if known.contains(&reason.value.as_str()) {
            return Some(());
        }
        self.report(
            reason.span,
            format!("there is no reason `{}`", reason.value),
            did_you_mean(&reason.value, known),
        );
        None
    }

    fn report(&mut self, span: Span, message: String, help: Option<String>) {
        self.findings.push(Finding::error(Code::ExampleForm, span, message).maybe_help(help));
    }
}

fn texts(fields: &[(Spanned<String>, Spanned<String>)]) -> Vec<(String, String)> {
    fields.iter().map(|(name, value)| (name.value.to_ascii_lowercase(), value.value.clone())).collect()
}

fn wanted(node: Option<&Node>) -> Wanted {
    match node {
        None => Wanted::None,
        Some(node) if is_open(node) => Wanted::Open,
        Some(node) => Wanted::Json(json(node)),
    }
}

/// Whether a value asks to be filled in.
pub fn is_open(node: &Node) -> bool {
    node.as_str() == Some(OPEN)
}
