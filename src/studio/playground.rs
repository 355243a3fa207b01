//! What a request would become: the route that an operation takes, with the line of the mapping behind each field.

use super::Visit;
use super::layout::{Page, Tab};
use crate::admin::Answer;
use maud::html;
use switchback_plan::explain;

pub(super) async fn look(visit: &Visit<'_>, rest: &[&str]) -> Answer {
    if !rest.is_empty() {
        return visit.not_found();
    }
    let program = visit.parts.program.load_full();
    let pack = program.pack();
    let asked = visit.query.get("operation");
    let routes = pack.directions.iter().flat_map(|direction| {
        let side = &pack.sides[direction.serves].name;
        direction
            .routes
            .iter()
            .map(move |route| (format!("{side} {}", route.operation.key), direction.serves, route))
    });
    let routes: Vec<_> = routes.collect();
    let found = routes.iter().find(|(name, ..)| name == asked);
    let body = html! {
        div.page-head { h1 { "Playground" } p.lead { "What becomes of a request, and which line of the mapping says so." } }
        form.filter method="get" action="/playground" {
            label.grow { "Operation"
                select name="operation" {
                    @for (name, ..) in &routes { option value=(name) selected[name == asked] { (name) } }
                }
            }
            button type="submit" { "Explain" }
        }
        @if let Some((_, serves, route)) = found {
            section.panel { pre tabindex="0" aria-label="The route" { (explain(pack, *serves, route)) } }
        }
    };
    visit.page(Page::still(Tab::Playground, "Playground", body))
}
