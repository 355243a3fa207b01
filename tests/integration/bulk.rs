//! A write for each element of a list, and conditions that are put together, through the real
//! binary. The pack is `tests/integration/bulk`.

use crate::spellings::Shop;
use crate::support::raw::{Act, Upstream};
use std::path::Path;
use std::sync::Mutex;
use switchback_compiler::mapping::load::PackSource;

const JSON: &str = "content-type: application/json\r\n";

async fn shop(service: Upstream) -> Shop {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/bulk");
    let pack = PackSource::from_dir(&folder).expect("the pack lies beside the tests");
    Shop::old_only(&pack, ["v1", "v2"], service).await
}

/// Returns the requests since the last call.
fn asked(shop: &Shop, before: &mut usize) -> Vec<String> {
    let seen = shop.service.seen();
    let lines =
        seen[*before..].iter().map(|one| one.line().trim_end_matches(" HTTP/1.1").to_owned()).collect();
    *before = seen.len();
    lines
}

#[tokio::test]
async fn each_element_is_written_once_and_a_client_that_comes_back_goes_on_where_it_stopped() {
    // The third is busy the first time.
    let busy = Mutex::new(true);
    let service = Upstream::answering(move |_, seen| match seen.line() {
        "PUT /orders/8/state HTTP/1.1" => Act::json(404, r#"{"error":"No such order."}"#),
        "PUT /orders/9/state HTTP/1.1" if std::mem::take(&mut *busy.lock().expect("nobody panics")) => {
            Act::json(503, r#"{"error":"Busy."}"#)
        }
        _ => Act::json(200, ""),
    });
    let (shop, mut before) = (shop(service.await).await, 0);
    let body = r#"{"ids":[7,8,9,10],"note":"sold out"}"#;
    let answer = shop.ask("POST /old/orders/cancel", JSON, body).await;
    assert_eq!((answer.status, answer.text().as_str()), (503, r#"{"error":"Busy."}"#));
    let made =
        |ids: &[u32]| -> Vec<String> { ids.iter().map(|id| format!("PUT /orders/{id}/state")).collect() };
    assert_eq!(asked(&shop, &mut before), made(&[7, 8, 9]), "nothing after the one that failed");

    let answer = shop.ask("POST /old/orders/cancel", JSON, body).await;
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (
            200,
            r#"{"results":[{"id":7,"status":200},{"id":8,"status":404},{"id":9,"status":200},{"id":10,"status":200}]}"#
        )
    );
    assert_eq!(asked(&shop, &mut before), made(&[8, 9, 10]), "the first is done and is not done again");

    let answer =
        shop.ask("POST /old/orders/cancel", JSON, r#"{"ids":[1,2,3,4,5,6],"note":"sold out"}"#).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(asked(&shop, &mut before), made(&[]), "what goes beyond the bound is begun with none");
}

#[tokio::test]
async fn conditions_that_are_put_together_hold_as_they_read() {
    let service = Upstream::answering(|_, _| Act::json(200, ""));
    let (shop, mut before) = (shop(service.await).await, 0);
    for (more, holds) in [
        (r#""mode":"haste""#, true),
        (r#""mode":"haste","note":"sold out""#, false),
        (r#""mode":"calm","note":"sold out""#, true),
        (r#""mode":"calm""#, false),
        (r#""note":"sold out""#, true),
        (r#""note":"cancel""#, false),
        (r#""note":"""#, false),
        (r#""x":1"#, false),
    ] {
        let answer = shop.ask("POST /old/orders/cancel", JSON, &format!(r#"{{"ids":[7],{more}}}"#)).await;
        let (status, calls) = if holds { (200, 1) } else { (400, 0) };
        assert_eq!(
            (answer.status, asked(&shop, &mut before).len()),
            (status, calls),
            "{more}: {}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn writes_beyond_a_bound_are_refused_before_the_first() {
    let service = Upstream::answering(|_, _| Act::json(200, "")).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/tickets");
    let pack = PackSource::from_dir(&folder).expect("the pack lies beside the sources");
    let (shop, mut before) = (Shop::old_only(&pack, ["v1", "v2"], service).await, 0);
    let ids = |count: u32| (1..=count).map(|id| id.to_string()).collect::<Vec<_>>().join(",");
    for (count, status, calls) in [(25, 501, 0), (21, 501, 0), (20, 200, 20)] {
        let body = format!(r#"{{"ids":[{}]}}"#, ids(count));
        let answer = shop.ask("POST /old/tickets/close", JSON, &body).await;
        assert_eq!(
            (answer.status, asked(&shop, &mut before).len()),
            (status, calls),
            "{count}: {}",
            answer.text()
        );
        if status == 501 {
            assert_eq!(answer.text(), r#"{"error":"At most 20 tickets can be closed at once."}"#);
        }
    }
}
