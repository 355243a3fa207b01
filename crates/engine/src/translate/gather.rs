//! Collects several replies into one value: the pages of a list, or a reply for each element of a
//! list. Makes no calls itself; the run passes in the replies.

use super::turn::Failed;
use switchback_json::{Object, Value};
use switchback_plan::{Each, Pages};

/// The pages of a list that were read so far.
#[derive(Debug, Default)]
pub(super) struct Paged {
    pub count: u32,
    elements: Vec<Value>,
}

/// The state of a list after a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Another page is possible and may be read.
    More,
    /// The list is complete.
    Ended,
    /// Another page is possible, but the bound is reached.
    Bound,
}

impl Paged {
    /// Adds a page.
    pub(super) fn add(&mut self, page: Option<Value>, pages: &Pages) -> Result<After, Failed> {
        let Some(Value::Array(page)) = page else {
            return Err(Failed::broken("a page that is no array"));
        };
        // An incomplete page is the last one, which saves a call for an empty page.
        let is_short = u32::try_from(page.len()).is_ok_and(|len| len < pages.size);
        self.count += 1;
        self.elements.extend(page);
        Ok(match (is_short, self.count >= pages.upto) {
            (true, _) => After::Ended,
            (false, true) => After::Bound,
            (false, false) => After::More,
        })
    }

    /// Returns whether a non-empty page equals the previous one.
    pub(super) fn repeats(&self, page: &Value) -> bool {
        let Value::Array(page) = page else { return false };
        let page: Vec<_> = page.iter().collect();
        !page.is_empty()
            && self.elements.len() >= page.len()
            && self.elements[self.elements.len() - page.len()..].iter().eq(page)
    }

    /// Returns all pages so far as one list.
    pub(super) fn so_far(&self) -> Value {
        Value::from(self.elements.clone())
    }
}

/// A call for each element of a list: the elements, and the results so far.
#[derive(Debug)]
pub(super) struct Fanned {
    elements: Vec<Value>,
    results: Vec<Value>,
    /// Called targets, and the index of the element with the reply.
    called: Vec<(String, usize)>,
}

impl Fanned {
    pub(super) fn new(elements: Vec<Value>) -> Fanned {
        Fanned { results: Vec::with_capacity(elements.len()), elements, called: Vec::new() }
    }

    /// Returns the current element, or `None` if all have a result.
    pub(super) fn element(&self) -> Option<&Value> {
        self.elements.get(self.results.len())
    }

    /// Returns the current element with its index.
    pub(crate) fn at(&self) -> Option<(usize, &Value)> {
        self.element().map(|element| (self.results.len(), element))
    }

    /// Returns whether the current element is within the bound.
    pub(super) fn is_within(&self, each: &Each) -> bool {
        u32::try_from(self.results.len()).is_ok_and(|at| at < each.upto)
    }

    /// Records the target that is called for the current element.
    pub(super) fn calling(&mut self, target: &str) {
        self.called.push((target.to_owned(), self.results.len()));
    }

    /// Reuses the reply of an earlier element with the same target. Returns whether there was one.
    pub(super) fn repeat(&mut self, each: &Each, target: &str) -> bool {
        let Some((_, at)) = self.called.iter().find(|(called, _)| called == target) else { return false };
        if let Value::Object(earlier) = self.results[*at].clone() {
            self.put(each, earlier);
        }
        true
    }

    /// Sets the result of the current element: the parts of its reply, or an empty object.
    pub(super) fn put(&mut self, each: &Each, mut reply: Object) {
        if let Some(element) = self.element().cloned() {
            reply.insert(&*each.name.text, element);
            self.results.push(Value::Object(reply));
        }
    }

    /// Returns the results, in the order of the elements.
    pub(super) fn finish(self) -> Value {
        Value::from(self.results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_json::Limits;
    use switchback_plan::{Beyond, Key, Location, Path};

    fn json(text: &str) -> Value {
        Value::parse(text.as_bytes(), &Limits::UNLIMITED).expect("the test writes JSON")
    }

    fn pages(upto: u32) -> Pages {
        Pages { parameter: "page".into(), first: 0, upto, size: 2, until: None, beyond: Beyond::Cut }
    }

    #[test]
    fn a_list_ends_with_a_short_page_even_at_the_bound() {
        let mut paged = Paged::default();
        assert_eq!(paged.add(Some(json("[1,2]")), &pages(2)), Ok(After::More));
        assert_eq!(paged.add(Some(json("[3]")), &pages(2)), Ok(After::Ended));
        assert_eq!(paged.so_far(), json("[1,2,3]"));
    }

    #[test]
    fn a_full_last_page_leaves_open_whether_the_list_goes_on() {
        let mut paged = Paged::default();
        assert_eq!(paged.add(Some(json("[1,2]")), &pages(1)), Ok(After::Bound));
        assert!(paged.add(None, &pages(3)).is_err());
    }

    #[test]
    fn a_page_that_comes_again_is_noticed() {
        let mut paged = Paged::default();
        assert!(!paged.repeats(&json("[1,2]")) && !paged.repeats(&json("[]")));
        paged.add(Some(json("[1,2]")), &pages(9)).expect("it is a page");
        assert!(paged.repeats(&json("[1,2]")));
        assert!(!paged.repeats(&json("[1,3]")) && !paged.repeats(&json("[]")) && !paged.repeats(&json("7")));
    }

    #[test]
    fn elements_with_the_same_address_share_one_reply() {
        let path = Path::Singular(Vec::new());
        let each = Each {
            name: Key::new("it"),
            list: Location { text: "$.list".into(), path },
            upto: 2,
            beyond: None,
        };
        let mut fanned = Fanned::new(vec![json("7"), json("7"), json("8")]);
        assert!(!fanned.repeat(&each, "/a/7"));
        fanned.calling("/a/7");
        let mut reply = Object::new();
        reply.insert("body", json("\"seven\""));
        fanned.put(&each, reply);
        assert!(fanned.is_within(&each) && fanned.repeat(&each, "/a/7"));
        assert!(!fanned.is_within(&each), "the third stands beyond the bound");
        fanned.put(&each, Object::new());
        assert_eq!(fanned.element(), None);
        assert_eq!(fanned.finish(), json(r#"[{"body":"seven","it":7},{"body":"seven","it":7},{"it":8}]"#));
    }
}
