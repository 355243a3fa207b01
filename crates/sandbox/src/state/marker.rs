//! Expands `{{name}}` markers in the texts of flows and templates, in one pass: markers inside
//! values are not expanded.

/// Replaces each marker for which `value` returns a text. Unknown markers are left unchanged.
pub fn expand(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let Some(length) = rest[start + 2..].find("}}") else { break };
        let name = &rest[start + 2..start + 2 + length];
        let end = start + length + 4;
        out.push_str(&rest[..start]);
        match value(name.trim()) {
            Some(value) => out.push_str(&value),
            None => out.push_str(&rest[start..end]),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_replaced_once_and_unknown_ones_stay() {
        let value = |name: &str| (name == "a").then(|| "{{b}}".to_owned());
        assert_eq!(expand("x {{a}} {{ a }} {{b}} {{", value), "x {{b}} {{b}} {{b}} {{");
    }
}
