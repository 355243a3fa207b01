//! Lists of pairs on the old side, objects on the new one: the manual's receipts, through the real
//! binary.

use crate::spellings::{OLD_KEY, Shop};
use crate::support::packs;
use crate::support::raw::{Act, Upstream};

#[tokio::test]
async fn a_list_of_pairs_is_an_object_on_the_other_side() {
    let old = |extras: &str| {
        let rest = r#""number":"no. 7","price":1,"paid":"Sat, 09 Mar 2024 12:00:00 GMT","customer":"Ada","kind":"cash","due":[],"labels":{}"#;
        Act::json(200, &format!(r#"{{{rest},"extras":{extras}}}"#))
    };
    let new = r##"{"number":"#7","cents":5,"paidAt":"2024-03-09T12:00:00Z","names":["Ada"],"kind":"CASH","due":[],"labels":{},"extras":{"a\"b":"1","tax":"3"}}"##;
    let replies = vec![
        Act::json(200, new),
        old(r#"[{"value":"3","name":"tax"},{"name":"tip","value":"1"}]"#),
        old("[]"),
        // An object has one value for a key.
        old(r#"[{"name":"tip","value":"1"},{"name":"tip","value":"2"}]"#),
        old(r#"[{"name":"tip"}]"#),
    ];
    let shop = Shop::start(&packs::manual(), Upstream::start(replies).await).await;
    let token = format!("x-api-token: Bearer {OLD_KEY}\r\n");
    let answer = shop.ask("GET /old/notes/7/receipt", &token, "").await;
    let entries = r#""extras":[{"name":"a\"b","value":"1"},{"name":"tax","value":"3"}]"#;
    assert!(answer.status == 200 && answer.text().contains(entries), "{}", answer.text());
    for extras in [r#""extras":{"tax":"3","tip":"1"}"#, r#""extras":{}"#] {
        let answer = shop.ask("GET /new/notes/7/receipt", "", "").await;
        assert!(answer.status == 200 && answer.text().contains(extras), "{}", answer.text());
    }
    for _ in ["the same key twice", "no value"] {
        assert_eq!(shop.ask("GET /new/notes/7/receipt", "", "").await.status, 502);
    }
}
