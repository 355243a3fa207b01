//! Lists with an element outside the domain of the mapping: `else:` next to a shape, from the
//! report to the wire. The pack is the manual's reminders.

use super::manual;
use crate::spellings::Shop;
use crate::support::packs;
use crate::support::raw::{Act, Upstream};
use switchback_plan::{Class, Pack, ResponseBody, Route, RouteKind, SideId, explain};

const NEW: SideId = SideId::NEW;

#[tokio::test]
async fn one_bad_element_does_not_cut_a_list() {
    let list =
        r#"[{"day":"09/03/2024","by":"mail"},{"day":"soon","by":"mail"},{"by":"post","day":"10/03/2024"}]"#;
    let service =
        Upstream::start(vec![Act::json(200, list), Act::json(200, r#"[{"day":7,"by":"mail"}]"#)]).await;
    let shop = Shop::start(&packs::manual(), service).await;
    let answer = shop.ask("GET /new/notes/7/reminders", "", "").await;
    let left = r#"[{"due":"2024-03-09","channel":"mail"},{"channel":"post","due":"2024-03-10"}]"#;
    assert_eq!((answer.status, answer.text().as_str()), (200, left));
    let answer = shop.ask("GET /new/notes/7/reminders", "", "").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "[]"));
}

/// The route of the reminders that serves a side.
fn reminders(pack: &Pack, serves: SideId) -> &Route {
    let routes = &pack.directions[usize::from(serves.0)].routes;
    routes.iter().find(|route| &*route.operation.key == "GET /notes/{id}/reminders").expect("it is one")
}

#[test]
fn what_may_be_left_out_is_said_where_it_may_be_and_nowhere_else() {
    let pack = manual::compiled(&manual::files()).pack.expect("the manual compiles");
    let class = |route: &Route| {
        let RouteKind::Pair(pair) = &route.kind else { panic!("it is a pair") };
        let bodies = pair.responses.iter().filter_map(|line| match &line.body {
            ResponseBody::Plan(plan) => Some(plan.class),
            _ => None,
        });
        bodies.max().expect("it has a body")
    };
    let of_elements = |route: &Route| {
        route.losses.iter().any(|loss| loss.partly && loss.place.ends_with("$[*]") && loss.side == "v1")
    };
    let said = "a value of $[*] that this does not take is left out";
    let (there, back) = (reminders(&pack, NEW), reminders(&pack, SideId::OLD));
    assert!(of_elements(there), "{:?}", there.losses);
    assert_eq!(class(there), Class::Element);
    assert!(explain(&pack, NEW, there).contains(said));
    // A date has one form that v1 writes.
    assert!(!of_elements(back), "{:?}", back.losses);
    assert_eq!(class(back), Class::Tokens);
    assert!(!explain(&pack, SideId::OLD, back).contains(said));
}
