//! Maps recorded URLs to a side and the target of an operation.

use http::Uri;
use switchback_engine::har::Exchange;
use switchback_plan::{Pack, SideId};

/// The URL prefixes at which clients spoke each side when an archive was recorded.
#[derive(Clone, Debug)]
pub struct Fronts {
    /// The names of the sides, which are by convention path segments of their URLs.
    names: [String; 2],
    stated: Vec<Stated>,
}

/// A URL prefix that the user has assigned to a side.
#[derive(Clone, Debug)]
struct Stated {
    /// An absolute URL or a path, without a trailing `/`.
    prefix: String,
    serves: SideId,
}

/// Why a text does not assign a prefix to a side.
#[derive(Debug, thiserror::Error)]
pub enum FrontError {
    #[error("`{text}` is not PREFIX=SIDE; the side is {sides}")]
    Form { text: String, sides: String },
    #[error("there is no side `{side}`; the pack has {sides}")]
    Side { side: String, sides: String },
    #[error("the prefix `{0}` is neither a path nor an address with its scheme")]
    Prefix(String),
}

impl Fronts {
    /// Uses the convention: the side's name is a path segment, followed by the operation's path.
    pub fn from_pack(pack: &Pack) -> Fronts {
        Fronts::new(pack.sides.each_ref().map(|side| side.name.clone()))
    }

    /// Uses the convention for sides with these names.
    pub fn new(names: [String; 2]) -> Fronts {
        Fronts { names, stated: Vec::new() }
    }

    /// Adds `PREFIX=SIDE`, such as `https://old.example/api=v1` or `/api=v1`. Once a prefix is
    /// added, the convention no longer applies.
    pub fn add(&mut self, text: &str) -> Result<(), FrontError> {
        let sides = || self.names.join(" or ");
        let Some((prefix, side)) = text.rsplit_once('=') else {
            return Err(FrontError::Form { text: text.to_owned(), sides: sides() });
        };
        let Some(serves) = self.names.iter().position(|name| name == side) else {
            return Err(FrontError::Side { side: side.to_owned(), sides: sides() });
        };
        let prefix = prefix.trim_end_matches('/');
        if !(prefix.is_empty() || prefix.starts_with('/') || prefix.contains("://")) {
            return Err(FrontError::Prefix(prefix.to_owned()));
        }
        self.stated.push(Stated { prefix: prefix.to_owned(), serves: SideId(serves as u8) });
        // The longest matching prefix wins.
        self.stated.sort_by_key(|stated| std::cmp::Reverse(stated.prefix.len()));
        Ok(())
    }

    /// Returns the side that an exchange's client spoke, and the operation's path and query.
    /// `None`: the exchange is no call of the API.
    pub(crate) fn find(&self, exchange: &Exchange) -> Option<(SideId, String)> {
        // Archives of the gateway contain side and target. Prefixes are for archives of other tools.
        if let Some(known) = &exchange.gateway {
            let serves = self.names.iter().position(|name| *name == known.side)?;
            return Some((SideId(serves as u8), known.target.clone()));
        }
        let url = exchange.request.url.as_str();
        let uri: Uri = url.parse().ok()?;
        let target = uri.path_and_query()?.as_str();
        if self.stated.is_empty() {
            return self.by_name(uri.path(), uri.query());
        }
        self.stated.iter().find_map(|stated| {
            let rest = match stated.prefix.contains("://") {
                true => url.strip_prefix(&stated.prefix)?,
                false => target.strip_prefix(&stated.prefix)?,
            };
            // `/api` is no prefix of `/apia`.
            rest.starts_with('/').then(|| (stated.serves, rest.to_owned()))
        })
    }

    fn by_name(&self, path: &str, query: Option<&str>) -> Option<(SideId, String)> {
        let mut at = 0;
        for segment in path.split('/') {
            at += segment.len();
            if let Some(serves) = self.names.iter().position(|name| name == segment)
                && at < path.len()
            {
                let query = query.map_or_else(String::new, |query| format!("?{query}"));
                return Some((SideId(serves as u8), format!("{}{query}", &path[at..])));
            }
            at += 1;
        }
        None
    }
}
