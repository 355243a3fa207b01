//! Queries and bodies in other notations than single values and JSON, through the real binary: the
//! manual's shop, in front of services that record their requests.

use crate::support::packs;
use crate::support::program::Program;
use crate::support::raw::{Act, Answer, Upstream, answer, exchange};
use crate::support::serving;
use std::net::SocketAddr;
use switchback_compiler::mapping::load::PackSource;
use switchback_gateway::store::seal::SealingKey;
use tempfile::TempDir;

pub const OLD_KEY: &str = "key-of-an-old-client";
const NEW_TOKEN: &str = "token-of-a-new-client";

/// A gateway with a front for each side of a pack, before one service that plays both.
pub struct Shop {
    pub gateway: SocketAddr,
    pub service: Upstream,
    pub program: Program,
    _folder: TempDir,
}

impl Shop {
    pub async fn start(pack: &PackSource, service: Upstream) -> Shop {
        let fronts = "/old: { speaks: v1, unknown: refuse }, /new: { speaks: v2, unknown: refuse }";
        Shop::serving(pack, ["v1", "v2"], fronts, service).await
    }

    /// A gateway with clients of the old side only.
    pub async fn old_only(pack: &PackSource, sides: [&str; 2], service: Upstream) -> Shop {
        let fronts = format!("/old: {{ speaks: {}, unknown: refuse }}", sides[0]);
        Shop::serving(pack, sides, &fronts, service).await
    }

    /// The same with further lines of configuration.
    pub async fn with(pack: &PackSource, more: &str, service: Upstream) -> Shop {
        let fronts = "/old: { speaks: v1, unknown: refuse }, /new: { speaks: v2, unknown: refuse }";
        Shop::configured(pack, ["v1", "v2"], fronts, more, service).await
    }

    async fn serving(pack: &PackSource, sides: [&str; 2], fronts: &str, service: Upstream) -> Shop {
        Shop::configured(pack, sides, fronts, "", service).await
    }

    async fn configured(
        pack: &PackSource,
        [old, new]: [&str; 2],
        fronts: &str,
        more: &str,
        service: Upstream,
    ) -> Shop {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, bytes) in pack.files() {
            let file = folder.path().join("pack").join(name);
            std::fs::create_dir_all(file.parent().expect("it has a folder")).expect("a folder");
            std::fs::write(file, bytes).expect("the file is written");
        }
        let file = folder.path().join("switchback.yaml");
        let upstream = format!("{{ url: 'http://{}' }}", service.address);
        // A side that has no front is not shown its own service.
        let (olds, token) = match fronts.contains("/new") {
            true => (format!("{old}: {upstream}, "), format!("{new}_token: {NEW_TOKEN}, ")),
            false => (String::new(), String::new()),
        };
        let own = if olds.is_empty() { String::new() } else { format!("{old}: secret-at-old, ") };
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{0}/store.db\nkey: ${{TEST_KEY}}\n\
             mapping: {0}/pack\nfronts: {{ {fronts} }}\nupstreams: {{ {olds}{new}: {upstream} }}\n\
             clients: [{{ name: ci, {old}_token: {OLD_KEY}, {token}credentials: {{ {own}{new}: secret-at-new }} }}]\n{more}",
            folder.path().display(),
        );
        std::fs::write(&file, text).expect("the file is written");
        let (program, gateway, _) = serving::serve(&file, &SealingKey::generate()).await;
        Shop { gateway, service, program, _folder: folder }
    }

    /// `line` is method and path; the credential is that of its front.
    pub async fn ask(&self, line: &str, fields: &str, body: &str) -> Answer {
        let credential = match line.contains(" /old") {
            // Services differ in the field that they read; a token in the other one is ignored.
            true => format!("x-api-key: {OLD_KEY}\r\nauthorization: Bearer {OLD_KEY}"),
            false => format!("authorization: Bearer {NEW_TOKEN}"),
        };
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nhost: g\r\n{credential}\r\n{fields}content-length: {length}\r\n\r\n{body}"
        );
        exchange(self.gateway, request).await.expect("an answer")
    }
}

#[tokio::test]
async fn lists_go_to_lists_and_what_is_none_is_never_its_first_value() {
    let shop = Shop::start(&packs::shop(), Upstream::start(vec![Act::json(200, "[]")]).await).await;
    let line = "GET /old/orders?status[]=open&status%5B%5D=a%26b&ids=1,2&tags=x,y&filter[city]=Li%20ma";
    let answer = shop.ask(line, "x-trace: AbC\r\n", "").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "[]"));
    let seen = shop.service.seen().remove(0);
    assert_eq!(
        seen.line(),
        "GET /orders?status=open%20a%26b&id=1&id=2&label=x&label=y&where%5Bcity%5D=Li%20ma&total=true&locale=en HTTP/1.1"
    );
    assert_eq!(seen.values("api-version"), ["2024-01-01"]);
    assert_eq!(seen.values("trace-id"), ["abc"]);
    assert_eq!(seen.values("accept"), ["application/vnd.shop+json"]);
    // Earlier versions accepted these: the first value was used, or they were sent unchanged.
    for line in [
        "GET /old/orders?since=09/03/2024&since=10/03/2024",
        "GET /old/orders?ids=1,x",
        "GET /new/orders?total=false",
        "GET /old/orders/search?ids=",
    ] {
        let answer = shop.ask(line, "", "").await;
        let status = if line.ends_with("ids=") { 200 } else { 400 };
        assert_eq!(answer.status, status, "{line}: {}", answer.text());
    }
    assert_eq!(shop.service.seen().len(), 2);
}

const FORM: &str = "content-type: application/x-www-form-urlencoded\r\n";
const JSON: &str = "content-type: application/json\r\n";

#[tokio::test]
async fn forms_become_json_and_json_becomes_forms() {
    let shop = Shop::start(&packs::shop(), Upstream::start(vec![Act::json(200, r#"{"id":7}"#)]).await).await;
    let form = "email=ann%40example.com&age=41&tags=a,b&address%5Bcity%5D=Li+ma&address[lines][]=%C3%A4";
    let answer = shop.ask("POST /old/customers", FORM, form).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"id":7}"#));
    let seen = shop.service.seen().remove(0);
    assert_eq!(seen.line(), "POST /customers?locale=en HTTP/1.1");
    assert_eq!(seen.values("content-type"), ["application/json"]);
    assert_eq!(
        String::from_utf8_lossy(&seen.body),
        r#"{"mail":"ann@example.com","age":41,"labels":["a","b"],"address":{"city":"Li ma","lines":["ä"]}}"#
    );
    let answer =
        shop.ask("POST /new/customers", JSON, r#"{"mail":"a&b","age":null,"labels":["x","z"]}"#).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = shop.service.seen().remove(1);
    assert_eq!(seen.values("content-type"), ["application/x-www-form-urlencoded"]);
    assert_eq!(String::from_utf8_lossy(&seen.body), "email=a%26b&age=&tags=x,z");
}

#[tokio::test]
async fn answers_are_forms_on_either_side() {
    const NAMED: &str = "content-type: application/x-www-form-urlencoded; charset=utf-8\r\n";
    let service = Upstream::answering(|at, seen| match (at, String::from_utf8_lossy(&seen.body).as_ref()) {
        (_, r#"{"user":"a&b"}"#) => Act::json(201, r#"{"id":"x&y","seconds":60,"scopes":["r","w"]}"#),
        (_, "user=ann") => {
            Act::Reply(answer(200, NAMED, "ticket=x%26y&expires=60&rights%5B%5D=r&rights[]=w"))
        }
        (_, "user=unnamed") => Act::Reply(answer(200, "", "expires=60&ticket=7")),
        (_, "user=json") => Act::json(200, r#"{"ticket":"7","expires":60}"#),
        (_, "user=broken") => Act::Reply(answer(200, NAMED, "ticket=%ff&expires=1")),
        (_, "user=cut") => {
            Act::ReplyAndClose(b"HTTP/1.1 200 X\r\ncontent-length: 90\r\n\r\nticket=7".to_vec())
        }
        (_, other) => panic!("{other}"),
    });
    let shop = Shop::start(&packs::shop(), service.await).await;
    let got = shop.ask("POST /old/sessions", FORM, "user=a%26b").await;
    assert_eq!((got.status, got.value("content-type")), (200, "application/x-www-form-urlencoded"));
    assert_eq!(got.text(), "ticket=x%26y&expires=60&rights%5B%5D=r&rights%5B%5D=w");
    let ask = async |user: &str| {
        let got = shop.ask("POST /new/sessions", JSON, &format!(r#"{{"user":"{user}"}}"#)).await;
        (got.status, got.value("content-type").to_owned(), got.text())
    };
    let json = || "application/json".to_owned();
    let made = r#"{"id":"x&y","seconds":60,"scopes":["r","w"]}"#;
    assert_eq!(ask("ann").await, (201, json(), made.to_owned()));
    assert_eq!(ask("unnamed").await, (201, json(), r#"{"seconds":60,"id":"7"}"#.to_owned()));
    for user in ["json", "broken", "cut"] {
        let (status, named, said) = ask(user).await;
        assert_eq!((status, named), (502, json()), "{user}: {said}");
        assert!(said.starts_with(r#"{"error":"#), "{said}");
    }
    let seen = shop.service.seen();
    assert_eq!(seen[0].values("accept"), ["application/json"]);
    assert_eq!(seen[1].values("accept"), ["application/x-www-form-urlencoded"]);
}

#[tokio::test]
async fn a_body_of_another_media_type_is_415_and_nothing_is_called() {
    let shop = Shop::start(&packs::shop(), Upstream::start(vec![Act::json(200, r#"{"id":7}"#)]).await).await;
    for (line, fields, body, status) in [
        ("POST /old/customers", JSON, r#"{"email":"a"}"#, 415),
        ("POST /old/customers", "content-type: multipart/form-data; boundary=x\r\n", "--x--", 415),
        ("POST /old/customers", FORM, "email=a&email=b", 400),
        ("POST /old/customers", FORM, "email=%ff", 400),
        ("POST /new/customers", FORM, "mail=a", 415),
        ("POST /new/customers", "content-type: text/plain\r\n", "mail", 415),
    ] {
        let answer = shop.ask(line, fields, body).await;
        assert_eq!(answer.status, status, "{line} {fields}: {}", answer.text());
        assert!(answer.text().starts_with(r#"{"error":"#), "{}", answer.text());
    }
    assert_eq!(shop.service.seen().len(), 0);
    // Tools send wrong media types, or none.
    for (line, fields, body) in [
        ("POST /old/customers", "", "email=a"),
        ("POST /new/customers", FORM, r#"{"mail":"a"}"#),
        ("POST /new/customers", "", r#"{"mail":"a"}"#),
    ] {
        assert_eq!(shop.ask(line, fields, body).await.status, 200, "{line}");
    }
}

#[tokio::test]
async fn ids_are_joined_with_a_second_list() {
    let users: Vec<String> = (0..100).map(|n| format!(r#"{{"id":"u{n}","name":"N{n}"}}"#)).collect();
    let posts: Vec<String> = (0..100)
        .map(|n| format!(r#"{{"id":{n},"author":"u{}","likers":["u{n}","gone"]}}"#, 99 - n))
        .collect();
    let page = format!(r#"{{"posts":[{}],"users":[{}]}}"#, posts.join(","), users.join(","));
    let shop = Shop::start(&packs::shop(), Upstream::start(vec![Act::json(200, &page)]).await).await;
    let answer = shop.ask("GET /old/posts", "", "").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let wanted: Vec<String> = (0..100)
        .map(|n| format!(r#"{{"id":{n},"author":{{"id":"u{0}","name":"N{0}"}},"likers":["N{n}"]}}"#, 99 - n))
        .collect();
    assert_eq!(answer.text(), format!("[{}]", wanted.join(",")));
}

fn pack(name: &str) -> PackSource {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings").join(name);
    PackSource::from_dir(&folder).expect("the pack lies beside the tests")
}

#[tokio::test]
async fn clients_of_forms_send_mail_by_json() {
    let service = Upstream::answering(|_, seen| match seen.line().split(' ').next() {
        Some("POST") => Act::Reply(crate::support::raw::answer(202, "", "")),
        Some("DELETE") if seen.line().contains("gone") => {
            Act::json(404, r#"{"errors":[{"message":"none"}]}"#)
        }
        Some("DELETE") => Act::Reply(b"HTTP/1.1 204 X\r\n\r\n".to_vec()),
        _ => Act::json(200, r#"[{"created":1316210539,"email":"a@b","reason":"550","status":"5.1.1"}]"#),
    });
    let mail = Shop::old_only(&pack("sendgrid"), ["v2", "v3"], service.await).await;
    let form = "to[]=ann%40example.com&to[]=bob@example.com&from=me@example.com&subject=Tea+time&text=Green.";
    let answer = mail.ask("POST /old/api/mail.send.json", FORM, form).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"message":"success"}"#));
    let answer = mail.ask("GET /old/api/bounces.get.json?limit=1&offset=2", "", "").await;
    assert_eq!(answer.text(), r#"[{"email":"a@b","reason":"550","status":"5.1.1"}]"#);
    assert_eq!(mail.ask("POST /old/api/blocks.delete.json", FORM, "email=a%2Fb@c").await.status, 200);
    assert_eq!(mail.ask("POST /old/api/blocks.delete.json", FORM, "email=gone").await.status, 404);
    assert_eq!(mail.ask("GET /old/api/bounces.get.json?date=1", "", "").await.status, 501);
    assert_eq!(mail.ask("POST /old/api/mail.send.json", FORM, "to=a@b").await.status, 400);
    let seen = mail.service.seen();
    assert_eq!(seen.len(), 4);
    assert_eq!(
        String::from_utf8_lossy(&seen[0].body),
        r#"{"personalizations":[{"to":[{"email":"ann@example.com"},{"email":"bob@example.com"}]}],"from":{"email":"me@example.com"},"subject":"Tea time","content":[{"type":"text/plain","value":"Green."}]}"#
    );
    assert_eq!(seen[0].values("authorization"), ["Bearer secret-at-new"]);
    assert_eq!(seen[1].line(), "GET /v3/suppression/bounces?limit=1&offset=2 HTTP/1.1");
    assert_eq!(seen[2].line(), "DELETE /v3/suppression/blocks/a%2Fb%40c HTTP/1.1");
}

#[tokio::test]
async fn posts_carry_their_authors_and_pages_go_on_by_a_token() {
    let service = Upstream::answering(|_, seen| {
        let user = r#"{"id":"9","name":"Ann","username":"ann","protected":false,"verified":true,"public_metrics":{"followers_count":1,"following_count":2,"listed_count":3,"tweet_count":4}}"#;
        let line = seen.line();
        if line.starts_with("POST ") {
            return Act::json(201, r#"{"data":{"id":"6","text":"a & b"}}"#);
        }
        if line.contains("/followers") {
            let next = if line.contains("pagination_token") { "" } else { r#","next_token":"7140dib""# };
            return Act::json(200, &format!(r#"{{"data":[{user}],"meta":{{"result_count":1{next}}}}}"#));
        }
        let post = r#"{"id":"1050118621198921728","text":"Hi","author_id":"9","public_metrics":{"retweet_count":1,"like_count":2}}"#;
        Act::json(200, &format!(r#"{{"data":[{post}],"includes":{{"users":[{user}]}}}}"#))
    });
    let tweets = Shop::old_only(&pack("tweets"), ["v1", "v2"], service.await).await;
    let json = |answer: Answer| -> serde_json::Value {
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_slice(&answer.body).expect("it is JSON")
    };
    let posts = json(tweets.ask("GET /old/1.1/statuses/lookup.json?id=1,2", "", "").await);
    assert_eq!(posts[0]["id"].to_string(), "1050118621198921728");
    assert_eq!((&posts[0]["user"]["screen_name"], &posts[0]["favorite_count"]), (&"ann".into(), &2.into()));
    let page = json(tweets.ask("GET /old/1.1/followers/list.json?user_id=9&cursor=-1", "", "").await);
    assert_eq!(
        (&page["users"][0]["friends_count"], &page["next_cursor_str"]),
        (&2.into(), &"7140dib".into())
    );
    let page = json(tweets.ask("GET /old/1.1/followers/list.json?user_id=9&cursor=7140dib", "", "").await);
    assert_eq!(page["next_cursor_str"], "0");
    let made = json(tweets.ask("POST /old/1.1/statuses/update.json", FORM, "status=a+%26+b").await);
    assert_eq!((&made["id"], &made["text"]), (&6.into(), &"a & b".into()));
    let seen = tweets.service.seen();
    assert!(seen[0].line().starts_with("GET /2/tweets?ids=1,2&expansions=author_id&"), "{}", seen[0].line());
    assert!(seen[2].line().contains("pagination_token=7140dib"), "{}", seen[2].line());
    assert_eq!(String::from_utf8_lossy(&seen[3].body), r#"{"text":"a & b"}"#);
}
