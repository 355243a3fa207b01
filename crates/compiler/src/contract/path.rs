//! Path templates, and operation keys such as `GET /things/{id}`.

use http::Method;
use std::fmt;

/// A path with variables. Each variable is a segment or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathTemplate {
    segments: Vec<Segment>,
}

/// A segment of a path template.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// Fixed text.
    Literal(String),
    /// `{name}`.
    Variable(String),
    /// `{name}.json`, `{from}...{to}`: alternating texts and variables. Two variables are never
    /// adjacent.
    Mixed(Vec<SegmentPart>),
}

/// A part of a mixed segment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SegmentPart {
    /// Fixed text, not empty.
    Text(String),
    /// `{name}`.
    Variable(String),
}

/// An error in a path template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// The path does not start with a slash.
    #[error("a path starts with `/`")]
    Relative,
    /// Two consecutive slashes.
    #[error("a path has no empty segments")]
    EmptySegment,
    /// `.` or `..`, which clients and servers resolve.
    #[error("a path has no `.` and `..` segments")]
    Dots,
    /// Braces that do not form a variable, or two adjacent variables.
    #[error("`{0}` is not made of text and of `{{variables}}` with text between them")]
    Segment(String),
    /// A character that terminates a path or is not allowed in one.
    #[error("`{0}` cannot stand in a path")]
    Character(char),
    /// Two variables with the same name.
    #[error("the variable `{0}` is there twice")]
    Repeated(String),
}

impl PathTemplate {
    /// Parses a template such as `/things/{id}/parts`. `/` has no segments. A trailing slash is an
    /// empty last segment.
    pub fn parse(text: &str) -> Result<PathTemplate, PathFault> {
        let rest = text.strip_prefix('/').ok_or(PathFault::Relative)?;
        let mut template = PathTemplate { segments: Vec::new() };
        if rest.is_empty() {
            return Ok(template);
        }
        let count = rest.split('/').count();
        for (at, part) in rest.split('/').enumerate() {
            let segment = match part {
                // A trailing slash is an empty last segment.
                "" if at + 1 == count => Segment::Literal(String::new()),
                part => Segment::parse(part)?,
            };
            let again = segment.variables().find(|name| template.variables().any(|other| other == *name));
            let twice =
                || segment.variables().find(|name| segment.variables().filter(|n| n == name).count() > 1);
            // A repeated variable would need equal values at both places, which routers do not check.
            if let Some(name) = again.or_else(twice) {
                return Err(PathFault::Repeated(name.to_owned()));
            }
            template.segments.push(segment);
        }
        Ok(template)
    }

    /// Returns the segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the names of the variables, from left to right.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flat_map(Segment::variables)
    }

    /// Returns whether a request path matches the template.
    pub fn matches(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix('/') else { return false };
        let given: Vec<&str> = if rest.is_empty() { Vec::new() } else { rest.split('/').collect() };
        given.len() == self.segments.len()
            && self.segments.iter().zip(given).all(|(segment, text)| segment.matches(text))
    }

    /// Returns the precedence of the template among those that match a request path, greatest
    /// first.
    pub(crate) fn precedence(&self) -> Vec<usize> {
        self.segments.iter().map(Segment::precedence).collect()
    }

    /// Returns the path without variable names: `/things/{}/parts`. Paths of the same shape match
    /// the same requests.
    pub fn shape(&self) -> String {
        self.render(|_| "")
    }

    fn render<'a>(&'a self, name: impl Fn(&'a str) -> &'a str) -> String {
        if self.segments.is_empty() {
            return "/".to_owned();
        }
        self.segments.iter().fold(String::new(), |path, segment| match segment {
            Segment::Literal(text) => path + "/" + text,
            Segment::Variable(variable) => path + "/{" + name(variable) + "}",
            Segment::Mixed(parts) => parts.iter().fold(path + "/", |path, part| match part {
                SegmentPart::Text(text) => path + text,
                SegmentPart::Variable(variable) => path + "{" + name(variable) + "}",
            }),
        })
    }
}

impl Segment {
    fn matches(&self, text: &str) -> bool {
        match self {
            Segment::Literal(literal) => literal == text,
            Segment::Variable(_) => !text.is_empty(),
            Segment::Mixed(parts) => matches_parts(parts, text).unwrap_or(false),
        }
    }

    /// Returns the precedence of the segment in a request's path, as the router has it: fixed text,
    /// then variables with the most text around them.
    fn precedence(&self) -> usize {
        match self {
            Segment::Literal(_) => usize::MAX,
            Segment::Variable(_) => 0,
            Segment::Mixed(parts) => parts
                .iter()
                .map(|part| match part {
                    SegmentPart::Text(text) => text.len(),
                    SegmentPart::Variable(_) => 0,
                })
                .sum(),
        }
    }

    fn parse(text: &str) -> Result<Segment, PathFault> {
        if text.contains(['{', '}']) {
            return Segment::with_variables(text);
        }
        match text {
            "" => Err(PathFault::EmptySegment),
            // Clients remove dot segments before they send a request (RFC 3986, section 5.2.4), so such a
            // path is never requested.
            "." | ".." => Err(PathFault::Dots),
            _ => match text.chars().find(|c| !is_path_char(*c)) {
                Some(c) => Err(PathFault::Character(c)),
                None => Ok(Segment::Literal(text.to_owned())),
            },
        }
    }

    fn with_variables(text: &str) -> Result<Segment, PathFault> {
        let fault = || PathFault::Segment(text.to_owned());
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (before, after) = rest.split_once('{').unwrap_or((rest, ""));
            match before.chars().find(|c| !is_path_char(*c)) {
                Some('{' | '}') => return Err(fault()),
                Some(c) => return Err(PathFault::Character(c)),
                // The border between adjacent variables would be ambiguous.
                None if before.is_empty() && !parts.is_empty() => return Err(fault()),
                None if before.is_empty() => {}
                None => parts.push(SegmentPart::Text(before.to_owned())),
            }
            if before.len() == rest.len() {
                break;
            }
            let (name, after) = after.split_once('}').ok_or_else(fault)?;
            let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(fault());
            }
            parts.push(SegmentPart::Variable(name.to_owned()));
            rest = after;
        }
        Ok(match parts.as_slice() {
            [SegmentPart::Variable(name)] => Segment::Variable(name.clone()),
            _ => Segment::Mixed(parts),
        })
    }

    /// Returns the names of the variables, from left to right.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let (whole, parts): (Option<&str>, &[SegmentPart]) = match self {
            Segment::Literal(_) => (None, &[]),
            Segment::Variable(name) => (Some(name), &[]),
            Segment::Mixed(parts) => (None, parts),
        };
        whole.into_iter().chain(parts.iter().filter_map(|part| match part {
            SegmentPart::Variable(name) => Some(name.as_str()),
            SegmentPart::Text(_) => None,
        }))
    }
}

/// Returns whether a text has these parts, as the router matches them: each variable has at least
/// one character and ends before the first occurrence of the text that follows it, the last one
/// before the end. `None` if a text between variables does not occur.
fn matches_parts(parts: &[SegmentPart], text: &str) -> Option<bool> {
    let mut rest = text;
    for (at, part) in parts.iter().enumerate() {
        let SegmentPart::Text(wanted) = part else { continue };
        if at == 0 {
            rest = rest.strip_prefix(wanted.as_str())?;
        } else if at + 1 == parts.len() {
            rest = rest.strip_suffix(wanted.as_str())?;
        } else {
            // Skips one character, because a variable is never empty and the text may begin with the
            // delimiter.
            let first = rest.chars().next()?.len_utf8();
            rest = rest[first..].split_once(wanted.as_str())?.1;
        }
    }
    // The last variable takes the rest.
    Some(!rest.is_empty())
}

/// Returns whether the character is a `pchar` (RFC 3986, section 3.3) other than `%`: templates are
/// not percent-encoded.
fn is_path_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@".contains(c)
}

impl fmt::Display for PathTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(|name| name))
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

/// An error in the key of an operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpKeyFault {
    /// Not a method and a path separated by a space.
    #[error("an operation is written as a method and a path, such as `GET /things/{{id}}`")]
    Form,
    /// Not a method of operations.
    #[error("`{0}` is not a method: GET, PUT, POST, DELETE, OPTIONS, HEAD, PATCH or TRACE")]
    Method(String),
    /// Not a path template.
    #[error(transparent)]
    Path(#[from] PathFault),
}

impl OpKey {
    /// Methods of operations, by their key in a contract.
    pub(crate) const METHODS: [(&'static str, Method); 8] = [
        ("get", Method::GET),
        ("put", Method::PUT),
        ("post", Method::POST),
        ("delete", Method::DELETE),
        ("options", Method::OPTIONS),
        ("head", Method::HEAD),
        ("patch", Method::PATCH),
        ("trace", Method::TRACE),
    ];

    /// Parses a key.
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
        for text in [
            "GET /",
            "PUT /things/{id}",
            "DELETE /a/{b}/c-d/{e}",
            "GET /a/",
            "GET /a/{b}.json",
            "GET /{b}...{c}/",
        ] {
            assert_eq!(OpKey::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(OpKey::parse("PUT /things/{id}/x").unwrap().path.shape(), "/things/{}/x");
    }

    #[test]
    fn templates_match_the_paths_that_the_router_finds() {
        for (template, path, is_match) in [
            ("/a/{b}.json", "/a/b.json", true),
            ("/a/{b}.json", "/a/b.json.json", true),
            ("/a/{b}.json", "/a/.json", false),
            ("/a/{b}.json", "/a/b.xml", false),
            ("/a/{b}.json", "/a/é.json", true),
            ("/{b}...{c}", "/1...2", true),
            ("/{b}...{c}", "/é...2", true),
            ("/{b}...{c}", "/1...", false),
            ("/{b}...{c}", "/...2", false),
            ("/x{b}-{c}.z", "/x1-2-3.z.z", true),
            ("/a/{b}", "/a/", false),
            ("/a/", "/a/", true),
            ("/", "/", true),
        ] {
            assert_eq!(PathTemplate::parse(template).unwrap().matches(path), is_match, "{template} {path}");
        }
        let precedence = |template: &str| PathTemplate::parse(template).unwrap().precedence();
        let order = ["/a/{b}/c", "/a/{b}/{c}", "/{b}.json/c/d", "/{b}.x/c/d", "/{b}/c/d"];
        assert!(order.is_sorted_by(|a, b| precedence(a) > precedence(b)), "{order:?}");
    }

    #[test]
    fn what_is_no_operation_says_why() {
        let fault = |text: &str| OpKey::parse(text).unwrap_err().to_string();
        assert_eq!(fault("/a"), "an operation is written as a method and a path, such as `GET /things/{id}`");
        assert!(fault("get /a").starts_with("`get` is not a method"));
        assert_eq!(fault("GET a"), "a path starts with `/`");
        assert_eq!(fault("GET /a//"), "a path has no empty segments");
        assert_eq!(fault("GET /a/../b"), "a path has no `.` and `..` segments");
        let parts = "is not made of text and of `{variables}` with text between them";
        for segment in ["{}", "{a}{b}", "{a", "a}", "x{a}{b}"] {
            assert_eq!(fault(&format!("GET /a/{segment}")), format!("`{segment}` {parts}"));
        }
        assert_eq!(fault("GET /a/{b}-{b}"), "the variable `b` is there twice");
        assert_eq!(fault("GET /a?b"), "`?` cannot stand in a path");
        assert_eq!(fault("GET /{a}/{a}"), "the variable `a` is there twice");
    }
}
