//! The language of a pack whose files are in memory, for the editor of the studio. Positions are those
//! of the protocol in UTF-16, the unit of browsers.

use super::complete;
use super::pack::Workspace;
use super::server::diagnostic;
use super::text::{ColumnUnit, uri_of};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use switchback_compiler::mapping::load::PackSource;

/// The folder of the pack in paths.
const ROOT: &str = "/";

/// A pack in memory with edited texts, and the results of its last compilation.
pub struct MemoryPack(Workspace);

impl MemoryPack {
    /// Creates a pack of these files.
    pub fn new(files: PackSource) -> MemoryPack {
        MemoryPack(Workspace::of_memory(files))
    }

    /// Replaces the edited texts. Any other file has its text in the pack.
    pub fn set_texts(&mut self, texts: &BTreeMap<String, String>) {
        let uri = |name: &str| uri_of(&Path::new(ROOT).join(name));
        let open: Vec<String> = self.0.uris().into_values().collect();
        let wanted: Vec<String> = texts.keys().map(|name| uri(name)).collect();
        open.iter().filter(|uri| !wanted.contains(uri)).for_each(|uri| self.0.close(uri));
        for (name, text) in texts {
            if self.0.text(&Path::new(ROOT).join(name)) != Some(text.as_str()) {
                self.0.open(&uri(name), Value::Null, text);
            }
        }
    }

    /// Returns the findings as diagnostics of the protocol, by file. `None` if the compilation takes too
    /// long.
    pub fn findings(&mut self) -> Option<BTreeMap<String, Vec<Value>>> {
        let compiled = self.0.compile(Path::new(ROOT))?;
        let mut by_file: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for finding in compiled.findings.in_order() {
            let name = compiled.sources.name(finding.span.file).to_owned();
            let one =
                diagnostic(&|name: &str| name.to_owned(), ColumnUnit::Utf16, &compiled.sources, finding);
            by_file.entry(name).or_default().push(one);
        }
        Some(by_file)
    }

    /// Returns the completion items of the protocol at a position of an edited file.
    pub fn complete(&mut self, file: &str, position: &Value) -> Option<Value> {
        let uri = uri_of(&Path::new(ROOT).join(file));
        let cursor = self.0.cursor(&uri, |text| ColumnUnit::Utf16.offset(text, position))?;
        complete::complete(&mut self.0, ColumnUnit::Utf16, &cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn messaging() -> PackSource {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging");
        PackSource::from_dir(&folder).expect("the pack is next to the sources")
    }

    fn text_of(files: &PackSource, name: &str) -> String {
        let (_, bytes) = files.files().iter().find(|(known, _)| known == name).expect("a file of the pack");
        String::from_utf8(bytes.to_vec()).expect("UTF-8")
    }

    #[test]
    fn findings_and_completions_are_those_of_the_edited_text() {
        let files = messaging();
        let mut pack = MemoryPack::new(files.clone());
        assert_eq!(pack.findings(), Some(BTreeMap::new()));
        let text = text_of(&files, "contacts.map.yaml");
        let line = text.lines().position(|line| line.contains("same: [id, name, email")).expect("a shape");
        let column = text.lines().nth(line).and_then(|line| line.find("name")).expect("a field");
        let broken = text.replacen("same: [id, name, email", "same: [id, nane, email", 1);
        pack.set_texts(&BTreeMap::from([("contacts.map.yaml".to_owned(), broken)]));
        let found = pack.findings().expect("it compiles in time");
        let first = &found["contacts.map.yaml"][0];
        assert_eq!(first["range"]["start"], json!({"line": line, "character": column}), "{first}");
        let at = json!({"line": line, "character": column + 2});
        let items = pack.complete("contacts.map.yaml", &at).expect("the file is open");
        let items = items.as_array().expect("a list");
        let name = items.iter().find(|item| item["label"] == "name").expect("a field of the contract");
        assert_eq!(name["textEdit"]["range"]["start"]["character"], column, "{name}");
        pack.set_texts(&BTreeMap::new());
        assert_eq!(pack.findings(), Some(BTreeMap::new()));
    }
}
