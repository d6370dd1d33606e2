//! Patterns of paths that are passed to providers unmodified (G-03).

/// Upper bound of the patterns in `passthrough_paths`.
pub const PASSTHROUGH_PATHS_MAX: usize = 64;
/// Upper bound of the bytes of one pattern.
pub const PATTERN_BYTES_MAX: usize = 256;

/// Pattern for one part of a path.
const ONE: &str = "*";
/// Pattern for one or more parts at the end of a path.
const REST: &str = "**";

pub(super) fn is_pattern(text: &str) -> bool {
    let mut parts: Vec<&str> = text.split('/').collect();
    let last = parts.pop().unwrap_or_default();
    text.len() <= PATTERN_BYTES_MAX
        && (last == REST || last == ONE || is_part(last))
        && parts.into_iter().all(|part| part == ONE || is_part(part))
}

/// Returns whether a path matches. A path with an unsafe part, such as `..`, never matches.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let (mut patterns, mut parts) = (pattern.split('/'), path.split('/'));
    if !path.split('/').all(is_part) {
        return false;
    }
    // Every iteration consumes a part of the pattern, so the loop ends.
    loop {
        match (patterns.next(), parts.next()) {
            (None, None) | (Some(REST), Some(_)) => return true,
            (Some(pattern), Some(part)) if pattern == ONE || pattern == part => {}
            _ => return false,
        }
    }
}

/// Returns whether a text is a part of a path that all servers interpret alike: not empty, no escapes, not only dots.
fn is_part(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    !text.is_empty() && text.bytes().all(is_plain) && !text.bytes().all(|byte| byte == b'.')
}
