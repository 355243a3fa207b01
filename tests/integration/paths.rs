//! Partly variable path segments, and trailing slashes, through the real binary: routing of
//! requests, and paths of calls. The pack is `tests/integration/paths`.

use crate::spellings::Shop;
use crate::support::raw::{Act, Upstream};
use std::path::Path;
use switchback_compiler::mapping::load::PackSource;

async fn paths() -> Shop {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/paths");
    let pack = PackSource::from_dir(&folder).expect("the pack lies beside the tests");
    let service = Upstream::answering(|_, seen| {
        let order = if seen.line().contains(" /o") && !seen.line().contains(" /orders")
            || seen.line().contains(" /spans")
        {
            r#"{"id":"7","amount":3}"#
        } else {
            r#"{"id":"7","total":3}"#
        };
        let is_list = ["GET /o HTTP/1.1", "GET /orders/ HTTP/1.1"].contains(&seen.line());
        Act::json(200, &if is_list { format!("[{order}]") } else { order.to_owned() })
    });
    Shop::start(&pack, service.await).await
}

#[tokio::test]
async fn paths_that_are_variable_in_part_are_found_and_made_on_either_side() {
    let shop = paths().await;
    let (old, new) = (r#"{"id":"7","total":3}"#, r#"{"id":"7","amount":3}"#);
    let (olds, news) = (format!("[{old}]"), format!("[{new}]"));
    let ways = [
        ("GET /old/orders/", "GET /o", &*olds),
        ("GET /old/orders/7.json", "GET /o/7", old),
        // The last `.json` ends the variable, not the first.
        ("GET /old/orders/a.json.json", "GET /o/a.json", old),
        ("GET /old/orders/a%3Ab%25.json", "GET /o/a%3Ab%25", old),
        ("POST /old/orders/a.b:cancel", "POST /o/a.b/cancel", old),
        ("GET /old/orders/1...9", "GET /spans/1-9.txt", old),
        ("GET /new/o", "GET /orders/", &*news),
        ("GET /new/o/7", "GET /orders/7.json", new),
        ("POST /new/o/7/cancel", "POST /orders/7:cancel", new),
        ("GET /new/spans/1-9.txt", "GET /orders/1...9", new),
    ];
    for (asked, made, answered) in ways {
        let answer = shop.ask(asked, "", "").await;
        assert_eq!((answer.status, answer.text().as_str()), (200, answered), "{asked}");
        let seen = shop.service.seen();
        assert_eq!(seen.last().expect("it was asked").line(), format!("{made} HTTP/1.1"), "{asked}");
    }
}

#[tokio::test]
async fn what_only_resembles_such_a_path_is_not_found() {
    let shop = paths().await;
    for asked in [
        "GET /old/orders",
        "GET /old/orders/.json",
        "GET /old/orders/7",
        "GET /old/orders/7.json/",
        "GET /old/orders/7.JSON",
        "GET /old/orders/1...",
        "GET /new/spans/19.txt",
        "GET /new/spans/1-9",
    ] {
        assert_eq!(shop.ask(asked, "", "").await.status, 404, "{asked}");
    }
    assert_eq!(shop.ask("GET /new/o/", "", "").await.status, 400, "an id is never empty");
    assert_eq!(shop.ask("GET /old/orders/7:cancel", "", "").await.status, 405);
    assert_eq!(shop.service.seen().len(), 0, "nothing of it reached the service");
}

/// An escaped slash is part of the value if the route permits it, and is escaped again in the call.
#[tokio::test]
async fn an_escaped_slash_passes_where_the_route_allows_it() {
    let shop = paths().await;
    for (asked, made) in [
        ("POST /old/orders/a%2Fb:cancel", "POST /o/a%2Fb/cancel"),
        ("POST /new/o/a%2fb%2Fc/cancel", "POST /orders/a%2Fb%2Fc:cancel"),
    ] {
        assert_eq!(shop.ask(asked, "", "").await.status, 200, "{asked}");
        let seen = shop.service.seen();
        assert_eq!(seen.last().expect("it was asked").line(), format!("{made} HTTP/1.1"), "{asked}");
    }
    let calls = shop.service.seen().len();
    for asked in [
        "GET /new/o/a%2Fb",
        "GET /old/orders/a%2Fb.json",
        "POST /new/o/a%2F..%2Fb/cancel",
        "POST /new/o/%2Fa/cancel",
        "POST /new/o/a%5Cb/cancel",
    ] {
        assert_eq!(shop.ask(asked, "", "").await.status, 400, "{asked}");
    }
    assert_eq!(shop.service.seen().len(), calls, "nothing of it reached the service");
}
