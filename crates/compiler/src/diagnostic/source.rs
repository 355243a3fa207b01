//! Source files and places in them. Files are not read here.

use std::sync::Arc;

/// Index of a file in [`Sources`], in the order of addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileId(u32);

impl FileId {
    fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the id after this one.
    pub(crate) fn next(self) -> FileId {
        FileId(self.0 + 1)
    }
}

/// A place: the bytes `start..end` of one file. An empty span is a point between two characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the span of bytes `start..end` of `file`.
    pub fn new(file: FileId, start: u32, end: u32) -> Span {
        Span { file, start, end: end.max(start) }
    }

    /// Returns a span from the start of `self` to the end of `other`, or `self` if the other is in
    /// another file: a fragment stands elsewhere than the key that it is the value of.
    pub fn to(self, other: Span) -> Span {
        let end = if self.file == other.file { self.end.max(other.end) } else { self.end };
        Span { end, ..self }
    }

    /// Returns whether `other` lies within this span.
    pub fn contains(self, other: Span) -> bool {
        self.file == other.file && self.start <= other.start && other.end <= self.end
    }
}

/// A place as a line and a column, both 1-based.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// 1-based line.
    pub line: u32,
    /// 1-based column, in characters.
    pub column: u32,
}

/// The files of one run, by id.
///
/// A text that is used at several places, such as a fragment, has a copy of its file for each use.
/// Spans in a copy are those of the file, and lead to the use as well.
#[derive(Debug, Default, Clone)]
pub struct Sources {
    files: Vec<SourceFile>,
}

#[derive(Debug, Clone)]
struct SourceFile {
    file: Arc<File>,
    /// For a copy: the file that it copies, and the place of the use.
    copy: Option<(FileId, Span)>,
}

#[derive(Debug)]
struct File {
    name: String,
    text: String,
    /// Byte offset of the start of each line.
    lines: Vec<u32>,
}

impl Sources {
    /// Returns an empty collection.
    pub fn new() -> Sources {
        Sources::default()
    }

    /// Adds a file. `name` is used in findings, usually the path within the pack.
    ///
    /// # Panics
    ///
    /// With a text of 4 GiB, or as many files. Readers enforce lower limits.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let bytes = u32::try_from(text.len()).expect("readers bound the size of files");
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at as u32 + 1);
        // A line break at the end of the file does not start a line.
        let lines = std::iter::once(0).chain(breaks.filter(|at| *at < bytes)).collect();
        let file = Arc::new(File { name: name.into(), text, lines });
        self.push(SourceFile { file, copy: None })
    }

    /// Adds a copy of a file, or of a copy, for text of it that is used at `place`.
    pub(crate) fn add_copy(&mut self, of: FileId, place: Span) -> FileId {
        let file = self.file(of).clone();
        self.push(SourceFile { file, copy: Some((of, place)) })
    }

    fn push(&mut self, file: SourceFile) -> FileId {
        let id = self.next_id();
        self.files.push(file);
        id
    }

    /// Returns the id of the next file.
    pub(crate) fn next_id(&self) -> FileId {
        FileId(u32::try_from(self.files.len()).expect("readers bound the number of files"))
    }

    /// Returns a span in the file that has been written, instead of in a copy.
    pub(crate) fn written(&self, span: Span) -> Span {
        let mut written = span;
        while let Some((of, _)) = self.files[written.file.index()].copy {
            written.file = of;
        }
        written
    }

    /// Returns the places that use the text of a span, from the inside out.
    pub(crate) fn uses(&self, span: Span) -> Vec<Span> {
        let (mut uses, mut open) = (Vec::new(), vec![span]);
        while let Some(span) = open.pop() {
            if let Some((of, place)) = self.files[span.file.index()].copy {
                uses.push(self.written(place));
                open.extend([Span { file: of, ..span }, place]);
            }
        }
        uses
    }

    fn file(&self, file: FileId) -> &Arc<File> {
        &self.files[file.index()].file
    }

    /// Returns the number of files.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns the files added after the first `count`.
    pub(crate) fn after(&self, count: usize) -> Sources {
        Sources { files: self.files[count..].to_vec() }
    }

    /// Appends the files of `other`.
    pub(crate) fn append(&mut self, other: &Sources) {
        self.files.extend_from_slice(&other.files);
    }

    /// Returns the id of the file with a name, and not that of a copy of it.
    pub fn find(&self, name: &str) -> Option<FileId> {
        let is_it = |source: &SourceFile| source.copy.is_none() && source.file.name == name;
        self.files.iter().position(is_it).map(|at| FileId(at as u32))
    }

    /// Returns the name of the file.
    pub fn name(&self, file: FileId) -> &str {
        &self.file(file).name
    }

    /// Returns the text of the file.
    pub fn text(&self, file: FileId) -> &str {
        &self.file(file).text
    }

    /// Returns the line and column of the start of a span.
    pub fn start(&self, span: Span) -> Position {
        self.position(span.file, span.start)
    }

    /// Returns the line and column after the last character of a span.
    pub fn end(&self, span: Span) -> Position {
        self.position(span.file, span.end)
    }

    /// Returns the text of a span.
    pub fn snippet(&self, span: Span) -> &str {
        let text = self.text(span.file);
        &text[clamp(text, span.start)..clamp(text, span.end)]
    }

    fn position(&self, file: FileId, offset: u32) -> Position {
        let file = self.file(file);
        // The first line starts at 0, so the point is at least 1.
        let line = file.lines.partition_point(|start| *start <= offset) - 1;
        // Columns count characters, as editors do, while spans count bytes.
        let before = &file.text[file.lines[line] as usize..clamp(&file.text, offset)];
        Position { line: line as u32 + 1, column: before.chars().count() as u32 + 1 }
    }

    /// Returns the byte range of the lines from the one with `first` to the one with `last`, and
    /// the number of the first line.
    pub(super) fn lines(&self, file: FileId, first: u32, last: u32) -> (std::ops::Range<usize>, usize) {
        let file = self.file(file);
        let first_line = file.lines.partition_point(|start| *start <= first) - 1;
        let after = file.lines.partition_point(|start| *start <= last);
        let end = file.lines.get(after).map_or(file.text.len(), |start| *start as usize);
        (file.lines[first_line] as usize..end, first_line + 1)
    }
}

/// Returns the nearest character boundary at or before `offset`, within the text.
pub(super) fn clamp(text: &str, offset: u32) -> usize {
    // Slicing within a character panics, and an imprecise span must not abort the whole report.
    text.floor_char_boundary(offset as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let mut sources = Sources::new();
        let file = sources.add("a", "é: 1\nção: x\n");
        let span = Span::new(file, 13, 14);
        assert_eq!(sources.snippet(span), "x");
        assert_eq!(sources.start(span), Position { line: 2, column: 6 });
        assert_eq!(sources.end(span), Position { line: 2, column: 7 });
    }

    #[test]
    fn a_copy_of_a_copy_leads_to_the_text_and_to_each_use() {
        let mut sources = Sources::new();
        let (text, outer, inner) =
            (sources.add("a", "text"), sources.add("b", "out"), sources.add("c", "in"));
        let [at_inner, at_outer] = [inner, outer].map(|file| Span::new(file, 0, 2));
        let first = sources.add_copy(inner, at_outer);
        let second = sources.add_copy(text, Span { file: first, ..at_inner });
        let span = Span::new(second, 1, 3);
        assert_eq!(sources.snippet(span), "ex");
        assert_eq!(sources.written(span), Span::new(text, 1, 3));
        assert_eq!(sources.uses(span), [at_inner, at_outer]);
        assert_eq!(sources.uses(at_inner), []);
    }

    #[test]
    fn a_place_past_the_end_is_the_end() {
        let mut sources = Sources::new();
        let file = sources.add("a", "ab\n");
        assert_eq!(sources.start(Span::new(file, 90, 95)), Position { line: 1, column: 4 });
        assert_eq!(sources.snippet(Span::new(file, 90, 95)), "");
        let empty = sources.add("b", "");
        assert_eq!(sources.start(Span::new(empty, 0, 0)), Position { line: 1, column: 1 });
    }
}
