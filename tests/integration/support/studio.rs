//! Pages of the studio as tests read them: the text of markup, rows of tables, sections; and a
//! browser's session.

use super::dual::{ADMIN_TOKEN, Running, eventually};
use super::raw::{Answer, Client};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// A page of the studio, as a program with the admin token gets it.
pub async fn page(gateway: &Running, path: &str) -> String {
    gateway.admin_text(&format!("GET {path}"), &Value::Null).await.text()
}

/// The text of markup, its tags left out.
pub fn text(markup: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for letter in markup.chars() {
        match letter {
            '<' => is_tag = true,
            '>' => is_tag = false,
            letter if !is_tag => text.push(letter),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The cells of the row with this id.
pub fn cells(page: &str, id: &str) -> Vec<String> {
    let start = format!("<tr id=\"{id}\"");
    let Some((_, rest)) = page.split_once(&start) else { return Vec::new() };
    let row = rest.split("</tr>").next().unwrap_or_default();
    row.split("<td").skip(1).map(|cell| text(cell.split_once('>').map_or("", |(_, rest)| rest))).collect()
}

/// The text of a section of a page, from the element with this id on.
pub fn section(page: &str, id: &str) -> String {
    text(markup(page, id).split_once('>').map_or("", |(_, rest)| rest))
}

/// Returns the texts of the elements of one kind in markup, such as of `tr`, which must not be
/// nested.
pub fn texts(markup: &str, element: &str) -> Vec<String> {
    let (open, close) = (format!("<{element}"), format!("</{element}>"));
    let pieces = markup.split(&open).skip(1).filter(|piece| piece.starts_with(['>', ' ']));
    let inner = |piece: &str| text(piece.split(&close).next()?.split_once('>')?.1).into();
    pieces.filter_map(inner).collect()
}

/// Returns the address of an operation's page, or of one below it.
pub fn address(page: &str, side: &str, operation: &str) -> String {
    format!("/{page}/{side}/{}", encoded(operation))
}

/// A name as pages encode it in addresses and ids.
pub fn encoded(name: &str) -> String {
    let letter = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' | '~' => letter.to_string(),
        other => format!("%{:02X}", u32::from(other)),
    };
    name.chars().map(letter).collect()
}

/// Returns a page once it contains this text: pages display the store and traffic with a small
/// delay.
pub async fn page_with(gateway: &Running, path: &str, mark: &str) -> String {
    let mut last = String::new();
    eventually(&format!("{path} has {mark}"), async || {
        last = page(gateway, path).await;
        last.contains(mark)
    })
    .await;
    last
}

/// The markup of a page from this id on to the end of its section.
pub fn markup<'p>(page: &'p str, id: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!(" id=\"{id}\"")).unwrap_or_else(|| panic!("no {id} in {page}"));
    rest.split("</section>").next().unwrap_or_default()
}

/// A session of the studio that may change things.
pub struct Session {
    cookie: String,
}

impl Session {
    /// Signs in with the admin token.
    pub async fn open(gateway: &Running) -> Session {
        Session::open_with(gateway, ADMIN_TOKEN).await
    }

    /// Signs in with this token.
    pub async fn open_with(gateway: &Running, token: &str) -> Session {
        let body = format!("token={token}&name=Ada&to=/");
        let answer = send(gateway, "POST /login", FORM, &body).await;
        let cookie = answer.values("set-cookie").first().and_then(|cookie| cookie.split(';').next());
        Session { cookie: cookie.expect("a session").to_owned() }
    }

    /// A page as this session gets it.
    pub async fn page(&self, gateway: &Running, path: &str) -> String {
        send(gateway, &format!("GET {path}"), &format!("cookie: {}\r\n", self.cookie), "").await.text()
    }
}

impl Session {
    /// Submits a form with these fields.
    pub async fn submit(&self, gateway: &Running, path: &str, fields: &[(&str, &str)]) -> Answer {
        let page = self.page(gateway, "/history").await;
        let (_, rest) = page.split_once("name=\"form_token\" value=\"").expect("each page has a form");
        let token = rest.split('"').next().unwrap_or_default();
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let pairs = [("form_token", token)].into_iter().chain(fields.iter().copied());
        let pairs = pairs.map(|(name, value)| format!("{}={}", encode(name), encode(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        let head = format!("{FORM}cookie: {}\r\n", self.cookie);
        send(gateway, &format!("POST {path}"), &head, &body).await
    }
}

/// The fields of a form that a page of the studio sends.
pub const FORM: &str = "content-type: application/x-www-form-urlencoded\r\norigin: http://localhost\r\n";

/// Sends a request to the admin port; `fields` end in `\r\n` each.
pub async fn send(gateway: &Running, line: &str, fields: &str, body: &str) -> Answer {
    let mut client = Client::connect(gateway.admin).await;
    let length = body.len();
    let head =
        format!("{line} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{fields}\r\n{body}");
    client.send(head).await;
    client.answer().await.expect("the admin port answers")
}
