//! Queries and bodies in other spellings than one value and JSON, through the real binary: the manual's shop, served before
//! services that remember what they were sent.

use crate::support::packs;
use crate::support::program::Program;
use crate::support::raw::{Act, Answer, Upstream, exchange};
use crate::support::serving;
use std::net::SocketAddr;
use switchback_compiler::mapping::load::PackSource;
use switchback_gateway::store::seal::SealingKey;
use tempfile::TempDir;

const OLD_KEY: &str = "key-of-an-old-client";
const NEW_TOKEN: &str = "token-of-a-new-client";

/// A gateway with a front for each side of a pack, before one service that plays both.
pub struct Shop {
    gateway: SocketAddr,
    pub service: Upstream,
    _program: Program,
    _folder: TempDir,
}

impl Shop {
    pub async fn start(pack: &PackSource, service: Upstream) -> Shop {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, bytes) in pack.files() {
            let file = folder.path().join("pack").join(name);
            std::fs::create_dir_all(file.parent().expect("it has a folder")).expect("a folder");
            std::fs::write(file, bytes).expect("the file is written");
        }
        let file = folder.path().join("switchback.yaml");
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{0}/store.db\nkey: ${{TEST_KEY}}\n\
             mapping: {0}/pack\nfronts: {{ /old: {{ speaks: v1, unknown: refuse }}, /new: {{ speaks: v2, unknown: refuse }} }}\n\
             upstreams: {{ v1: {{ url: 'http://{1}' }}, v2: {{ url: 'http://{1}' }} }}\n\
             clients: [{{ name: ci, v1_token: {OLD_KEY}, v2_token: {NEW_TOKEN}, credentials: {{ v1: at-v1, v2: at-v2 }} }}]\n",
            folder.path().display(),
            service.address
        );
        std::fs::write(&file, text).expect("the file is written");
        let starting = tokio::task::spawn_blocking(move || {
            let key = SealingKey::generate();
            let file = file.to_str().expect("temporary folders have plain names");
            let program = Program::start(&["serve", "--config", file], &[("TEST_KEY", key.expose())]);
            let address = serving::address(&program);
            (program, address)
        });
        let (program, gateway) = starting.await.expect("it serves");
        Shop { gateway, service, _program: program, _folder: folder }
    }

    /// `line` is method and path; the credential is that of its front.
    pub async fn ask(&self, line: &str, fields: &str, body: &str) -> Answer {
        let credential = match line.contains(" /old") {
            true => format!("x-api-key: {OLD_KEY}"),
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
    // Served before, these took the first value, or went out as they came.
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
