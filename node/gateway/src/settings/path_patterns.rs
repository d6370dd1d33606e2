//! Patterns of paths that pass to a provider as they are (G-03).

/// Patterns that `passthrough_paths` may have.
pub const PASSTHROUGH_PATHS_MAX: usize = 64;
/// Bytes of one pattern.
pub const PATTERN_BYTES_MAX: usize = 256;

/// One part of a path.
const ONE: &str = "*";
/// One or more parts, at the end.
const REST: &str = "**";

pub(super) fn is_pattern(text: &str) -> bool {
    let mut parts: Vec<&str> = text.split('/').collect();
    let last = parts.pop().unwrap_or_default();
    text.len() <= PATTERN_BYTES_MAX
        && (last == REST || last == ONE || is_part(last))
        && parts.into_iter().all(|part| part == ONE || is_part(part))
}

/// Matches a path. One with a part that could lead elsewhere at the provider matches nothing.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let (mut patterns, mut parts) = (pattern.split('/'), path.split('/'));
    if !path.split('/').all(is_part) {
        return false;
    }
    // Ends: each turn takes a part of the pattern.
    loop {
        match (patterns.next(), parts.next()) {
            (None, None) | (Some(REST), Some(_)) => return true,
            (Some(pattern), Some(part)) if pattern == ONE || pattern == part => {}
            _ => return false,
        }
    }
}

/// Whether a text is a part of a path that every server reads alike: neither empty nor dots, and without escapes.
fn is_part(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    !text.is_empty() && text.bytes().all(is_plain) && !text.bytes().all(|byte| byte == b'.')
}
