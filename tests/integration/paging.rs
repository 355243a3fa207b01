//! Pages of lists, through the real binary, two replicas of it, and real sockets: clients with one
//! kind of paging, in front of a service with another. For all combinations, a client that reads a
//! complete list gets every item once, in order.

use crate::support::program::Program;
use crate::support::raw::{Act, Answer, Seen, Upstream, answer, exchange};
use crate::support::serving;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use switchback_gateway::store::seal::SealingKey;
use tempfile::TempDir;

/// How one side pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Page numbers from 1, without information on further pages.
    Page,
    /// Numbers from 0, and whether there is more.
    More,
    Offset,
    /// A cursor in the body.
    Cursor,
    /// A cursor in a header field, with words for the first page and for no page.
    Header,
    /// `Link`, with a cursor in it.
    Link,
    /// A URL in the body.
    Url,
}

use Kind::{Cursor, Header, Link, More, Offset, Page, Url};

const KINDS: [Kind; 7] = [Page, More, Offset, Cursor, Header, Link, Url];

impl Kind {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Its query parameters.
    fn parameters(self) -> [&'static str; 2] {
        match self {
            Page => ["page", "per_page"],
            More => ["p", "count"],
            Offset => ["offset", "limit"],
            Cursor => ["after", "first"],
            Header => ["cursor", "num"],
            Link => ["page_info", "size"],
            Url => ["token", "max"],
        }
    }

    /// Its line in the mapping; its list is at `items`.
    fn line(self, items: &str) -> String {
        let [place, size] = self.parameters();
        let how = match self {
            Page => format!("page: {place}, default: 5"),
            More => format!("page: {place}, first: 0, more: $.more, default: 5"),
            Offset => format!("offset: {place}, default: 5"),
            Cursor => format!("cursor: {place}, next: $.meta.next, default: 5"),
            Header => format!("cursor: {place}, start: '-1', next: {{header: x-next}}, default: 5"),
            Link => format!("cursor: {place}, next: link, default: 5"),
            Url => format!("cursor: {place}, next: {{link: $.next_url}}, default: 5"),
        };
        format!("{{{how}, size: {size}, items: {items}}}")
    }

    /// Members of its answers next to the list, as in a contract, and their lines in a shape.
    fn members(self) -> (&'static str, &'static str) {
        match self {
            More => (", more: {type: boolean}", "more: none"),
            Cursor => (
                ", meta: {type: object, required: [next, of], properties: {next: {type: [string, 'null']}, of: {type: string}}}",
                "$.meta.next: none, $.meta.of: 'all'",
            ),
            Url => (", next_url: {type: string}", "next_url: none"),
            _ => ("", ""),
        }
    }

    fn required(self) -> &'static str {
        match self {
            More => ", more",
            Cursor => ", meta",
            _ => "",
        }
    }
}

/// A list of `count` items, as the service of one kind gives it. `items` is the name of the list,
/// `base` its address.
fn serve(kind: Kind, items: &str, target: &str, base: &str, cap: usize) -> Act {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let get = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    let [place, size] = kind.parameters();
    for pair in query.split('&') {
        let name = pair.split('=').next().unwrap_or_default();
        assert!([place, size, "count_of"].contains(&name), "{kind:?} is asked for {target}");
    }
    let count: usize = get("count_of").unwrap_or("0").parse().expect("a number");
    let size: usize = get(size).map_or(5, |size| size.parse().expect("a number"));
    assert!(size <= cap, "{kind:?} is asked for too many: {target}");
    let at = match (kind, get(place)) {
        (_, None) => 0,
        (Page, Some(page)) => (page.parse::<usize>().expect("a number") - 1) * size,
        (More, Some(page)) => page.parse::<usize>().expect("a number") * size,
        (Offset, Some(offset)) => offset.parse().expect("a number"),
        (Header, Some("-1")) => 0,
        // Its cursors are its own: a letter and the place.
        (_, Some(cursor)) => {
            match cursor.strip_prefix("c%2F").or(cursor.strip_prefix("c/")).map(str::parse) {
                Some(Ok(at)) => at,
                _ => return Act::json(422, r#"{"error":"no such cursor"}"#),
            }
        }
    };
    let list: Vec<usize> = (at..count.min(at + size)).collect();
    let follows = (at + size < count).then(|| format!("c/{}", at + size));
    let url = follows.as_ref().map(|next| {
        let next = next.replace('/', "%2F");
        format!("{base}{path}?count_of={count}&{place}={next}&{}={size}", kind.parameters()[1])
    });
    let mut body = json!({ items: list });
    let mut fields = "content-type: application/json\r\n".to_owned();
    match kind {
        Page | Offset => {}
        More => body["more"] = json!(follows.is_some()),
        Cursor => body["meta"] = json!({"next": follows, "of": "all"}),
        Header => {
            follows.iter().for_each(|next| write!(fields, "x-next: {next}\r\n").expect("it is written"))
        }
        Link => {
            let own = format!("<{base}{path}?{place}=c%2F0>; rel=\"first\"");
            let next = url.map_or_else(String::new, |url| format!(", <{url}>; rel=\"next\"; title=\"a, b\""));
            write!(fields, "link: {own}{next}\r\n").expect("it is written");
        }
        Url => {
            if let Some(url) = url {
                body["next_url"] = json!(url);
            }
        }
    }
    Act::Reply(answer(200, &fields, &body.to_string()))
}

fn contract(version: usize, items: &str, kind_of: impl Fn(Kind, Kind) -> Kind) -> String {
    let mut text = format!("openapi: 3.1.0\ninfo: {{title: Lists, version: '{version}'}}\npaths:\n");
    for client in KINDS {
        for service in KINDS {
            let kind = kind_of(client, service);
            let parameters = kind.parameters().map(|name| {
                format!(
                    "{{name: {name}, in: query, schema: {{type: {}}}}}",
                    if name == "limit" { "integer, maximum: 50" } else { "string" }
                )
            });
            writeln!(
                text,
                "  /{}/{}:\n    get:\n      parameters: [{}, {{name: count_of, in: query, schema: {{type: integer}}}}]\n      \
                 responses: {{'200': {{description: ok, content: {{application/json: {{schema: {{type: object, \
                 additionalProperties: false, required: [{items}{}], properties: {{{items}: {{type: array, items: {{type: integer}}}}{}}}}}}}}}}}}}",
                client.name(),
                service.name(),
                parameters.join(", "),
                kind.required(),
                kind.members().0,
            )
            .expect("it is written");
        }
    }
    text + "components: {schemas: {Error: {type: object, required: [error], properties: {error: {type: string}}}}}\n"
}

/// Each kind before each, in both directions.
fn mapping() -> String {
    let mut text = "mapping: 1\nroutes:\n".to_owned();
    for client in KINDS {
        for service in KINDS {
            let [own, other] = [client, service].map(|kind| kind.members().1);
            let only = match (own, other) {
                ("", "") => String::new(),
                (own, "") => format!(", only: {{v1: {{{own}}}}}"),
                ("", other) => format!(", only: {{v2: {{{other}}}}}"),
                (own, other) => format!(", only: {{v1: {{{own}}}, v2: {{{other}}}}}"),
            };
            let path = format!("GET /{}/{}", client.name(), service.name());
            writeln!(
                text,
                "  - pair: {{v1: {path}, v2: {path}}}\n    query: [count_of]\n    \
                 paging: {{v1: {}, v2: {}}}\n    response: {{rename: {{items: data}}{only}}}",
                client.line("$.items"),
                service.line("$.data"),
            )
            .expect("it is written");
        }
    }
    text
}

const MANIFEST: &str = "pack: lists\nsides: {old: v1, new: v2}\n\
     contracts: {v1: contracts/v1.openapi.yaml, v2: contracts/v2.openapi.yaml}\n\
     credentials:\n\
     \x20 v1: {read: [x-api-token], send: x-api-token, scheme: none}\n\
     \x20 v2: {read: [authorization], send: authorization, scheme: Bearer}\n\
     languages: [en]\nerrors: {body: {error: $text}}\nrefuse: {legacy: never, status: 501}\n";

/// Writes the pack into a folder of its own.
fn write_pack(folder: &Path) -> PathBuf {
    let pack = folder.join("pack");
    std::fs::create_dir_all(pack.join("contracts")).expect("it is made");
    let v1 = contract(1, "items", |client, _| client);
    let v2 = contract(2, "data", |_, service| service);
    let files = [
        ("pack.yaml", MANIFEST.to_owned()),
        ("contracts/v1.openapi.yaml", v1),
        ("contracts/v2.openapi.yaml", v2),
        ("lists.map.yaml", mapping()),
    ];
    for (name, text) in files {
        std::fs::write(pack.join(name), text).expect("the file is written");
    }
    pack
}

/// Replicas with the same key, each with a store of its own.
struct Lists {
    replicas: Vec<SocketAddr>,
    turn: AtomicUsize,
    upstream: Upstream,
    _programs: Vec<Program>,
    _folder: TempDir,
}

/// The client: the side, the tokens.
#[derive(Clone, Copy)]
struct Speaker {
    front: &'static str,
    token: &'static str,
    items: &'static str,
}

const OLD: Speaker = Speaker { front: "/old", token: "x-api-token: old-token-of-ann", items: "items" };
const OLD_BOB: Speaker = Speaker { token: "x-api-token: old-token-of-bob", ..OLD };
const NEW: Speaker =
    Speaker { front: "/new", token: "authorization: Bearer new-token-of-ann", items: "data" };

impl Lists {
    async fn start(replicas: usize) -> Lists {
        let upstream = Upstream::answering(|_, seen: &Seen| {
            let target = seen.line().split(' ').nth(1).unwrap_or_default().to_owned();
            let (side, below) = target.trim_start_matches('/').split_once('/').expect("a side and a path");
            let kinds: Vec<&str> = below.split('?').next().unwrap_or_default().split('/').collect();
            let kind = |at: usize| KINDS.into_iter().find(|kind| kind.name() == kinds[at]).expect("a kind");
            let base = format!("http://secret.internal/{side}");
            match side {
                "one" => serve(kind(0), "items", &format!("/{below}"), &base, 100),
                _ => serve(kind(1), "data", &format!("/{below}"), &base, 50),
            }
        })
        .await;
        let folder = tempfile::tempdir().expect("a temporary folder");
        write_pack(folder.path());
        let key = Arc::new(SealingKey::generate());
        let (mut addresses, mut programs) = (Vec::new(), Vec::new());
        for replica in 0..replicas {
            let file = folder.path().join(format!("switchback-{replica}.yaml"));
            let text = format!(
                "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{at}/store-{replica}.db\nkey: ${{TEST_KEY}}\n\
                 mapping: {at}/pack\nfronts: {{ /old: {{ speaks: v1, unknown: refuse }}, /new: {{ speaks: v2, unknown: refuse }} }}\n\
                 upstreams: {{ v1: {{ url: 'http://{address}/one' }}, v2: {{ url: 'http://{address}/two' }} }}\n\
                 clients: [{{ name: ann, v1_token: old-token-of-ann, v2_token: new-token-of-ann, credentials: {{ v1: own-of-ann-1, v2: own-of-ann-2 }} }}, \
                 {{ name: bob, v1_token: old-token-of-bob, v2_token: new-token-of-bob, credentials: {{ v1: own-of-bob-1, v2: own-of-bob-2 }} }}]\n",
                at = folder.path().display(),
                address = upstream.address,
            );
            std::fs::write(&file, text).expect("the file is written");
            let (program, address, _) = serving::serve(&file, &key).await;
            addresses.push(address);
            programs.push(program);
        }
        let turn = AtomicUsize::new(0);
        Lists { replicas: addresses, turn, upstream, _programs: programs, _folder: folder }
    }

    /// Calls the replicas in turn.
    async fn ask(&self, speaker: Speaker, target: &str) -> Answer {
        let replica = self.replicas[self.turn.fetch_add(1, Ordering::Relaxed) % self.replicas.len()];
        let Speaker { front, token, .. } = speaker;
        let request = format!(
            "GET {front}{target} HTTP/1.1\r\nhost: api.example\r\n{token}\r\nconnection: close\r\n\r\n"
        );
        exchange(replica, request).await.expect("an answer")
    }

    async fn page(&self, speaker: Speaker, target: &str) -> (Answer, Vec<u64>, Value) {
        let answer = self.ask(speaker, target).await;
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        assert!(!answer.text().contains("secret.internal"), "{target}: {}", answer.text());
        let body: Value = serde_json::from_slice(&answer.body).expect("it is JSON");
        let items = body[speaker.items]
            .as_array()
            .expect("a list")
            .iter()
            .map(|item| item.as_u64().expect("a number"));
        (answer, items.collect(), body)
    }

    /// Reads a list as a client does. Returns the sizes of the pages, and all items.
    async fn walk(
        &self,
        speaker: Speaker,
        kind: Kind,
        path: &str,
        count: usize,
        size: usize,
    ) -> (Vec<usize>, Vec<u64>) {
        let [place, sized] = kind.parameters();
        let first = format!("{path}?count_of={count}&{sized}={size}");
        let (mut target, mut sizes, mut all) = (first.clone(), Vec::new(), Vec::new());
        for turn in 1.. {
            assert!(turn < 30, "{path} has no end");
            let (answer, items, body) = self.page(speaker, &target).await;
            sizes.push(items.len());
            all.extend(&items);
            let next = match kind {
                // Without information on further pages, a page that is not full is the last.
                Page => (items.len() == size).then(|| (turn + 1).to_string()),
                Offset => (items.len() == size).then(|| all.len().to_string()),
                More => body["more"].as_bool().expect("a boolean").then(|| turn.to_string()),
                Cursor => {
                    assert_eq!(body["meta"]["of"], "all");
                    assert!(body["meta"].get("next").is_some());
                    body["meta"]["next"].as_str().map(str::to_owned)
                }
                Header => (!answer.values("x-next").is_empty()).then(|| answer.value("x-next").to_owned()),
                Link | Url => {
                    let url = match kind {
                        Link => answer.values("link").first().map(|link| {
                            let url =
                                link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\""));
                            url.expect("a link to the next page").to_owned()
                        }),
                        _ => body.get("next_url").map(|url| url.as_str().expect("a text").to_owned()),
                    };
                    let Some(url) = url else { break };
                    let own = format!("http://api.example{}{path}?count_of={count}&", speaker.front);
                    assert!(url.starts_with(&own), "{url} is not below {own}");
                    target =
                        url.trim_start_matches(&format!("http://api.example{}", speaker.front)).to_owned();
                    continue;
                }
            };
            let Some(next) = next else { break };
            target = format!("{first}&{place}={}", next.replace('/', "%2F"));
        }
        (sizes, all)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_client_goes_through_every_kind_of_list_over_two_replicas() {
    let lists = Lists::start(2).await;
    for client in KINDS {
        for service in KINDS {
            let path = format!("/{}/{}", client.name(), service.name());
            for (speaker, kind) in [(OLD, client), (NEW, service)] {
                for (count, size) in [(0, 4), (1, 4), (8, 4), (11, 4)] {
                    let (sizes, all) = lists.walk(speaker, kind, &path, count, size).await;
                    let what = format!("{path} by {kind:?}, {count} in pages of {size}");
                    assert_eq!(all, (0..count as u64).collect::<Vec<_>>(), "{what}");
                    let last = sizes.iter().rposition(|size| *size > 0).unwrap_or(0);
                    assert!(sizes[..last].iter().all(|got| *got == size), "{what}: {sizes:?}");
                    // At most one page has only the information that the list has ended.
                    assert!(sizes.len() <= count.div_ceil(size).max(1) + 1, "{what}: {sizes:?}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_is_good_for_its_client_and_list_alone() {
    let lists = Lists::start(1).await;
    let first = "/cursor/page?count_of=20&first=4";
    let (_, items, body) = lists.page(OLD, first).await;
    assert_eq!(items, [0, 1, 2, 3]);
    let cursor = body["meta"]["next"].as_str().expect("there is more").to_owned();
    let (_, items, _) = lists.page(OLD, &format!("{first}&after={cursor}")).await;
    assert_eq!(items, [4, 5, 6, 7]);
    // The size is sent too.
    let (_, items, _) = lists.page(OLD, &format!("/cursor/page?after={cursor}&count_of=20")).await;
    assert_eq!(items, [4, 5, 6, 7]);
    let asked = lists.upstream.seen().len();
    let mut changed = cursor.clone().into_bytes();
    changed[60] = if changed[60] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).expect("it is ASCII");
    let foreign = [
        (OLD, format!("{first}&after={changed}")),
        (OLD, format!("{first}&after={}", &cursor[..40])),
        (OLD, format!("{first}&after=2")),
        (OLD, format!("{first}&after=")),
        (OLD_BOB, format!("{first}&after={cursor}")),
        (OLD, format!("/cursor/page?count_of=21&first=4&after={cursor}")),
        (OLD, format!("/cursor/offset?count_of=20&first=4&after={cursor}")),
    ];
    for (speaker, target) in foreign {
        let answer = lists.ask(speaker, &target).await;
        let said: Value = serde_json::from_slice(&answer.body).expect("it is JSON");
        assert_eq!(
            (answer.status, &said),
            (
                400,
                &json!({"error": "The cursor is not valid here, or not any more. Start again with the first page."})
            ),
            "{target}"
        );
    }
    for target in [
        format!("{first}&after={cursor}&after={cursor}"),
        "/cursor/page?first=0".to_owned(),
        "/page/cursor?page=0".to_owned(),
        "/page/cursor?page=x".to_owned(),
    ] {
        assert_eq!(lists.ask(OLD, &target).await.status, 400, "{target}");
    }
    assert_eq!(lists.upstream.seen().len(), asked, "the service is not asked");
    // The service's error about its own cursor is passed to the client.
    assert_eq!(lists.ask(OLD, "/cursor/header?count_of=20&after=none").await.status, 422);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_by_number_is_found_by_reading_the_ones_before_it_once() {
    let lists = Lists::start(1).await;
    let calls = |lists: &Lists| lists.upstream.seen().len();
    let (_, items, _) = lists.page(OLD, "/page/cursor?count_of=200&per_page=4&page=5").await;
    assert_eq!((items, calls(&lists)), (vec![16, 17, 18, 19], 5));
    // The position of pages on the way is remembered, and that of the following page.
    for (page, first) in [(6, 20), (7, 24), (3, 8)] {
        let before = calls(&lists);
        let (_, items, _) =
            lists.page(OLD, &format!("/page/cursor?count_of=200&per_page=4&page={page}")).await;
        assert_eq!((items[0], calls(&lists) - before), (first, 1), "page {page}");
    }
    // For this client and this list alone.
    let before = calls(&lists);
    lists.page(OLD_BOB, "/page/cursor?count_of=200&per_page=4&page=2").await;
    assert_eq!(calls(&lists) - before, 2);
    // There is no page after the end.
    let (_, items, _) = lists.page(OLD, "/page/cursor?count_of=9&per_page=4&page=9").await;
    assert!(items.is_empty());
    // As far as the mapping reads, and no further.
    let far = lists.ask(OLD, "/page/cursor?count_of=200&per_page=4&page=40").await;
    assert_eq!(far.status, 400, "{}", far.text());
    assert!(far.text().contains("This page cannot be reached."), "{}", far.text());
    // Offsets count items: one at which no page of the service starts cannot be reached, and is not
    // approximated.
    let between = lists.ask(OLD, "/offset/cursor?count_of=200&limit=4&offset=6").await;
    assert_eq!(between.status, 400, "{}", between.text());
    let between = lists.ask(OLD, "/offset/page?count_of=200&limit=4&offset=6").await;
    assert_eq!(between.status, 400, "{}", between.text());
    let (_, items, _) = lists.page(OLD, "/page/offset?count_of=200&per_page=4&page=2").await;
    assert_eq!(items, [4, 5, 6, 7]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_never_shorter_than_asked_for_without_the_client_being_told() {
    let lists = Lists::start(1).await;
    // The service's pages have fifty items at most. A client that learns of the next page accepts fewer.
    let (_, items, body) = lists.page(OLD, "/cursor/offset?count_of=200&first=80").await;
    assert_eq!((items.len(), body["meta"]["next"].is_string()), (50, true));
    // A client that does not would take them for the last ones.
    let answer = lists.ask(OLD, "/page/offset?count_of=200&per_page=80").await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    // Without a requested number, the client's default applies.
    let (_, items, _) = lists.page(OLD, "/page/offset?count_of=200").await;
    assert_eq!(items.len(), 5);
}

/// Returns the sentence of the report about clients of one kind in front of a service of another.
/// Only the service that counts items has a maximum: 50.
fn sentence(client: Kind, service: Kind) -> String {
    let counts = |kind| matches!(kind, Page | More | Offset);
    let word = |kind| match kind {
        Page | More => "page number",
        Offset => "offset",
        Cursor | Header | Link | Url => "cursor",
    };
    let is_told = !matches!(client, Page | Offset);
    let clauses = [
        (!counts(client) && counts(service), "the cursor that clients get seals where they are"),
        (
            counts(client) && !counts(service),
            "a page is found by reading the ones before it that nobody remembers",
        ),
        (counts(client) && !counts(service), "a page that needs more than 20 calls is refused"),
        (
            client == Offset && service != Offset,
            "an offset at which no page of the service begins is refused",
        ),
        (service == Offset && client != Offset && is_told, "a page has at most 50 items"),
        (service == Offset && client != Offset && !is_told, "more than 50 items at once are refused"),
    ];
    let clauses = clauses.into_iter().filter(|(holds, _)| *holds).map(|(_, clause)| format!("; {clause}"));
    format!("pages by {}, read by {}{}", word(client), word(service), clauses.collect::<String>())
}

#[test]
fn the_report_describes_the_pages_of_each_kind_before_each() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
    let output = command.arg("report").arg(write_pack(folder.path())).args(["--format", "json"]).output();
    let report: Value = serde_json::from_slice(&output.expect("it runs").stdout).expect("a report");
    let mut seen = 0;
    for (side, is_reversed) in [(0, false), (1, true)] {
        for one in report["sides"][side]["operations"].as_array().expect("a list") {
            let names: Vec<&str> = one["operation"]
                .as_str()
                .unwrap_or_default()
                .trim_start_matches("GET /")
                .split('/')
                .collect();
            let [v1, v2] =
                [0, 1].map(|at| KINDS.into_iter().find(|kind| kind.name() == names[at]).expect("a kind"));
            let (client, service) = if is_reversed { (v2, v1) } else { (v1, v2) };
            assert_eq!(one["paging"], sentence(client, service), "{client:?} before {service:?}");
            seen += 1;
        }
    }
    assert_eq!(seen, 2 * KINDS.len() * KINDS.len());
}
