//! Suggestions of known paths that a client may have meant.

use strsim::levenshtein;

use crate::openapi::api_table::patterns;

/// Upper bound of the bytes of a path with a suggestion.
const PATH_BYTES_MAX: usize = 128;
/// Upper bound of the edit distance between a path and its suggestion.
const LETTERS_MAX: usize = 2;
/// Paths that clients append to the base URL by mistake.
const BASES: [&str; 3] = ["/api", "/v1", "/otel"];

/// Returns a hint for an unknown path: the nearest known path, and the list of all paths.
pub fn hint(path: &str) -> String {
    const LIST: &str = "/docs and /openapi.json list every path";
    match near(path) {
        Some(Near::Base(below)) => {
            format!("did you mean {below}? The base URL of a client is this server's origin, without a path; {LIST}")
        }
        Some(Near::Path(pattern)) => format!("did you mean {pattern}? {LIST}"),
        None => LIST.to_owned(),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Near {
    /// The path exists without its first segment.
    Base(&'static str),
    Path(&'static str),
}

fn near(path: &str) -> Option<Near> {
    if path.len() > PATH_BYTES_MAX {
        return None;
    }
    let below = BASES.iter().find_map(|base| path.strip_prefix(base).filter(|rest| rest.starts_with('/')));
    if let Some(known) = below.and_then(|below| patterns().find(|pattern| matches(pattern, below))) {
        return Some(Near::Base(known));
    }
    // The base URL may end with a slash.
    let path = path.trim_end_matches('/');
    nearest(path).map(Near::Path)
}

/// Returns the nearest known path within the bound of the edit distance.
pub fn nearest(path: &str) -> Option<&'static str> {
    let candidates = patterns().filter_map(|pattern| Some((levenshtein(&filled(pattern, path)?, path), pattern)));
    candidates.filter(|(distance, _)| *distance <= LETTERS_MAX).min().map(|(_, pattern)| pattern)
}

fn matches(pattern: &str, path: &str) -> bool {
    filled(pattern, path).is_some_and(|filled| filled == path)
}

/// Returns a pattern with the path's segments instead of ids, or `None` if the numbers of segments differ.
fn filled(pattern: &str, path: &str) -> Option<String> {
    let (wanted, found): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    let fill =
        |(wanted, found): (&&str, &&str)| if wanted.starts_with('{') { found.to_string() } else { wanted.to_string() };
    (wanted.len() == found.len()).then(|| wanted.iter().zip(&found).map(fill).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_from_what_was_meant() {
        assert_eq!(near("/v1/projects"), Some(Near::Path("/v1/project")));
        assert_eq!(near("/api/api/apikey/login"), Some(Near::Base("/api/apikey/login")));
        assert_eq!(near("/v1/v1/project"), Some(Near::Base("/v1/project")));
        assert!(matches!(near("/v1/dataset/abc/fetsh"), Some(Near::Path(path)) if path.ends_with("}/fetch")));
        assert_eq!(near("/btql/"), Some(Near::Path("/btql")));
        assert_eq!(near("/favicon.ico"), None);
        assert_eq!(near(&format!("/v1/{}", "a".repeat(200))), None);
        assert!(hint("/").contains("/docs") && hint("/v1/projects").starts_with("did you mean /v1/project?"));
    }
}
