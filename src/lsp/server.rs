//! The message loop: requests are answered in order, and findings are published once no message
//! waits, so that fast typing compiles once.

use super::pack::{COMPILE_TIME_MAX, Cursor, Workspace};
use super::text::ColumnUnit;
use super::{complete, names};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::path::{Path, PathBuf};
use switchback_compiler::diagnostic::{Finding, Severity, Sources, Span};

/// Serves one editor over standard input and output, until it asks to exit or its end closes.
///
/// # Errors
///
/// Returns an error if the streams break or the editor breaks the protocol.
pub fn run() -> Result<(), Box<dyn Error + Send + Sync>> {
    let (connection, threads) = Connection::stdio();
    let (id, parameters) = connection.initialize_start()?;
    let encoding = ColumnUnit::negotiate(&parameters);
    connection.initialize_finish(id, capabilities(encoding))?;
    let mut server = Server { workspace: Workspace::default(), encoding, waiting: RefCell::default() };
    server.serve(&connection)?;
    // The writer ends once no sender is left.
    drop(connection);
    threads.join()?;
    Ok(())
}

fn capabilities(encoding: ColumnUnit) -> Value {
    json!({
        "capabilities": {
            "positionEncoding": encoding.name(),
            // 1: a change contains the entire text.
            "textDocumentSync": {"openClose": true, "change": 1, "save": true},
            "completionProvider": {"triggerCharacters": [".", " "]},
            "hoverProvider": true,
            "definitionProvider": true,
            "renameProvider": {"prepareProvider": true},
            "codeActionProvider": {"codeActionKinds": ["quickfix"]},
        },
        "serverInfo": {"name": "switchback", "version": env!("SWITCHBACK_VERSION")},
    })
}

struct Server {
    workspace: Workspace,
    encoding: ColumnUnit,
    /// Messages that arrived during a compilation.
    waiting: RefCell<VecDeque<Message>>,
}

impl Server {
    fn serve(&mut self, connection: &Connection) -> Result<(), Box<dyn Error + Send + Sync>> {
        loop {
            let next = self.waiting.get_mut().pop_front();
            let message = match next.or_else(|| connection.receiver.try_recv().ok()) {
                Some(message) => message,
                None if self.publish(connection)? => {
                    let Ok(message) = connection.receiver.recv() else { return Ok(()) };
                    message
                }
                None => continue,
            };
            match message {
                Message::Request(request) => {
                    if connection.handle_shutdown(&request)? {
                        return Ok(());
                    }
                    connection.sender.send(self.answer(request).into())?;
                }
                Message::Notification(notification) => self.update(&notification),
                Message::Response(_) => {}
            }
        }
    }

    /// Answers a request. A request about an unknown file has an empty answer.
    fn answer(&mut self, request: Request) -> Response {
        let (at, workspace, encoding) = (&request.params, &mut self.workspace, self.encoding);
        let uri = find_text(at, "/textDocument/uri").unwrap_or_default();
        let offset = |pointer: &'static str| {
            move |text: &str| encoding.offset(text, at.pointer(pointer).unwrap_or(&Value::Null))
        };
        let cursor = workspace.cursor(uri, offset("/position"));
        let of_cursor = |run: &mut dyn FnMut(&Cursor) -> Option<Value>| cursor.as_ref().and_then(run);
        let answer = match request.method.as_str() {
            "textDocument/completion" => of_cursor(&mut |at| complete::complete(workspace, encoding, at)),
            "textDocument/hover" => of_cursor(&mut |at| names::hover(workspace, encoding, at)),
            "textDocument/definition" => of_cursor(&mut |at| names::definition(workspace, encoding, at)),
            "textDocument/prepareRename" => {
                of_cursor(&mut |at| names::prepare_rename(workspace, encoding, at))
            }
            "textDocument/rename" => {
                let name = find_text(at, "/newName").unwrap_or_default();
                match cursor.map(|cursor| names::rename(workspace, encoding, &cursor, name)) {
                    Some(Err(error)) => {
                        let code = ErrorCode::RequestFailed as i32;
                        return Response::new_err(request.id, code, error.to_string());
                    }
                    Some(Ok(edit)) => edit,
                    None => None,
                }
            }
            "textDocument/codeAction" => {
                let start = workspace.cursor(uri, offset("/range/start"));
                let end = workspace.cursor(uri, offset("/range/end"));
                start
                    .zip(end)
                    .and_then(|(start, end)| names::corrections(workspace, encoding, &start, end.offset))
            }
            method => {
                let code = ErrorCode::MethodNotFound as i32;
                return Response::new_err(request.id, code, format!("`{method}` is not supported"));
            }
        };
        Response::new_ok(request.id, answer)
    }

    /// Applies a notification about files. Others are ignored, as the protocol permits.
    fn update(&mut self, notification: &Notification) {
        let at = &notification.params;
        let uri = find_text(at, "/textDocument/uri").unwrap_or_default();
        let version = at.pointer("/textDocument/version").cloned().unwrap_or_default();
        match notification.method.as_str() {
            "textDocument/didOpen" => {
                if let Some(text) = find_text(at, "/textDocument/text") {
                    self.workspace.open(uri, version, text);
                }
            }
            "textDocument/didChange" => {
                let changes = at.pointer("/contentChanges").and_then(Value::as_array);
                let last = changes.and_then(|changes| find_text(changes.last()?, "/text"));
                if let Some(text) = last {
                    self.workspace.open(uri, version, text);
                }
            }
            "textDocument/didClose" => self.workspace.close(uri),
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => self.workspace.refresh(),
            _ => {}
        }
    }

    /// Publishes the findings of all packs, and returns whether it is done: a message ends the
    /// compilation, because it may be a change. A file without findings any more gets an empty list.
    fn publish(&mut self, connection: &Connection) -> Result<bool, Box<dyn Error + Send + Sync>> {
        let waiting = &self.waiting;
        let is_superseded = || {
            waiting.borrow_mut().extend(connection.receiver.try_recv());
            !waiting.borrow().is_empty()
        };
        let roots: Vec<PathBuf> = self.workspace.unpublished();
        for root in roots {
            let mut by_file: BTreeMap<PathBuf, Vec<Value>> = BTreeMap::new();
            if !self.workspace.open_files(&root).is_empty() {
                // The URIs depend on the open files, which a compilation does not change.
                let uris = self.workspace.uris();
                let uri = |path: &Path| uris.get(path).cloned().unwrap_or_else(|| super::text::uri_of(path));
                let Some(compiled) = self.workspace.compile_until(&root, &is_superseded) else {
                    if is_superseded() {
                        return Ok(false);
                    }
                    // Not again before the next change. The findings in the editor stay.
                    let files = self.workspace.replace_published(&root, Vec::new());
                    self.workspace.replace_published(&root, files);
                    let seconds = COMPILE_TIME_MAX.as_secs();
                    let text =
                        format!("{}: not checked, compiling takes more than {seconds} s", root.display());
                    let message = Notification::new(
                        "window/showMessage".to_owned(),
                        json!({"type": 2, "message": text}),
                    );
                    connection.sender.send(message.into())?;
                    continue;
                };
                for finding in compiled.findings.in_order() {
                    let path = root.join(compiled.sources.name(finding.span.file));
                    let of_file = |name: &str| uri(&root.join(name));
                    let one = diagnostic(&of_file, self.encoding, &compiled.sources, finding);
                    by_file.entry(path).or_default().push(one);
                }
            }
            // An open file without findings has an empty list, so that the editor knows that it was read.
            for path in self.workspace.open_files(&root) {
                by_file.entry(path).or_default();
            }
            for path in self.workspace.replace_published(&root, by_file.keys().cloned().collect()) {
                by_file.entry(path).or_default();
            }
            for (path, diagnostics) in by_file {
                let mut parameters = json!({"uri": self.workspace.uri(&path), "diagnostics": diagnostics});
                if let Some(version) = self.workspace.version(&path) {
                    parameters["version"] = version.clone();
                }
                let method = "textDocument/publishDiagnostics".to_owned();
                connection.sender.send(Notification::new(method, parameters).into())?;
            }
        }
        Ok(true)
    }
}

/// Converts a finding. `uri` returns the URI of a file by its path inside the pack.
pub(super) fn diagnostic(
    uri: &dyn Fn(&str) -> String,
    encoding: ColumnUnit,
    sources: &Sources,
    finding: &Finding,
) -> Value {
    let range = |span: Span| encoding.range(sources.text(span.file), span.start, span.end);
    let severity = match finding.severity {
        Severity::Error => 1,
        Severity::Warning => 2,
        Severity::Note => 3,
    };
    let help = finding.help.as_ref().map(|help| format!("\n{help}")).unwrap_or_default();
    let places = finding.group.iter().flat_map(|group| &group.first).map(|span| (*span, "also here"));
    let places = finding.related.iter().map(|(span, about)| (*span, about.as_str())).chain(places);
    let related: Vec<Value> = places
        .map(|(span, about)| {
            json!({"location": {"uri": uri(sources.name(span.file)), "range": range(span)}, "message": about})
        })
        .collect();
    json!({
        "range": range(finding.span),
        "severity": severity,
        "code": finding.code.number(),
        "source": "switchback",
        "message": format!("{}{help}", finding.message),
        "relatedInformation": related,
    })
}

fn find_text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}
