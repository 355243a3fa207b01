//! Path templates, and operations as they are written: `GET /things/{id}`.

use http::Method;
use std::fmt;

/// A path with variables, each of them one whole segment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathTemplate {
    segments: Vec<Segment>,
}

/// What stands between two slashes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// Fixed text.
    Literal(String),
    /// `{name}`.
    Variable(String),
}

/// What is wrong with a path template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// Not rooted.
    #[error("a path starts with `/`")]
    Relative,
    /// Nothing between two slashes, or a slash at the end.
    #[error("a path has no empty segments")]
    EmptySegment,
    /// `.` or `..`, which clients and servers resolve.
    #[error("a path has no `.` and `..` segments")]
    Dots,
    /// Braces that are not one variable.
    #[error("`{0}` is neither a literal segment nor one `{{variable}}`")]
    Segment(String),
    /// A character that ends a path or cannot be in one.
    #[error("`{0}` cannot stand in a path")]
    Character(char),
    /// One name for two variables.
    #[error("the variable `{0}` is there twice")]
    Repeated(String),
}

impl PathTemplate {
    /// Reads `/things/{id}/parts`; `/` alone has no segments.
    pub fn parse(text: &str) -> Result<PathTemplate, PathFault> {
        let rest = text.strip_prefix('/').ok_or(PathFault::Relative)?;
        let mut template = PathTemplate { segments: Vec::new() };
        if rest.is_empty() {
            return Ok(template);
        }
        for part in rest.split('/') {
            let segment = Segment::parse(part)?;
            if let Segment::Variable(name) = &segment
                && template.variables().any(|other| other == name)
            {
                return Err(PathFault::Repeated(name.clone()));
            }
            template.segments.push(segment);
        }
        Ok(template)
    }

    /// Its segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Names of its variables, from left to right.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Variable(name) => Some(name.as_str()),
            Segment::Literal(_) => None,
        })
    }

    /// The path without names of variables: `/things/{}/parts`. Two paths of one shape match the same
    /// requests.
    pub fn shape(&self) -> String {
        self.written(|_| "")
    }

    fn written<'a>(&'a self, name: impl Fn(&'a str) -> &'a str) -> String {
        if self.segments.is_empty() {
            return "/".to_owned();
        }
        self.segments.iter().fold(String::new(), |path, segment| match segment {
            Segment::Literal(text) => path + "/" + text,
            Segment::Variable(variable) => path + "/{" + name(variable) + "}",
        })
    }
}

impl Segment {
    fn parse(text: &str) -> Result<Segment, PathFault> {
        if let Some(name) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
            return match !name.is_empty() && name.chars().all(is_name) {
                true => Ok(Segment::Variable(name.to_owned())),
                false => Err(PathFault::Segment(text.to_owned())),
            };
        }
        match text {
            "" => Err(PathFault::EmptySegment),
            "." | ".." => Err(PathFault::Dots),
            _ if text.contains(['{', '}']) => Err(PathFault::Segment(text.to_owned())),
            _ => match text.chars().find(|c| !is_path_char(*c)) {
                Some(c) => Err(PathFault::Character(c)),
                None => Ok(Segment::Literal(text.to_owned())),
            },
        }
    }
}

/// `pchar` of RFC 3986 section 3.3, without `%`: templates are written decoded.
fn is_path_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@".contains(c)
}

impl fmt::Display for PathTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(|name| name))
    }
}

/// Method and path of an operation, written `GET /things/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OpKey {
    /// The method.
    pub method: Method,
    /// The path.
    pub path: PathTemplate,
}

/// Why a text is not an operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpKeyFault {
    /// Not two words.
    #[error("an operation is written as a method and a path, such as `GET /things/{{id}}`")]
    Form,
    /// Not a method that operations have.
    #[error("`{0}` is not a method: GET, PUT, POST, DELETE, OPTIONS, HEAD or PATCH")]
    Method(String),
    /// Not a path template.
    #[error(transparent)]
    Path(#[from] PathFault),
}

impl OpKey {
    /// Methods that operations have, by their key in a contract.
    pub(super) const METHODS: [(&'static str, Method); 7] = [
        ("get", Method::GET),
        ("put", Method::PUT),
        ("post", Method::POST),
        ("delete", Method::DELETE),
        ("options", Method::OPTIONS),
        ("head", Method::HEAD),
        ("patch", Method::PATCH),
    ];

    /// Reads the written form.
    pub fn parse(text: &str) -> Result<OpKey, OpKeyFault> {
        let (method, path) = text.split_once(' ').ok_or(OpKeyFault::Form)?;
        let method = Self::METHODS
            .iter()
            .find(|(_, known)| known.as_str() == method)
            .map(|(_, known)| known.clone())
            .ok_or_else(|| OpKeyFault::Method(method.to_owned()))?;
        Ok(OpKey { method, path: PathTemplate::parse(path)? })
    }
}

impl fmt::Display for OpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_as_they_are_written() {
        for text in ["GET /", "PUT /things/{id}", "DELETE /a/{b}/c-d/{e}"] {
            assert_eq!(OpKey::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(OpKey::parse("PUT /things/{id}/x").unwrap().path.shape(), "/things/{}/x");
    }

    #[test]
    fn what_is_no_operation_says_why() {
        let fault = |text: &str| OpKey::parse(text).unwrap_err().to_string();
        assert_eq!(fault("/a"), "an operation is written as a method and a path, such as `GET /things/{id}`");
        assert!(fault("get /a").starts_with("`get` is not a method"));
        assert_eq!(fault("GET a"), "a path starts with `/`");
        assert_eq!(fault("GET /a/"), "a path has no empty segments");
        assert_eq!(fault("GET /a/../b"), "a path has no `.` and `..` segments");
        assert_eq!(fault("GET /a/x{id}"), "`x{id}` is neither a literal segment nor one `{variable}`");
        assert_eq!(fault("GET /a/{}"), "`{}` is neither a literal segment nor one `{variable}`");
        assert_eq!(fault("GET /a?b"), "`?` cannot stand in a path");
        assert_eq!(fault("GET /{a}/{a}"), "the variable `a` is there twice");
    }
}
