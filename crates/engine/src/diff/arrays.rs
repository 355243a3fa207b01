//! Matches the elements of two arrays: by the key that the pack names; by equality if the order is
//! irrelevant; otherwise by position from both ends and by the longest common subsequence between.

use super::finding::{Cause, FindingKind};
use super::place::Step;
use super::rules::Node;
use super::walk::{Part, Walk, cause};
use std::collections::{HashMap, VecDeque};
use switchback_json::{Array, Value};

/// Maximum number of element pairs that are compared. Larger arrays are matched by position.
const PAIRS_MAX: usize = 4096;

/// One of the two arrays.
#[derive(Clone, Copy)]
struct Side<'v> {
    part: Part<'v>,
    items: &'v [Value],
}

impl<'v> Side<'v> {
    fn item(self, at: usize) -> Part<'v> {
        self.part.child(&self.items[at], at, self.items.len())
    }

    fn len(self) -> usize {
        self.items.len()
    }
}

/// A matched element: its index in the reference and its index in the candidate.
type Match = (Option<usize>, Option<usize>);

impl Walk<'_> {
    pub(super) fn arrays(
        &mut self,
        (a, left): (Part<'_>, &Array),
        (b, right): (Part<'_>, &Array),
        node: &Node,
        around: &Cause,
    ) {
        static UNKNOWN: Node = Node::UNKNOWN;
        let (a, b) = (Side { part: a, items: left }, Side { part: b, items: right });
        let element = node.element.as_deref().unwrap_or(&UNKNOWN);
        let is_open = a.part.is_open() || b.part.is_open();
        let keys = node.key.as_deref().and_then(|key| Some((keys(a.items, key)?, keys(b.items, key)?)));
        let matches = match keys {
            Some(keys) => self.by_key(a, b, &keys, node, element, around),
            // An unread element could equal any of these, so no difference is certain.
            None if node.is_unordered && is_open => return,
            None if node.is_unordered => self.by_equality(a, b, node, element, around),
            None if is_open => return self.beginnings(a, b, element, around, node),
            None => self.by_place(a, b, element, around),
        };
        for one in matches {
            self.compare_matched(one, a, b, element, around);
        }
    }

    fn compare_matched(&mut self, one: Match, a: Side<'_>, b: Side<'_>, element: &Node, around: &Cause) {
        let shown = one.0.or(one.1).unwrap_or_default();
        self.at.push(Step::Element(shown));
        match one {
            (Some(i), Some(j)) => self.value(a.item(i), b.item(j), element, around),
            (Some(i), None) => self.lone(FindingKind::Missing, &a.items[i], element, around),
            (None, Some(j)) => self.lone(FindingKind::Extra, &b.items[j], element, around),
            (None, None) => {}
        }
        self.at.pop();
    }

    /// Returns whether two elements have no difference that a client would notice.
    fn same(&mut self, a: Part<'_>, b: Part<'_>, element: &Node, around: &Cause) -> bool {
        self.near(a, b, element, around) == 0
    }

    fn near(&mut self, a: Part<'_>, b: Part<'_>, element: &Node, around: &Cause) -> u32 {
        // Patterns replace every index by `*`, so any index will do while counting.
        self.at.push(Step::Element(0));
        let differences = self.differences(a, b, element, around);
        self.at.pop();
        differences
    }

    /// Matches elements with equal keys. Repeated keys are matched in order of occurrence.
    fn by_key(
        &mut self,
        a: Side<'_>,
        b: Side<'_>,
        (left, right): &(Vec<String>, Vec<String>),
        node: &Node,
        element: &Node,
        around: &Cause,
    ) -> Vec<Match> {
        let mut places: HashMap<&str, VecDeque<usize>> = HashMap::new();
        for (at, key) in right.iter().enumerate() {
            places.entry(key).or_default().push_back(at);
        }
        let mut matches: Vec<Match> = Vec::with_capacity(left.len());
        for (at, key) in left.iter().enumerate() {
            matches.push((Some(at), places.get_mut(key.as_str()).and_then(VecDeque::pop_front)));
        }
        let mut rest: Vec<usize> = places.into_values().flatten().collect();
        rest.sort_unstable();
        let is_open = a.part.is_open() || b.part.is_open();
        // In a partly read array, the counterpart of an unmatched element may be unread.
        if !is_open {
            self.changed_keys(a, b, &mut matches, &mut rest, element, around);
        }
        // Compare the order of matched elements only: an insertion is not a reordering.
        let order: Vec<usize> = matches.iter().filter_map(|one| one.1).collect();
        if !order.is_sorted() {
            self.other_order(node, a, b, around);
        }
        // A missing element may be in the unread part of the candidate.
        matches.retain(|one| one.1.is_some() || !b.part.is_open());
        if !a.part.is_open() {
            matches.extend(rest.into_iter().map(|at| (None, Some(at))));
        }
        matches
    }

    /// Matches elements at the same index that differ in at most one value, the key. The result is
    /// one finding for the changed key instead of a missing and an extra element.
    fn changed_keys(
        &mut self,
        a: Side<'_>,
        b: Side<'_>,
        matches: &mut [Match],
        rest: &mut Vec<usize>,
        element: &Node,
        around: &Cause,
    ) {
        for one in matches.iter_mut() {
            let (Some(at), None) = *one else { continue };
            let Ok(free) = rest.binary_search(&at) else { continue };
            // More than one difference: these are probably two unrelated elements.
            if self.near(a.item(at), b.item(at), element, around) <= 1 {
                rest.remove(free);
                one.1 = Some(at);
            }
        }
    }

    fn other_order(&mut self, node: &Node, a: Side<'_>, b: Side<'_>, around: &Cause) {
        if node.is_unordered {
            return self.excuse_if(true, |excused| &mut excused.declared);
        }
        self.note(FindingKind::Order, Some(a.part.value), Some(b.part.value), cause(&node.source, around));
    }

    /// Matches equal elements regardless of position, then the remaining ones in order.
    fn by_equality(
        &mut self,
        a: Side<'_>,
        b: Side<'_>,
        _: &Node,
        element: &Node,
        around: &Cause,
    ) -> Vec<Match> {
        let mut free: Vec<usize> = (0..b.len()).collect();
        let mut left = Vec::new();
        let mut is_ordered = true;
        let mut tries = PAIRS_MAX;
        for at in 0..a.len() {
            let mut found = None;
            for (index, there) in free.iter().enumerate() {
                // The remaining elements are matched in order, which bounds the work.
                if tries == 0 {
                    break;
                }
                tries -= 1;
                if self.same(a.item(at), b.item(*there), element, around) {
                    found = Some(index);
                    break;
                }
            }
            match found {
                Some(index) => is_ordered &= free.remove(index) == at,
                None => left.push(at),
            }
        }
        self.excuse_if(!is_ordered && left.is_empty() && free.is_empty(), |excused| &mut excused.declared);
        let both = left.len().min(free.len());
        let pairs = left[..both].iter().zip(&free[..both]).map(|(a, b)| (Some(*a), Some(*b)));
        let missing = left[both..].iter().map(|at| (Some(*at), None));
        pairs.chain(missing).chain(free[both..].iter().map(|at| (None, Some(*at)))).collect()
    }

    /// Matches equal elements from both ends, and the elements between by the longest common
    /// subsequence. Matching by index is preferred if it finds as many equal elements.
    fn by_place(&mut self, a: Side<'_>, b: Side<'_>, element: &Node, around: &Cause) -> Vec<Match> {
        let common = a.len().min(b.len());
        let mut start = 0;
        while start < common && self.same(a.item(start), b.item(start), element, around) {
            start += 1;
        }
        let mut end = 0;
        while end < common - start
            && self.same(a.item(a.len() - 1 - end), b.item(b.len() - 1 - end), element, around)
        {
            end += 1;
        }
        let (rows, columns) = (start..a.len() - end, start..b.len() - end);
        let mut matches: Vec<Match> = (0..start).map(|at| (Some(at), Some(at))).collect();
        // The table of common subsequences has quadratic size.
        // Matching by position is linear. It yields more findings, but they are real ones.
        if rows.len() * columns.len() > PAIRS_MAX {
            gap(rows.clone(), columns.clone(), &mut matches);
        } else {
            self.by_common_run(a, b, (rows, columns), element, around, &mut matches);
        }
        matches.extend((0..end).rev().map(|at| (Some(a.len() - 1 - at), Some(b.len() - 1 - at))));
        matches
    }

    fn by_common_run(
        &mut self,
        a: Side<'_>,
        b: Side<'_>,
        (rows, columns): (std::ops::Range<usize>, std::ops::Range<usize>),
        element: &Node,
        around: &Cause,
        matches: &mut Vec<Match>,
    ) {
        let (height, width) = (rows.len(), columns.len());
        // `length[i][j]` is the length of the longest common subsequence of `rows[i..]` and
        // `columns[j..]`.
        let mut length = vec![vec![0u32; width + 1]; height + 1];
        let mut same = vec![vec![false; width]; height];
        for i in (0..height).rev() {
            for j in (0..width).rev() {
                same[i][j] = self.same(a.item(rows.start + i), b.item(columns.start + j), element, around);
                // Equal arrays with edited elements should yield findings at the index of each
                // edit, not pairs of missing and extra elements.
                length[i][j] = match same[i][j] {
                    true => length[i + 1][j + 1] + 1,
                    false => length[i + 1][j].max(length[i][j + 1]),
                };
            }
        }
        let in_place = (0..height.min(width)).filter(|at| same[*at][*at]).count();
        if height == width && length[0][0] as usize <= in_place {
            return gap(rows, columns, matches);
        }
        let (mut i, mut j) = (0, 0);
        let (mut from_i, mut from_j) = (0, 0);
        let flush = |from: (usize, usize), to: (usize, usize), matches: &mut Vec<Match>| {
            gap(
                rows.start + from.0..rows.start + to.0,
                columns.start + from.1..columns.start + to.1,
                matches,
            );
        };
        while i < height && j < width {
            if same[i][j] {
                flush((from_i, from_j), (i, j), matches);
                matches.push((Some(rows.start + i), Some(columns.start + j)));
                (i, j) = (i + 1, j + 1);
                (from_i, from_j) = (i, j);
            } else if length[i + 1][j] >= length[i][j + 1] {
                i += 1;
            } else {
                j += 1;
            }
        }
        flush((from_i, from_j), (height, width), matches);
    }

    /// Compares two arrays of which at least one was read only in part, up to the first element
    /// that differs. The elements after it could match any unread element, so they become a single
    /// finding for the array. A full comparison finds a difference there, too.
    fn beginnings(&mut self, a: Side<'_>, b: Side<'_>, element: &Node, around: &Cause, node: &Node) {
        let common = a.len().min(b.len());
        let same = (0..common).find(|at| !self.same(a.item(*at), b.item(*at), element, around));
        if same.is_some() {
            let cause = cause(&node.source, around);
            self.note(FindingKind::Value, Some(a.part.value), Some(b.part.value), cause);
        } else if !b.part.is_open() && a.len() > b.len() {
            self.compare_matched((Some(common), None), a, b, element, around);
        } else if !a.part.is_open() && b.len() > a.len() {
            self.compare_matched((None, Some(common)), a, b, element, around);
        }
    }
}

/// Matches a stretch without equal elements by index; the longer side's remainder has no
/// counterpart.
fn gap(rows: std::ops::Range<usize>, columns: std::ops::Range<usize>, matches: &mut Vec<Match>) {
    let both = rows.len().min(columns.len());
    let pairs = rows.clone().zip(columns.clone()).map(|(i, j)| (Some(i), Some(j)));
    matches.extend(pairs);
    matches.extend(rows.skip(both).map(|i| (Some(i), None)));
    matches.extend(columns.skip(both).map(|j| (None, Some(j))));
}

/// Returns the key of every element as text, or `None` if an element has no scalar key.
fn keys(items: &[Value], key: &str) -> Option<Vec<String>> {
    items.iter().map(|item| plain(item.get(key)?)).collect()
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.decode().into_owned()),
        Value::Number(number) => Some(number.text().to_owned()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
