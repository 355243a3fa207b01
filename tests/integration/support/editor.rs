//! An editor as the language server sees it: the real binary, a copy of a pack, and messages.

use super::packs;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// A running server with a copy of the first pack; killed when dropped.
pub struct Editor {
    pub folder: tempfile::TempDir,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    requests: i64,
    /// Version of the last text.
    version: i64,
    /// The answer to `initialize`.
    pub capabilities: Value,
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Editor {
    /// Starts the server. `encodings` are the encodings of positions that the editor offers.
    pub fn start(encodings: &[&str]) -> Editor {
        let folder = tempfile::tempdir().expect("a temporary folder");
        copy(&packs::messaging_folder(), folder.path());
        let mut child = Command::new(env!("CARGO_BIN_EXE_switchback"))
            .args(["lsp", "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut editor =
            Editor { folder, child, input, output, requests: 0, version: 0, capabilities: Value::Null };
        let general = json!({"general": {"positionEncodings": encodings}});
        editor.capabilities = editor.request("initialize", json!({"capabilities": general}));
        editor.notify("initialized", json!({}));
        editor
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub fn uri(&self, file: &str) -> String {
        format!("file://{}", self.path(file).display())
    }

    /// Returns the text of a file on disk.
    pub fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).expect("the file can be read")
    }

    /// Opens a file, or changes its text if it is open.
    pub fn set(&mut self, file: &str, text: &str) {
        self.version += 1;
        let (uri, version) = (self.uri(file), self.version);
        let document = json!({"uri": uri, "languageId": "yaml", "version": version, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// Changes the text of an open file, and returns the findings that follow.
    pub fn change(&mut self, file: &str, text: &str) -> Vec<Value> {
        self.version += 1;
        let document = json!({"uri": self.uri(file), "version": self.version});
        let change = json!({"textDocument": document, "contentChanges": [{"text": text}]});
        self.notify("textDocument/didChange", change);
        let version = json!(self.version);
        self.published(file, version)
    }

    /// Waits for the findings of a version of a file; null for a closed one.
    pub fn published(&mut self, file: &str, version: Value) -> Vec<Value> {
        let uri = self.uri(file);
        loop {
            let message = self.receive();
            let is_it = message["method"] == "textDocument/publishDiagnostics";
            if is_it && message["params"]["uri"] == uri.as_str() && message["params"]["version"] == version {
                return message["params"]["diagnostics"].as_array().expect("a list").clone();
            }
        }
    }

    /// Sends a request about a place of a file and returns the answer.
    pub fn ask(&mut self, method: &str, file: &str, position: Value) -> Value {
        let document = json!({"uri": self.uri(file)});
        self.request(
            &format!("textDocument/{method}"),
            json!({"textDocument": document, "position": position}),
        )
    }

    /// Sends a request and returns its result, or its error.
    pub fn request(&mut self, method: &str, parameters: Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        loop {
            let mut message = self.receive();
            if message["id"] == id {
                let part = if message["error"].is_null() { "result" } else { "error" };
                return message[part].take();
            }
        }
    }

    pub fn notify(&mut self, method: &str, parameters: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": parameters}));
    }

    /// Asks the server to exit.
    pub fn exit(mut self) -> ExitStatus {
        self.request("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        self.child.wait().expect("it ends")
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        self.input.flush().expect("the server reads");
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("the server writes");
            match line.trim_end() {
                "" if line.is_empty() => panic!("the server has ended"),
                "" => break,
                header => {
                    let value = header.strip_prefix("Content-Length: ");
                    length = value.map_or(length, |value| value.parse().expect("a number"));
                }
            }
        }
        let mut text = vec![0; length];
        self.output.read_exact(&mut text).expect("the server writes");
        serde_json::from_slice(&text).expect("a message is JSON")
    }
}

/// Returns the position of `needle` in a text, `after` bytes from its start, in units of UTF-16.
pub fn position(text: &str, needle: &str, after: usize) -> Value {
    let at = text.find(needle).unwrap_or_else(|| panic!("the text contains `{needle}`")) + after;
    let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
    let column = text[line..at].encode_utf16().count();
    json!({"line": text[..at].matches('\n').count(), "character": column})
}

/// Copies a folder with its subfolders.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the folder is created");
    for entry in std::fs::read_dir(from).expect("the folder can be listed") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("the file is copied")),
        }
    }
}
