//! Table of the public API, whose operations get a 501 response instead of 404 while they are not served.
//!
//! The table has the operations of the public OpenAPI document, and others that clients call.

use std::sync::OnceLock;

use crate::route_table::Routes;
use crate::routes::registered;

/// Operations, one per line: method and path. A segment in braces matches any segment, or several with a `+`.
const TABLE: &str = include_str!("api_table.txt");

/// Operations that clients require but the document omits.
const CALLED: [(&str, &str); 3] =
    [("POST", "/api/secret"), ("POST", "/function/invoke"), ("POST", "/function/sandbox-list")];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathLookup {
    /// The API has the operation.
    Operation,
    /// The API has the path with these methods.
    OtherMethods(Vec<&'static str>),
    Unknown,
}

/// Looks up a request that matched no route.
pub fn lookup(method: &str, path: &str) -> PathLookup {
    let rows = TABLE.lines().filter_map(|line| line.split_once(' ')).chain(CALLED).chain(served());
    let mut found: Vec<_> = rows.filter(|(_, pattern)| matches(pattern, path)).collect();
    // An exact path takes precedence over a pattern with ids.
    if found.iter().any(|(_, pattern)| *pattern == path) {
        found.retain(|(_, pattern)| *pattern == path);
    }
    let mut methods: Vec<&'static str> = found.into_iter().map(|(method, _)| method).collect();
    methods.sort_unstable();
    methods.dedup();
    if methods.is_empty() {
        return PathLookup::Unknown;
    }
    if methods.contains(&method) { PathLookup::Operation } else { PathLookup::OtherMethods(methods) }
}

/// Returns every known path, with ids in braces.
pub fn patterns() -> impl Iterator<Item = &'static str> {
    let known = TABLE.lines().filter_map(|line| line.split_once(' ')).chain(CALLED).chain(served());
    known.map(|(_, pattern)| pattern)
}

fn served() -> impl Iterator<Item = (&'static str, &'static str)> {
    static SERVED: OnceLock<Vec<(String, String)>> = OnceLock::new();
    let all = SERVED.get_or_init(|| {
        let mut routes = Routes::default();
        registered(&mut routes);
        routes.served.into_iter().map(|(method, path)| (method.to_ascii_uppercase(), path)).collect()
    });
    all.iter().map(|(method, path)| (method.as_str(), path.as_str()))
}

fn matches(pattern: &str, path: &str) -> bool {
    let (mut patterns, mut segments) = (pattern.split('/'), path.split('/'));
    loop {
        match (patterns.next(), segments.next()) {
            (None, None) => return true,
            (Some(wanted), Some(segment)) if wanted.starts_with('{') => {
                if segment.is_empty() {
                    return false;
                }
                if wanted.ends_with("+}") {
                    return true;
                }
            }
            (Some(wanted), Some(segment)) if wanted == segment => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_operation_of_the_document() {
        let lines: Vec<&str> = TABLE.lines().collect();
        assert_eq!(lines.len(), 151);
        for line in lines {
            let (method, path) = line.split_once(' ').expect("method and path");
            assert!(["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method) && path.starts_with('/'), "{line}");
        }
    }

    #[test]
    fn an_operation_is_known_by_method_and_path() {
        assert_eq!(lookup("POST", "/v1/prompt"), PathLookup::Operation);
        assert_eq!(lookup("GET", "/v1/prompt/abc"), PathLookup::Operation);
        assert_eq!(lookup("POST", "/v1/proxy/anything/below"), PathLookup::Operation);
        assert_eq!(lookup("POST", "/v1/acl/batch_update"), PathLookup::Operation);
        assert_eq!(lookup("POST", "/function/invoke"), PathLookup::Operation);
    }

    #[test]
    fn a_known_path_with_another_method_names_those_it_has() {
        assert_eq!(lookup("PUT", "/v1/user"), PathLookup::OtherMethods(vec!["GET"]));
        assert_eq!(lookup("POST", "/v1"), PathLookup::OtherMethods(vec!["GET"]));
        assert_eq!(lookup("GET", "/logs3"), PathLookup::OtherMethods(vec!["POST"]));
        assert_eq!(lookup("GET", "/v1/acl/batch_update"), PathLookup::OtherMethods(vec!["POST"]));
        assert_eq!(lookup("DELETE", "/v1/organization/members"), PathLookup::OtherMethods(vec!["PATCH"]));
    }

    #[test]
    fn what_the_document_does_not_name_is_unknown() {
        for path in
            ["/", "", "/v2/project", "/v1/prompt/", "/v1/prompt/a/b", "/v1/promptx", "//v1/prompt", "/v1/proxy/"]
        {
            assert_eq!(lookup("GET", path), PathLookup::Unknown, "{path}");
        }
    }
}
