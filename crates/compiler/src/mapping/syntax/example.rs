//! Reads entries of `examples:`.

use super::{SyntaxReader, faults, keys};
use crate::mapping::ast::{
    ExampleAnswer, ExampleCallDecl, ExampleDecl, ExchangeDecl, HarvestExampleDecl, RouteExampleDecl,
    ShapeExampleDecl, Spanned,
};
use crate::yaml::{Fields, Kind, Node, TextStyle};

impl SyntaxReader<'_> {
    pub(super) fn example(&mut self, node: &Node) -> Option<ExampleDecl> {
        let has = |key| node.get(key).is_some();
        match (has("at"), has("shape"), has("harvest")) {
            (true, false, false) => self.route_example(node).map(ExampleDecl::Route),
            (false, true, false) => self.shape_example(node).map(ExampleDecl::Shape),
            (false, false, true) => self.harvest_example(node).map(ExampleDecl::Harvest),
            _ => {
                node.map(self.findings)?;
                let known = &["at", "shape", "harvest"];
                self.findings.push(faults::one_of_keys(node.span, "an example", known));
                None
            }
        }
    }

    fn route_example(&mut self, node: &Node) -> Option<RouteExampleDecl> {
        let fields = self.fields(node, &keys::ROUTE_EXAMPLE)?;
        let at = self.text_of(fields.get("at"))?;
        if at.value.split(' ').count() != 3 {
            self.findings.push(faults::example_address(at.span));
        }
        let send = fields.get("send").and_then(|n| self.fields(n, &keys::SEND));
        let part = |name| send.and_then(|send| send.get(name));
        let headers = self.header_texts(part("headers"));
        let config =
            self.map_of(part("config")).iter().map(|(key, value)| (Self::key(key), value.clone())).collect();
        let body = part("body").cloned();
        let archived = self.archive_entries(part("archives"));
        let exchange = self.exchange(&fields);
        let again = match fields.get("again") {
            Some(again) => {
                let fields = self.fields(again, &keys::AGAIN)?;
                Some(self.exchange(&fields)?)
            }
            None => None,
        };
        let span = node.span;
        Some(RouteExampleDecl { at, config, headers, body, archived, exchange: exchange?, again, span })
    }

    /// `{harvest: name, page: 0, calls, keeps}`
    fn harvest_example(&mut self, node: &Node) -> Option<HarvestExampleDecl> {
        let fields = self.fields(node, &keys::HARVEST_EXAMPLE)?;
        let name = self.text_of(fields.get("harvest"));
        let page = fields.get("page").and_then(|n| self.whole(n, 0..=u64::from(u32::MAX)));
        let calls = self.list_of(fields.get("calls")).iter().filter_map(|n| self.example_call(n)).collect();
        let keeps = self.keeps(fields.get("keeps"));
        // A harvest returns no response to check. An empty success stands for it.
        let status = Spanned { value: 200, span: node.span };
        let answer = ExampleAnswer::Answer { status, headers: Vec::new(), body: None };
        let exchange = ExchangeDecl { calls, keeps, answer };
        Some(HarvestExampleDecl { name: name?, page: page?, exchange, span: node.span })
    }

    fn header_texts(&mut self, node: Option<&Node>) -> Vec<(Spanned<String>, Spanned<String>)> {
        let mut headers = Vec::new();
        for (key, value) in self.map_of(node) {
            headers.extend(self.text(value).map(|value| (Self::key(key), value)));
        }
        headers
    }

    fn exchange(&mut self, fields: &Fields<'_>) -> Option<ExchangeDecl> {
        let calls = self.list_of(fields.get("calls")).iter().filter_map(|n| self.example_call(n)).collect();
        let answer = match (fields.get("answer"), fields.get("refused")) {
            (Some(answer), None) => self.example_answer(answer),
            (None, Some(refused)) => self.text(refused).map(ExampleAnswer::Refused),
            _ => {
                self.findings.push(faults::example_end(fields.node.span));
                None
            }
        };
        let keeps = self.keeps(fields.get("keeps"));
        Some(ExchangeDecl { calls, keeps, answer: answer? })
    }

    fn example_answer(&mut self, node: &Node) -> Option<ExampleAnswer> {
        let fields = self.fields(node, &keys::EXAMPLE_ANSWER)?;
        let status = fields.get("status").and_then(|n| self.status(n));
        let headers = self.header_texts(fields.get("headers"));
        Some(ExampleAnswer::Answer { status: status?, headers, body: fields.get("body").cloned() })
    }

    fn example_call(&mut self, node: &Node) -> Option<ExampleCallDecl> {
        let fields = self.fields(node, &keys::EXAMPLE_CALL)?;
        let expect = self.text_of(fields.get("expect"));
        let reply = fields.get("reply")?;
        let [(status, body)] = reply.map(self.findings)? else {
            self.findings.push(faults::example_reply(reply.span));
            return None;
        };
        let reply_status = self.status_key(status);
        // In quotes the word is the text itself.
        let empty = matches!(&body.kind, Kind::String(word, TextStyle::Plain) if word == "empty");
        Some(ExampleCallDecl {
            expect: expect?,
            headers: self.header_texts(fields.get("headers")),
            reply_headers: self.header_texts(fields.get("reply_headers")),
            body: fields.get("body").cloned(),
            reply_status: reply_status?,
            reply_body: (!empty).then(|| body.clone()),
        })
    }

    fn shape_example(&mut self, node: &Node) -> Option<ShapeExampleDecl> {
        let mut values = [None, None];
        let (mut shape, mut lost, mut source) = (None, Vec::new(), None);
        for (key, value) in node.map(self.findings)? {
            match key.name.as_str() {
                "shape" => shape = self.text(value),
                "lost" => lost = self.texts(Some(value)),
                name => {
                    let Some(side) = self.side(name, key.span) else { continue };
                    // The side that is written first is the source, so the order of the keys
                    // matters.
                    source.get_or_insert(side.side);
                    values[side.side] = Some(value.clone());
                }
            }
        }
        let Some(source) = source else {
            let [old, new] = self.sides.clone();
            self.findings.push(faults::one_of_keys(
                node.span,
                "an example of a shape",
                &[&old.value, &new.value],
            ));
            return None;
        };
        Some(ShapeExampleDecl { shape: shape?, values, source, lost, span: node.span })
    }
}
