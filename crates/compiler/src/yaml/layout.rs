//! The canonical layout of a file: two spaces per level, no blanks at the ends of lines, single blank
//! lines. Comments, quotes, brackets and the order of keys stay as they are. A layout that would
//! change a value is never returned.

use super::{Kind, Node, TextStyle, parse};
use crate::diagnostic::{Findings, Sources};

/// Spaces per level.
const STEP: usize = 2;

/// Returns the text of a file in the canonical layout, or `None` if it is not YAML or a different
/// layout would change a value.
pub fn format(text: &str) -> Option<String> {
    let tree = read(text)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut layout =
        FileLayout { text, starts: line_starts(text), indents: vec![None; lines.len()], fixed: Vec::new() };
    layout.walk(&tree, 0);
    let formatted = layout.write(&lines);
    is_same(&tree, &read(&formatted)?).then_some(formatted)
}

fn read(text: &str) -> Option<Node> {
    parse(&mut Sources::new(), "", text.as_bytes(), &mut Findings::new())
}

/// Returns whether two trees have the same values.
fn is_same(a: &Node, b: &Node) -> bool {
    match (&a.kind, &b.kind) {
        (Kind::Seq(a), Kind::Seq(b)) => a.len() == b.len() && a.iter().zip(&**b).all(|(a, b)| is_same(a, b)),
        (Kind::Map(a), Kind::Map(b)) => {
            let is_equal = |((a, x), (b, y)): (&(super::Key, Node), &(super::Key, Node))| {
                a.name == b.name && is_same(x, y)
            };
            a.len() == b.len() && a.iter().zip(&**b).all(is_equal)
        }
        (a, b) => a == b,
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

struct FileLayout<'t> {
    text: &'t str,
    starts: Vec<usize>,
    /// By line: the indentation of a line that starts with a key or a dash in block style.
    indents: Vec<Option<usize>>,
    /// Lines within a text of several lines, as ranges with an exclusive end.
    fixed: Vec<std::ops::Range<usize>>,
}

impl FileLayout<'_> {
    fn line_of(&self, offset: u32) -> usize {
        self.starts.partition_point(|start| *start <= offset as usize) - 1
    }

    /// Sets the indentation of the line that starts at an offset, if its first character is there.
    fn set(&mut self, offset: u32, indent: usize) {
        let line = self.line_of(offset);
        let before = &self.text[self.starts[line]..offset as usize];
        // The same text may be reached twice, and its own place comes first.
        if before.trim().is_empty() && self.indents[line].is_none() {
            self.indents[line] = Some(indent);
        }
    }

    /// Collects the indentation of the lines of a value, which is at this column.
    fn walk(&mut self, node: &Node, indent: usize) {
        let is_block = !self.text[node.span.start as usize..].starts_with(['{', '[']);
        match &node.kind {
            Kind::Map(entries) if is_block => {
                for (key, value) in entries.iter() {
                    self.set(key.span.start, indent);
                    self.walk(value, indent + STEP);
                }
            }
            Kind::Seq(items) if is_block => {
                for item in items.iter() {
                    let line = self.line_of(item.span.start);
                    let before = &self.text[self.starts[line]..item.span.start as usize];
                    // An item may be on a line after its dash, which then stays where it is.
                    let Some(dash) = before.rfind('-') else { continue };
                    self.set((self.starts[line] + dash) as u32, indent);
                    self.walk(item, indent + before.len() - dash);
                }
            }
            Kind::String(_, style) => {
                let (first, last) =
                    (self.line_of(node.span.start), self.line_of(node.span.end.saturating_sub(1)));
                match style {
                    TextStyle::Block => {
                        let header = self.block_header(node.span.start);
                        self.fixed.push(header + 1..self.block_end(header));
                    }
                    _ if last > first => self.fixed.push(first + 1..last + 1),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn line(&self, line: usize) -> &str {
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        self.text[self.starts[line]..end].trim_end()
    }

    /// Returns the line with the `|` or `>` of a block text. The text itself starts on a later line.
    fn block_header(&self, start: u32) -> usize {
        let first = self.line_of(start);
        let is_header = !self.text[self.starts[first]..start as usize].trim().is_empty();
        let above = (0..first).rev().find(|line| !self.line(*line).is_empty());
        if is_header { first } else { above.unwrap_or(first) }
    }

    /// Returns the line after a block text whose header is on `header`.
    fn block_end(&self, header: usize) -> usize {
        let text = self.line(header);
        let key = text.len() - text.trim_start_matches([' ', '-']).len();
        // The text is further in than its key, or than its dash.
        let dash = text[..key].rfind('-').filter(|_| text[key..].starts_with(['|', '>']));
        let around = dash.unwrap_or(key);
        let is_inside = |line: &usize| self.line(*line).is_empty() || indent_of(self.line(*line)) > around;
        let lines = header + 1..self.starts.len();
        let mut end = header + 1 + lines.take_while(is_inside).count();
        // Blank lines after the text are not part of it.
        while end > header + 1 && self.line(end - 1).is_empty() {
            end -= 1;
        }
        end
    }

    /// Writes the lines with their indentation. A line that continues a value moves with the line
    /// where the value starts, and a comment with the next line.
    fn write(&self, lines: &[&str]) -> String {
        let mut text = String::with_capacity(self.text.len());
        let mut moved = 0;
        for (at, line) in lines.iter().enumerate() {
            let is_fixed = self.fixed.iter().any(|range| range.contains(&at));
            let content = if is_fixed { *line } else { line.trim_end() };
            if content.is_empty() {
                // A blank line at the start, or after another one, is dropped.
                if is_fixed || !(text.is_empty() || text.ends_with("\n\n")) {
                    text.push('\n');
                }
                continue;
            }
            let indent = indent_of(content);
            if let Some(wanted) = self.indents[at] {
                moved = wanted as isize - indent as isize;
            }
            let is_comment = !is_fixed && content.trim_start().starts_with('#');
            let shift =
                if is_comment { self.shift_of_next(lines, at, indent).unwrap_or(moved) } else { moved };
            let width = indent.saturating_add_signed(shift);
            text.extend(std::iter::repeat_n(' ', width));
            text.push_str(&content[indent..]);
            text.push('\n');
        }
        format!("{}\n", text.trim_end_matches('\n'))
    }

    /// Returns how far the next key or dash moves, if a comment at `indent` belongs to it.
    fn shift_of_next(&self, lines: &[&str], at: usize, indent: usize) -> Option<isize> {
        let next = (at + 1..lines.len()).find(|line| self.indents[*line].is_some())?;
        let own = indent_of(lines[next]);
        (own == indent).then(|| self.indents[next].map(|wanted| wanted as isize - own as isize))?
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn indentation_blanks_and_blank_lines_are_canonical_and_all_else_stays() {
        let text = "\n# head  \na:\n    b: 1   \n    # of c\n    c:\n    - d: {x: 1,\n          y: 2}\n      e: 'f'\n\n\n\n    -   g\nh: |\n     text  \n\n       more\n\n# end\n\n";
        let wanted = "# head\na:\n  b: 1\n  # of c\n  c:\n    - d: {x: 1,\n          y: 2}\n      e: 'f'\n\n    -   g\nh: |\n     text  \n\n       more\n\n# end\n";
        assert_eq!(format(text).as_deref(), Some(wanted));
        assert_eq!(format(wanted).as_deref(), Some(wanted));
    }

    #[test]
    fn a_text_that_is_not_yaml_has_no_layout() {
        assert_eq!(format("a: [\n"), None);
        assert_eq!(format(""), None);
    }

    /// Draws block maps and lists with irregular indentation, comments, blanks and texts of several lines.
    fn block(depth: u32) -> BoxedStrategy<Vec<String>> {
        let scalar = prop_oneof![
            Just("1".to_owned()),
            Just("'x y'  ".to_owned()),
            Just("{a: 1, b: [2]}".to_owned()),
            Just("word # why".to_owned()),
        ];
        let leaf = scalar.prop_map(|scalar| vec![scalar]);
        if depth == 0 {
            return leaf.boxed();
        }
        let noise = prop_oneof![Just(None), Just(Some("# note ".to_owned())), Just(Some("   ".to_owned()))];
        let entry = (block(depth - 1), noise, 1..5usize, any::<bool>());
        let nested = prop::collection::vec(entry, 1..4).prop_flat_map(|entries| {
            any::<bool>().prop_map(move |is_list| {
                let mut lines = Vec::new();
                for (at, (value, noise, step, is_text)) in entries.iter().enumerate() {
                    lines.extend(noise.clone());
                    let head = if is_list { "-".to_owned() } else { format!("k{at}:") };
                    match value.as_slice() {
                        _ if *is_text && !is_list => {
                            lines.push(format!("{head} |"));
                            lines.extend(["   some  ", "", "     text"].map(str::to_owned));
                        }
                        [one] if !one.starts_with(['-', 'k']) => lines.push(format!("{head} {one}")),
                        many if is_list => {
                            let pad = " ".repeat(step + 1);
                            // A comment cannot be the first line after a dash on the same line.
                            let first = many
                                .iter()
                                .position(|line| !line.trim().is_empty() && !line.starts_with('#'));
                            let Some(first) = first else { continue };
                            lines.push(format!("-{}{}", " ".repeat(*step), many[first]));
                            lines.extend(many[first + 1..].iter().map(|line| format!("{pad}{line}")));
                        }
                        many => {
                            lines.push(head);
                            lines.extend(many.iter().map(|line| format!("{}{line}", " ".repeat(*step))));
                        }
                    }
                }
                lines
            })
        });
        prop_oneof![1 => leaf, 4 => nested].boxed()
    }

    proptest! {
        #[test]
        fn a_layout_is_its_own_layout_and_has_the_same_values(lines in block(4)) {
            let text = lines.join("\n") + "\n";
            if let Some(tree) = read(&text) {
                let once = format(&text).expect("a layout keeps the values");
                prop_assert!(is_same(&tree, &read(&once).expect("it is YAML")));
                prop_assert_eq!(format(&once), Some(once.clone()), "{}", text);
            }
        }
    }
}
