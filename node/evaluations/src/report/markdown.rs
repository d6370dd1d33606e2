//! Markdown of names, links and numbers, safe in tables and in comments of pull requests.

/// Upper bound of the characters of a shown name.
const NAME_CHARS_MAX: usize = 60;
/// Characters that may stay in a URL within parentheses.
const URL_MARKS: &[u8] = b"-._~:/?#@!$&'+,;=%";

/// Returns a text as inline code, in which nothing is markup, a mention or a link.
///
/// Character references are safe in tables, other than backslashes.
pub(super) fn code(text: &str) -> String {
    let mut shown = String::from("<code>");
    for (position, character) in text.chars().enumerate() {
        if position == NAME_CHARS_MAX {
            shown.push_str("...");
            break;
        }
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' | '-' => shown.push(character),
            _ if character.is_control() || is_direction(character) => shown.push(' '),
            _ if character.is_ascii() => shown.push_str(&format!("&#{};", u32::from(character))),
            _ => shown.push(character),
        }
    }
    shown.push_str("</code>");
    shown
}

/// Returns whether a character changes the direction of the text after it.
fn is_direction(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a name as a link, or without one if the address is not HTTP.
pub(super) fn link(name: &str, url: Option<&str>) -> String {
    let url = url.filter(|url| url.starts_with("https://") || url.starts_with("http://"));
    let Some(url) = url else { return code(name) };
    let mut address = String::with_capacity(url.len());
    for byte in url.bytes() {
        if byte.is_ascii_alphanumeric() || URL_MARKS.contains(&byte) {
            address.push(char::from(byte));
        } else {
            address.push_str(&format!("%{byte:02X}"));
        }
    }
    format!("[{}]({address})", code(name))
}

/// Returns a number with the given places. A number that rounds to zero has no sign.
pub(super) fn number(value: f64, places: usize, has_sign: bool) -> String {
    let text = if has_sign { format!("{value:+.places$}") } else { format!("{value:.places$}") };
    let is_zero = text.bytes().all(|byte| matches!(byte, b'+' | b'-' | b'0' | b'.'));
    if is_zero { text.trim_start_matches(['+', '-']).to_owned() } else { text }
}

/// Returns a count with its noun.
pub(super) fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_no_markup() {
        assert_eq!(code("Exact match-2"), "<code>Exact match-2</code>");
        assert_eq!(code("a|b\\`<x>&"), "<code>a&#124;b&#92;&#96;&#60;x&#62;&#38;</code>");
        assert_eq!(code("@user www.x\nü\u{202e}"), "<code>&#64;user www&#46;x ü </code>");
        assert_eq!(code(&"ä".repeat(61)), format!("<code>{}...</code>", "ä".repeat(60)));
    }

    #[test]
    fn links_lead_only_to_web_addresses() {
        assert_eq!(link("e", Some("https://a/b?c=d%20e")), "[<code>e</code>](https://a/b?c=d%20e)");
        assert_eq!(
            link("e", Some("http://a/(b) [c]|<é>")),
            "[<code>e</code>](http://a/%28b%29%20%5Bc%5D%7C%3C%C3%A9%3E)"
        );
        assert_eq!(link("e", Some("javascript:alert(1)")), "<code>e</code>");
        assert_eq!(link("e", None), "<code>e</code>");
    }

    #[test]
    fn numbers_that_round_to_zero_have_no_sign() {
        assert_eq!(number(-0.0004, 3, true), "0.000");
        assert_eq!((number(0.0125, 3, true), number(-1.5, 1, true)), ("+0.013".to_owned(), "-1.5".to_owned()));
        assert_eq!((number(-0.2, 0, false), number(12.0, 0, false)), ("0".to_owned(), "12".to_owned()));
        assert_eq!((counted(1, "row", "rows"), counted(0, "row", "rows")), ("1 row".to_owned(), "0 rows".to_owned()));
    }
}
