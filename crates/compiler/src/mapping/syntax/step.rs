//! Reads routes with several calls: checks, steps, block ends and decision tables.

use super::{SyntaxReader, faults, keys};
use crate::diagnostic::{Span, suggest};
use crate::mapping::ast::{
    AnswerDecl, BeyondDecl, BlockDecl, BlockEnd, CallDecl, CellDecl, CheckDecl, CheckElseDecl, ColumnDecl,
    Decide, EachDecl, ExprDecl, OnFailDecl, OutcomeDecl, PagesDecl, Pick, PollDecl, PredicateDecl,
    PredicateWord, RowDecl, Spanned, StepActionDecl, StepDecl, TakeDecl,
};
use crate::yaml::{Fields, Key, Kind, Node, TextStyle};

/// Keywords of conditions.
pub(super) const PREDICATES: &[(&str, PredicateWord)] = &[
    ("present", PredicateWord::Present),
    ("missing", PredicateWord::Missing),
    ("not_null", PredicateWord::NotNull),
    ("any_present", PredicateWord::AnyPresent),
    ("all_present", PredicateWord::AllPresent),
    ("none_present", PredicateWord::NonePresent),
    ("one_of", PredicateWord::OneOf),
    ("kind", PredicateWord::Kind),
    ("equal", PredicateWord::Equal),
    ("absent_or_equal", PredicateWord::AbsentOrEqual),
    ("conforms", PredicateWord::Conforms),
    ("all", PredicateWord::All),
    ("any", PredicateWord::Any),
    ("not", PredicateWord::Not),
];

impl SyntaxReader<'_> {
    /// Reads the steps and the end of a route or an outcome.
    pub(super) fn block(&mut self, fields: &Fields<'_>, what: &str) -> BlockDecl {
        let steps = self.list_of(fields.get("steps")).iter().filter_map(|n| self.step(n)).collect();
        let ends: Vec<_> =
            ["answer", "refuse", "decide"].iter().filter_map(|key| fields.entry(key)).collect();
        let end = match ends.as_slice() {
            [] => {
                self.findings.push(faults::no_end(fields.node.span, what));
                None
            }
            [(key, value)] => self.end(key, value, fields),
            [(first, _), (second, _), ..] => {
                self.findings.push(faults::two_ends(first.span, second.span));
                None
            }
        };
        if let (Some((key, _)), false) =
            (fields.entry("outcomes"), ends.iter().any(|(key, _)| key.name == "decide"))
        {
            self.findings.push(faults::key_without(key, "decide"));
        }
        if let (Some((key, _)), false) =
            (fields.entry("policy"), ends.iter().any(|(key, _)| key.name == "refuse"))
        {
            self.findings.push(faults::key_without(key, "refuse"));
        }
        BlockDecl { steps, end }
    }

    fn end(&mut self, key: &Key, value: &Node, fields: &Fields<'_>) -> Option<BlockEnd> {
        match key.name.as_str() {
            "answer" => self.answer(value).map(BlockEnd::Answer),
            "refuse" => self.refuse(value, fields.get("policy")).map(BlockEnd::Refuse),
            _ => self.decide(value, fields).map(BlockEnd::Decide),
        }
    }

    /// Reads `{legacy, status, headers, body}`.
    pub(super) fn answer(&mut self, node: &Node) -> Option<AnswerDecl> {
        let fields = self.fields(node, &keys::ANSWER)?;
        let headers = self.exprs(fields.get("headers"));
        let body = fields.get("body").and_then(|n| self.expr(n));
        let status = fields.get("status").and_then(|n| self.status(n))?;
        let legacy_forward = fields.get("legacy").map_or([None; 2], |n| self.legacy(n));
        Some(AnswerDecl { legacy_forward, status, headers, body, span: node.span })
    }

    /// Reads `{name: expr}`.
    pub(super) fn exprs(&mut self, node: Option<&Node>) -> Vec<(Spanned<String>, ExprDecl)> {
        let mut lines = Vec::new();
        for (key, value) in self.map_of(node) {
            lines.extend(self.expr(value).map(|value| (Self::key(key), value)));
        }
        lines
    }

    fn decide(&mut self, node: &Node, fields: &Fields<'_>) -> Option<Decide> {
        let decide = self.fields(node, &keys::DECIDE)?;
        let on: Vec<ColumnDecl> =
            self.list_of(decide.get("on")).iter().filter_map(|n| self.column(n)).collect();
        let mut rows = Vec::new();
        for row in self.list_of(decide.get("rows")) {
            rows.extend(self.row(row, on.len()));
        }
        if fields.get("outcomes").is_none() {
            self.findings.push(faults::no_outcomes(node.span));
        }
        let mut outcomes = Vec::new();
        for (key, value) in self.map_of(fields.get("outcomes")) {
            let Some(fields) = self.fields(value, &keys::OUTCOME) else { continue };
            let block = self.block(&fields, "this outcome");
            outcomes.push(OutcomeDecl { name: Self::key(key), block, notes: self.notes(value) });
        }
        Some(Decide { on, rows, outcomes, span: node.span })
    }

    fn column(&mut self, node: &Node) -> Option<ColumnDecl> {
        match &node.kind {
            Kind::Map(_) => self.predicate(node, &[]).map(ColumnDecl::Holds),
            _ => self.text(node).map(ColumnDecl::Place),
        }
    }

    /// Reads `[cell, …, outcome]`.
    fn row(&mut self, node: &Node, columns: usize) -> Option<RowDecl> {
        let items = node.list(self.findings)?;
        let Some((outcome, cells)) = items.split_last().filter(|(_, cells)| cells.len() == columns) else {
            self.findings.push(faults::row_length(node.span, items.len().saturating_sub(1), columns));
            return None;
        };
        let outcome = self.text(outcome)?;
        for cell in cells {
            self.warn_of_quotes(
                cell,
                &["absent", "_"],
                "null is absent too, and a list of one says that the text is meant",
            );
            if let Node { kind: Kind::String(word, TextStyle::Plain), span } = cell
                && let Some(near) = suggest(word, &["absent"])
            {
                self.findings.push(faults::nearly_otherwise(word, near, *span));
            }
        }
        Some(RowDecl { cells: cells.iter().map(cell).collect(), outcome, span: node.span })
    }

    /// Reads `{predicate: …, if: $.config.x, unless: $.config.y, else: {status, reason} | {refuse:
    /// reason}}`.
    pub(super) fn check(&mut self, node: &Node) -> Option<CheckDecl> {
        let predicate = self.predicate(node, keys::CHECK);
        let only_if = self.text_of(node.get("if"));
        let Some(otherwise) = node.get("else") else {
            self.findings.push(faults::check_without_else(node.span));
            return None;
        };
        let unless = self.text_of(node.get("unless"));
        let otherwise = self.check_else(otherwise);
        Some(CheckDecl { predicate: predicate?, only_if, unless, otherwise: otherwise?, span: node.span })
    }

    fn check_else(&mut self, node: &Node) -> Option<CheckElseDecl> {
        if node.get("refuse").is_some() {
            let fields = self.fields(node, &keys::CHECK_REFUSE)?;
            return self.refuse(fields.get("refuse")?, fields.get("policy")).map(CheckElseDecl::Refuse);
        }
        let fields = self.fields(node, &keys::CHECK_ELSE)?;
        let (status, reason) =
            (fields.get("status").and_then(|n| self.status(n)), self.text_of(fields.get("reason")));
        Some(CheckElseDecl::Answer { status: status?, reason: reason? })
    }

    /// Reads a map with exactly one condition. Other keys must be listed in `beside`.
    pub(super) fn predicate(&mut self, node: &Node, beside: &[&str]) -> Option<PredicateDecl> {
        let words: Vec<&str> = PREDICATES.iter().map(|(word, _)| *word).collect();
        let possible: Vec<&str> = words.iter().chain(beside).copied().collect();
        let mut found = None;
        let mark = self.findings.len();
        for (key, value) in node.map(self.findings)? {
            match PREDICATES.iter().find(|(word, _)| *word == key.name) {
                // Take the first condition, so that a second one is reported at its own key.
                Some((_, word)) if found.is_none() => found = Some((*word, key, value)),
                None if beside.contains(&key.name.as_str()) => {}
                Some(_) => self.findings.push(faults::one_of_keys(key.span, "a condition", &words)),
                None => {
                    self.findings.push(faults::unknown_line(&key.name, key.span, "a condition", &possible))
                }
            }
        }
        let Some((word, key, value)) = found else {
            // A misspelled condition has been reported already.
            if !self.findings.errors_since(mark) {
                self.findings.push(faults::one_of_keys(node.span, "a condition", &words));
            }
            return None;
        };
        let (word, span) = (word, key.span);
        let of = match word {
            PredicateWord::All | PredicateWord::Any => {
                let all: Vec<_> =
                    value.list(self.findings)?.iter().map(|one| self.predicate(one, &[])).collect();
                if all.len() < 2 {
                    self.findings.push(faults::too_few_conditions(value.span));
                    return None;
                }
                all.into_iter().collect::<Option<Vec<_>>>()?
            }
            PredicateWord::Not => vec![self.predicate(value, &[])?],
            _ => Vec::new(),
        };
        let (places, values) =
            if of.is_empty() { self.operands(word, value)? } else { (Vec::new(), Vec::new()) };
        Some(PredicateDecl { word: Spanned { value: word, span }, places, values, of })
    }

    fn operands(&mut self, word: PredicateWord, node: &Node) -> Option<(Vec<Spanned<String>>, Vec<Node>)> {
        match word {
            PredicateWord::Present | PredicateWord::Missing => Some((vec![self.operand(node)?], Vec::new())),
            PredicateWord::OneOf | PredicateWord::Kind => {
                let [(key, value)] = node.map(self.findings)? else {
                    self.findings.push(faults::one_member(node.span));
                    return None;
                };
                let values = match &value.kind {
                    Kind::Seq(items) => items.clone(),
                    _ => vec![value.clone()],
                };
                Some((vec![place_of(&key.name, key.span)], values))
            }
            PredicateWord::Equal | PredicateWord::AbsentOrEqual => {
                let places = self.operand_list(node)?;
                if places.len() != 2 {
                    self.findings.push(faults::two_places(node.span));
                    return None;
                }
                Some((places, Vec::new()))
            }
            PredicateWord::NotNull
            | PredicateWord::AnyPresent
            | PredicateWord::AllPresent
            | PredicateWord::NonePresent
            | PredicateWord::Conforms
            | PredicateWord::All
            | PredicateWord::Any
            | PredicateWord::Not => Some((self.operand_list(node)?, Vec::new())),
        }
    }

    fn operand(&mut self, node: &Node) -> Option<Spanned<String>> {
        self.text(node).map(|text| place_of(&text.value, text.span))
    }

    fn operand_list(&mut self, node: &Node) -> Option<Vec<Spanned<String>>> {
        Some(node.list(self.findings)?.iter().filter_map(|n| self.operand(n)).collect())
    }

    /// Reads `name: {call: …}`, or an unnamed action.
    pub(super) fn step(&mut self, node: &Node) -> Option<StepDecl> {
        let entries = node.map(self.findings)?;
        if entries.iter().any(|(key, _)| keys::ACTIONS.contains(&key.name.as_str())) {
            return Some(StepDecl { name: None, action: self.action(node)?, span: node.span });
        }
        // A misspelled action looks like the name of a step, but its value is rarely a map.
        let slip = |(key, value): &&(Key, Node)| {
            !matches!(value.kind, Kind::Map(_)) && suggest(&key.name, keys::ACTIONS).is_some()
        };
        if let Some((key, _)) = entries.iter().find(slip) {
            self.findings.push(faults::unknown_line(&key.name, key.span, "a step", keys::ACTIONS));
            return None;
        }
        match entries {
            [(key, value)] => {
                Some(StepDecl { name: Some(Self::key(key)), action: self.action(value)?, span: key.span })
            }
            _ => {
                self.findings.push(faults::one_of_keys(node.span, "a step", keys::ACTIONS));
                None
            }
        }
    }

    fn action(&mut self, node: &Node) -> Option<StepActionDecl> {
        node.map(self.findings)?;
        let actions: Vec<_> = keys::ACTIONS.iter().copied().filter(|key| node.get(key).is_some()).collect();
        match actions.as_slice() {
            ["call"] => self.call(node).map(StepActionDecl::Call),
            ["pick"] => self.pick(node, false).map(StepActionDecl::Pick),
            ["recall"] => self.recall(node).map(StepActionDecl::Recall),
            ["keep"] => self.keep(node).map(StepActionDecl::Keep),
            ["make"] => {
                let fields = self.fields(node, &keys::MAKE)?;
                fields.get("make").and_then(|n| self.expr(n)).map(StepActionDecl::Make)
            }
            ["first"] => {
                let fields = self.fields(node, &keys::FIRST)?;
                let choices = self.list_of(fields.get("first")).iter().filter_map(|n| self.pick(n, true));
                Some(StepActionDecl::First(choices.collect()))
            }
            [] => {
                // Report a misspelled action at the word itself.
                let entries = node.as_map().unwrap_or_default();
                // Keys of calls such as `each` are legitimate, however similar to an action.
                let slip = entries.iter().find(|(key, _)| {
                    !keys::CALL.optional.contains(&key.name.as_str())
                        && suggest(&key.name, keys::ACTIONS).is_some()
                });
                self.findings.push(match slip {
                    Some((key, _)) => faults::unknown_line(&key.name, key.span, "a step", keys::ACTIONS),
                    None => faults::one_of_keys(node.span, "a step", keys::ACTIONS),
                });
                None
            }
            _ => {
                self.findings.push(faults::one_of_keys(node.span, "a step", keys::ACTIONS));
                None
            }
        }
    }

    fn call(&mut self, node: &Node) -> Option<CallDecl> {
        let fields = self.fields(node, &keys::CALL)?;
        let operation = self.text_of(fields.get("call"))?;
        Some(CallDecl {
            operation,
            when: fields.get("when").and_then(|n| self.predicate(n, &[])),
            each: self.each(&fields),
            query: self.exprs(fields.get("query")),
            headers: self.exprs(fields.get("headers")),
            body: fields.get("body").and_then(|n| self.expr(n)),
            pages: fields.get("pages").and_then(|n| self.pages(n)),
            poll: self.poll(&fields),
            on_fail: fields.get("on_fail").and_then(|n| self.on_fail(n)),
            resume: self.texts(fields.get("resume")),
            retry: self.flag(fields.get("retry"), "safe", "never"),
            effect: self.flag(fields.get("effect"), "write", "none"),
        })
    }

    /// Reads `each: {name: list}, upto: 20, beyond: absent`.
    fn each(&mut self, fields: &Fields<'_>) -> Option<EachDecl> {
        let upto = fields.get("upto").and_then(|n| self.whole(n, 1..=1000));
        let Some(node) = fields.get("each") else {
            for (key, _) in ["upto", "beyond"].iter().filter_map(|key| fields.entry(key)) {
                self.findings.push(faults::key_without(key, "each"));
            }
            return None;
        };
        let entries = node.map(self.findings)?;
        if entries.len() != 1 {
            self.findings.push(faults::one_element_name(node.span));
        }
        let (key, list) = entries.first()?;
        if fields.get("upto").is_none() {
            self.findings.push(faults::each_without_bound(node.span));
        }
        // Continue with an arbitrary bound to check the rest of the route.
        let upto = upto.unwrap_or(Spanned { value: 1, span: node.span });
        let beyond = self.beyond(fields, &["absent"]);
        Some(EachDecl { name: Self::key(key), list: self.text(list)?, upto, beyond })
    }

    /// Reads `until: predicate, every: 1s, within: 20s`.
    fn poll(&mut self, fields: &Fields<'_>) -> Option<PollDecl> {
        const WORDS: [&str; 3] = ["until", "every", "within"];
        let entries = WORDS.map(|word| fields.entry(word));
        let (first, _) = entries.iter().flatten().next()?;
        let missing: Vec<&str> =
            WORDS.iter().zip(&entries).filter(|(_, entry)| entry.is_none()).map(|(word, _)| *word).collect();
        if !missing.is_empty() {
            self.findings.push(faults::poll_without(first.span, &missing));
        }
        let [Some((key, until)), every, within] = entries else { return None };
        // Continue with arbitrary times to check the rest of the route.
        let mut time = |entry: Option<(&Key, &Node)>| match entry {
            Some((_, node)) => self.text(node),
            None => Some(Spanned { value: "1s".to_owned(), span: key.span }),
        };
        let (every, within) = (time(every), time(within));
        Some(PollDecl { until: self.predicate(until, &[])?, every: every?, within: within?, span: key.span })
    }

    fn pages(&mut self, node: &Node) -> Option<PagesDecl> {
        let fields = self.fields(node, &keys::PAGES)?;
        let upto = fields.get("upto").and_then(|n| self.whole(n, 1..=1000));
        let until = self.text_of(fields.get("until"));
        let beyond = self.beyond(&fields, &["cut", "absent"]);
        Some(PagesDecl { upto: upto?, until, beyond, span: node.span })
    }

    /// Reads `beyond:` with one of `words`, or `{refuse: reason}`.
    fn beyond(&mut self, fields: &Fields<'_>, words: &[&str]) -> Option<Spanned<BeyondDecl>> {
        let (key, node) = fields.entry("beyond")?;
        let value = if let Kind::String(..) = &node.kind {
            // Report an invalid word once, and check the rest of the route with `absent`.
            match node.word(words, self.findings) {
                Some("cut") => BeyondDecl::Cut,
                _ => BeyondDecl::Absent,
            }
        } else {
            let fields = self.fields(node, &keys::CHECK_REFUSE)?;
            BeyondDecl::Refuse(self.refuse(fields.get("refuse")?, fields.get("policy"))?)
        };
        Some(Spanned { value, span: key.span })
    }

    fn on_fail(&mut self, node: &Node) -> Option<OnFailDecl> {
        if let Kind::String(..) = &node.kind {
            let word = node.word(&["pass", "absent"], self.findings)?;
            return Some(if word == "pass" { OnFailDecl::Pass } else { OnFailDecl::Absent(Vec::new()) });
        }
        let entries = node.map(self.findings)?;
        let [(key, value)] = entries else {
            self.findings.push(faults::one_of_keys(node.span, "`on_fail`", keys::ON_FAIL));
            return None;
        };
        match key.name.as_str() {
            "pass" => {
                let fields = self.fields(value, &keys::PASS)?;
                Some(OnFailDecl::PassWith(self.exprs(fields.get("headers"))))
            }
            "absent" => {
                let statuses: Vec<_> =
                    value.list(self.findings)?.iter().filter_map(|n| self.status(n)).collect();
                if statuses.is_empty() {
                    self.findings.push(faults::status("[]", value.span));
                    return None;
                }
                Some(OnFailDecl::Absent(statuses))
            }
            "answer" => self.answer(value).map(OnFailDecl::Answer),
            "use" => self.expr(value).map(OnFailDecl::Use),
            "refuse" => self.refuse(value, None).map(OnFailDecl::Refuse),
            other => {
                self.findings.push(faults::unknown_line(other, key.span, "`on_fail`", keys::ON_FAIL));
                None
            }
        }
    }

    /// Reads `pick: path` with `take:`, `newest:` or `page:`, and `when:` within a `first:` step.
    fn pick(&mut self, node: &Node, choice: bool) -> Option<Pick> {
        let fields = self.fields(node, if choice { &keys::CHOICE } else { &keys::PICK })?;
        let when = fields.get("when").and_then(|n| self.predicate(n, &[]));
        let path = self.text_of(fields.get("pick"))?;
        const TAKES: &[&str] = &["take", "newest", "page"];
        let said: Vec<_> = TAKES.iter().filter_map(|key| Some((*key, fields.get(key)?))).collect();
        let take = match said.as_slice() {
            [] => TakeDecl::All,
            [("take", word)] => match word.word(&["first", "all"], self.findings)? {
                "first" => TakeDecl::First,
                _ => TakeDecl::All,
            },
            [("newest", members)] => match &members.kind {
                Kind::Seq(_) => TakeDecl::Newest(self.texts(Some(members))),
                _ => TakeDecl::Newest(vec![self.text(members)?]),
            },
            [(_, number)] => TakeDecl::Page(self.text(number)?),
            [(_, first), ..] => {
                self.findings.push(faults::one_of_keys(first.span, "a selection", TAKES));
                return None;
            }
        };
        Some(Pick { when, path, take })
    }
}

/// Expands a bare word to a member of the request body.
fn place_of(text: &str, span: Span) -> Spanned<String> {
    let value = if text.starts_with('$') { text.to_owned() } else { format!("$.request.body.{text}") };
    Spanned { value, span }
}

fn cell(node: &Node) -> CellDecl {
    match &node.kind {
        Kind::String(word, TextStyle::Plain) if word == "_" => CellDecl::Any,
        Kind::String(word, TextStyle::Plain) if word == "absent" => CellDecl::Absent(node.span),
        Kind::Seq(items) => CellDecl::OneOf(items.clone()),
        _ => CellDecl::OneOf(vec![node.clone()]),
    }
}
