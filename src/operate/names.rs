//! Names that operators type: operations with their side, and clients. An unknown name is answered
//! with the nearest known one.

use super::refusal::{Refusal, RefusalKind};
use http::Method;
use switchback_compiler::diagnostic::did_you_mean;
use switchback_gateway::retire::RetireError;
use switchback_gateway::store::{Store, StoreError};
use switchback_gateway::token::{ConnectError, RegistryError};

/// Splits an operation such as `v2 GET /things` into its side and its name. Without a side, as in
/// `GET /things`, the side is `given`.
pub(crate) fn operation_name<'t>(given: Option<&'t str>, text: &'t str) -> (Option<&'t str>, &'t str) {
    let text = text.trim();
    let Some((first, rest)) = text.split_once(' ') else { return (given, text) };
    // A name starts with a method, and no side is called like one.
    let is_name = |text: &str| text.split_once(' ').is_some_and(|(method, _)| is_method(method));
    match is_name(rest.trim_start()) && !is_method(first) && given.is_none_or(|given| given == first) {
        true => (Some(first), rest.trim_start()),
        false => (given, text),
    }
}

fn is_method(word: &str) -> bool {
    word.parse::<Method>().is_ok() && word.chars().all(|c| c.is_ascii_uppercase())
}

/// Splits the operations of a change that has one side. Names with another side remain as they are,
/// so that the change is refused.
pub(crate) fn operation_names(given: Option<String>, texts: &[String]) -> (Option<String>, Vec<String>) {
    let mut side = given;
    let mut names = Vec::new();
    for text in texts {
        let (of, name) = operation_name(side.as_deref(), text);
        let (of, name) = (of.map(str::to_owned), name.to_owned());
        side = of;
        names.push(name);
    }
    (side, names)
}

/// Adds the nearest known name to a refusal for an unknown client.
pub(crate) async fn suggest_client(refusal: Refusal, store: &Store) -> Refusal {
    let error = match &refusal {
        Refusal::Store(error)
        | Refusal::Registry(RegistryError::Store(error))
        | Refusal::Retire(RetireError::Store(error))
        | Refusal::Connect(ConnectError::Registry(RegistryError::Store(error))) => error,
        _ => return refusal,
    };
    let StoreError::NoSuchClient(name) = error else { return refusal };
    // Without the names, the refusal remains as it is.
    let Ok(known) = store.clients_since(0).await else { return refusal };
    match did_you_mean(name, known.iter().map(|client| client.name.as_str())) {
        Some(suggestion) => Refusal::Request(RefusalKind::NotFound, format!("{error}; {suggestion}")),
        None => refusal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_may_be_written_with_its_side() {
        for (given, text, expected) in [
            (None, "GET /things", (None, "GET /things")),
            (None, " v2 GET /things ", (Some("v2"), "GET /things")),
            (Some("v2"), "GET /things", (Some("v2"), "GET /things")),
            (Some("v2"), "v2 GET /things", (Some("v2"), "GET /things")),
            (Some("v3"), "v2 GET /things", (Some("v3"), "v2 GET /things")),
            (None, "POST GET /things", (None, "POST GET /things")),
            (None, "things", (None, "things")),
            (None, "event thing.made", (None, "event thing.made")),
        ] {
            assert_eq!(operation_name(given, text), expected, "{given:?} {text}");
        }
        let texts = ["v2 GET /a", "GET /b"].map(str::to_owned);
        let names = ["GET /a", "GET /b"].map(str::to_owned).to_vec();
        assert_eq!(operation_names(None, &texts), (Some("v2".to_owned()), names));
    }
}
