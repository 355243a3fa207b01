//! Laws of fragments: a block that moves into a fragment comes back as it was, and bounds hold.

use super::super::ast::ParameterDecl;
use super::super::manual_pages;
use super::*;
use crate::yaml::{self, TextStyle};
use proptest::prelude::*;

fn parsed(text: &str) -> (Node, Sources) {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let root = yaml::parse(&mut sources, "a.map.yaml", text.as_bytes(), &mut findings);
    assert!(findings.is_empty());
    (root.expect("a mapping file"), sources)
}

/// Returns the mapping files of the manual that use no fragment.
fn files() -> Vec<(Node, Sources)> {
    let blocks = manual_pages::blocks().into_iter();
    let mappings = blocks.filter(|(name, text)| name.ends_with(".map.yaml") && !text.contains(USE));
    mappings.map(|(_, text)| parsed(&text)).collect()
}

fn without_places(node: &Node) -> Node {
    let mut node = node.clone();
    node.each_span(&mut |span| *span = Span::default());
    node
}

fn node(kind: Kind) -> Node {
    Node { span: Span::default(), kind }
}

fn text(text: &str) -> Node {
    node(Kind::String(text.to_owned(), TextStyle::Plain))
}

fn map(name: &str, value: Node) -> Node {
    node(Kind::Map(vec![(Key { name: name.to_owned(), span: Span::default() }, value)].into()))
}

fn spanned(name: &str) -> Spanned<String> {
    Spanned { value: name.to_owned(), span: Span::default() }
}

/// Moves drawn blocks into fragments.
struct Mover {
    declared: Vec<FragmentDecl>,
    random: u64,
}

impl Mover {
    fn draw(&mut self, below: usize) -> usize {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % below
    }

    fn walk(&mut self, mut block: Node, is_element: bool) -> Node {
        match &mut block.kind {
            Kind::Seq(items) => {
                *items = Arc::new(items.iter().map(|item| self.walk(item.clone(), true)).collect());
            }
            Kind::Map(entries) if entries.iter().all(|(key, _)| key.name != LITERAL) => {
                let walked =
                    entries.iter().map(|(key, value)| (key.clone(), self.walk(value.clone(), false)));
                *entries = Arc::new(walked.collect());
            }
            _ => {}
        }
        if self.draw(4) > 0 {
            return block;
        }
        match &mut block.kind {
            // The elements of a list would stand beside the others.
            Kind::Seq(_) if is_element => block,
            Kind::Map(entries)
                if entries.len() > 1
                    && entries.iter().all(|(key, _)| ![USE, LITERAL].contains(&&*key.name)) =>
            {
                let from = self.draw(entries.len());
                let to = from + 1 + self.draw(entries.len() - from);
                let entries = Arc::make_mut(entries);
                let moved: Vec<_> = entries.drain(from..to).collect();
                let used = self.declare(node(Kind::Map(moved.into())));
                entries.insert(from, (Key { name: USE.to_owned(), span: Span::default() }, used));
                block
            }
            Kind::Map(_) | Kind::Seq(_) => map(USE, self.declare(block)),
            _ => block,
        }
    }

    /// Declares a fragment that gives a block, and returns its use. A part of the block becomes an
    /// argument.
    fn declare(&mut self, mut block: Node) -> Node {
        let name = format!("f{}", self.declared.len());
        let part = match &mut block.kind {
            Kind::Map(entries) if !entries.is_empty() => {
                let at = self.draw(entries.len());
                Some(&mut Arc::make_mut(entries)[at].1)
            }
            Kind::Seq(items) if !items.is_empty() => {
                let at = self.draw(items.len());
                Some(&mut Arc::make_mut(items)[at]).filter(|item| item.as_seq().is_none())
            }
            _ => None,
        };
        let argument = part.map(|part| match &part.kind {
            Kind::String(whole, style) if whole.is_ascii() && whole.len() > 1 => {
                let half = whole.len() / 2;
                let (first, second) = (format!("{}<a>", &whole[..half]), text(&whole[half..]));
                part.kind = Kind::String(first, *style);
                second
            }
            _ => mem::replace(part, text("<a>")),
        });
        let takes = argument.iter().map(|_| ParameterDecl { name: spanned("a"), default: None }).collect();
        self.declared.push(FragmentDecl { name: spanned(&name), takes, gives: block });
        match argument {
            Some(argument) => map(&name, map("a", argument)),
            None => text(&name),
        }
    }
}

proptest! {
    #[test]
    fn a_block_in_a_fragment_is_the_block_itself(random in any::<u64>()) {
        for (root, mut sources) in files() {
            let mut mover = Mover { declared: Vec::new(), random };
            let mut moved = root.clone();
            let Kind::Map(sections) = &mut moved.kind else { continue };
            for (key, section) in Arc::make_mut(sections) {
                if !PLAIN_SECTIONS.contains(&key.name.as_str()) {
                    *section = mover.walk(section.clone(), false);
                }
            }
            let mut findings = Findings::new();
            Fragments::collect(mover.declared, &mut findings).expand(&mut moved, &mut sources, &mut findings);
            prop_assert!(findings.is_empty(), "{findings:?}");
            prop_assert_eq!(without_places(&moved), without_places(&root));
        }
    }
}

fn messages(declared: Vec<FragmentDecl>, used: Node) -> Vec<String> {
    let (_, mut sources) = parsed("mapping: 1\n");
    let mut root = map("routes", node(Kind::Seq(vec![map(USE, used)].into())));
    let mut findings = Findings::new();
    Fragments::collect(declared, &mut findings).expand(&mut root, &mut sources, &mut findings);
    findings.in_order().into_iter().map(|finding| finding.message.clone()).collect()
}

/// Each fragment gives ten times what the one before gives.
#[test]
fn fragments_that_grow_by_ten_at_each_level_are_stopped() {
    let gives = |level: usize| match level {
        0 => text("x"),
        level => node(Kind::Seq(vec![map("of", map(USE, text(&format!("f{}", level - 1)))); 10].into())),
    };
    let fragment =
        |level| FragmentDecl { name: spanned(&format!("f{level}")), takes: Vec::new(), gives: gives(level) };
    let said = messages((0..12).map(fragment).collect(), text("f11"));
    assert_eq!(said, ["the uses of fragments make more than 1000000 values"]);
}

#[test]
fn fragments_within_one_another_are_bounded() {
    let gives = |level: usize| match level {
        0 => text("x"),
        level => map(USE, text(&format!("f{}", level - 1))),
    };
    let fragment =
        |level| FragmentDecl { name: spanned(&format!("f{level}")), takes: Vec::new(), gives: gives(level) };
    let said = messages((0..40).map(fragment).collect(), text("f39"));
    assert_eq!(said, ["with its fragments, more than 16 blocks inside one another"]);
}
