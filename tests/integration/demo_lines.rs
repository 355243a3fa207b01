//! `switchback demo` from a user's view: starts the real binary, runs every printed curl line, and
//! checks that its output matches the line above it.

use crate::support::program::Program;
use reqwest::{Client, Method, Response};
use serde_json::Value;

/// A printed curl line, split like a shell does.
struct Curl {
    url: String,
    method: Option<Method>,
    headers: Vec<(String, String)>,
    body: Option<String>,
}

impl Curl {
    fn parse(line: &str) -> Curl {
        let line = line.split(" | ").next().expect("there is always a first part");
        let mut words = shell_words(line).into_iter().skip(1);
        let mut curl = Curl { url: String::new(), method: None, headers: Vec::new(), body: None };
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_else(|| panic!("{word} wants a value in {line}"));
            match word.as_str() {
                "-s" | "-si" => {}
                "-X" => curl.method = Some(value().parse().expect("a method")),
                "-d" => curl.body = Some(value()),
                "-H" => {
                    let header = value();
                    let (name, value) = header.split_once(": ").expect("a header field");
                    curl.headers.push((name.to_owned(), value.to_owned()));
                }
                url if url.starts_with("http://127.0.0.1:") => curl.url = url.to_owned(),
                other => panic!("{other} in {line}"),
            }
        }
        curl
    }

    async fn run(self, http: &Client) -> Response {
        let default = if self.body.is_some() { Method::POST } else { Method::GET };
        let mut request = http.request(self.method.unwrap_or(default), &self.url);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        if let Some(body) = self.body {
            request = request.body(body);
        }
        request.send().await.unwrap_or_else(|error| panic!("{}: {error}", self.url))
    }
}

/// Words of a shell line, with single quotes.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in line.trim().chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Each line of the demo in the README is printed, apart from tokens and ports.
fn assert_readme_shows(printed: &str) {
    let plain = |line: &str| {
        let tokens = ["the token ", "Bearer "];
        let mut line = line.to_owned();
        for token in tokens {
            if let Some((before, after)) = line.split_once(token) {
                let rest = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "-<>".contains(c));
                line = format!("{before}{token}{rest}");
            }
        }
        let mut parts = line.split("127.0.0.1:");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |line, part| {
            line + "127.0.0.1" + part.trim_start_matches(|c: char| c.is_ascii_digit())
        })
    };
    let readme = include_str!("../../README.md");
    let block = readme.split("```text\n").find(|block| block.contains("studio  ")).expect("the demo's lines");
    let shown = block.split("\n```").next().expect("an end").lines().filter(|line| !line.is_empty());
    for line in shown {
        assert!(printed.lines().any(|of_demo| plain(of_demo) == plain(line)), "{line}\n{printed}");
    }
}

#[tokio::test]
async fn every_line_that_the_demo_prints_works_when_pasted() {
    let any = "127.0.0.1:0";
    let demo = Program::start(&["demo", "--listen", any, "--admin", any, "--sandbox", any], &[]);
    let printed = demo.stdout_until("Ctrl-C");
    assert_readme_shows(&printed);
    let lines: Vec<&str> = printed.lines().map(str::trim).filter(|line| line.starts_with("curl ")).collect();
    assert_eq!(lines.len(), 8, "{printed}");
    let http = crate::support::http::client();
    let mut answers = Vec::new();
    for line in &lines {
        let response = Curl::parse(line).run(&http).await;
        answers.push((response.status().as_u16(), response.text().await.expect("a text")));
    }
    let json = |at: usize| -> Value {
        serde_json::from_str(&answers[at].1).unwrap_or_else(|_| panic!("{}", answers[at].1))
    };
    let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [200, 201, 200, 201, 201, 200, 401, 200], "{answers:#?}");

    let messages = json(0);
    assert!(
        messages[0]["body"].is_string() && messages[0]["is_internal"].is_boolean(),
        "v2's names: {messages}"
    );
    assert!(messages[0].get("text").is_none());
    assert_eq!(answers[1].1, "", "v2 answered a sent message with an empty body");
    assert!(json(2)["reason"].is_string() && json(2)["chatID"].is_number(), "{}", answers[2].1);
    assert_eq!(json(3)[0]["name"], "Ana Souza", "v2 answers a list of one");
    assert_eq!(json(3)[0]["phone"], "5511988887777");
    assert_eq!(answers[4].1, "");
    assert!(json(6)["reason"].is_string());
    assert!(
        answers[7].1.contains("outcome=\"translated\"") && answers[7].1.contains("client=\"acme\""),
        "{}",
        answers[7].1
    );

    // The command line reaches it by the configuration that is printed.
    let verbs: Vec<&str> =
        printed.lines().map(str::trim).filter(|line| line.starts_with("switchback ")).collect();
    assert_eq!(verbs.len(), 5, "{printed}");
    for line in verbs {
        let words = shell_words(line);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_switchback"));
        let output = command.args(&words[1..]).output().expect("the program runs");
        // A report with differences has an exit code of its own.
        let is_done = output.status.success() || words[1] == "diff" && output.status.code() != Some(2);
        assert!(is_done && !output.stdout.is_empty(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let brownout = Curl::parse(&lines[0].replace("/v2/chats/7/messages", "/v2/chats"));
    crate::support::dual::eventually("the brownout that was added shows", async || {
        let again =
            Curl { url: brownout.url.clone(), method: None, headers: brownout.headers.clone(), body: None };
        again.run(&http).await.status() == 503
    })
    .await;

    let status = demo.stop();
    assert!(status.success(), "{status}");
}
