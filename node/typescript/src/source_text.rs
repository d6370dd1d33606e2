//! White space, comments, words and lines of the source text between the nodes of a syntax tree.

/// Source text, read at positions that are borders of tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceText<'s>(pub &'s str);

impl<'s> SourceText<'s> {
    /// Byte at `position`, or 0 at the end.
    pub fn byte(self, position: u32) -> u8 {
        self.0.as_bytes().get(position as usize).copied().unwrap_or(0)
    }

    /// Position of the first token at or after `position`: white space and comments are skipped.
    pub fn next_token(self, position: u32) -> u32 {
        let mut rest = &self.0[position as usize..];
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            if rest.starts_with("//") {
                rest = rest.find(is_line_break).map_or("", |end| &rest[end..]);
            } else if rest.starts_with("/*") {
                rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
            } else {
                return (self.0.len() - rest.len()) as u32;
            }
        }
    }

    /// Word of ASCII letters at `position`, which may be empty.
    pub fn word(self, position: u32) -> &'s str {
        let rest = &self.0[position as usize..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '$' | '\\')).unwrap_or(rest.len());
        &rest[..end]
    }

    pub fn breaks_line(self, start: u32, end: u32) -> bool {
        self.0[start as usize..end as usize].contains(is_line_break)
    }

    /// Whether the token after `position` would continue an expression that ends there without a semicolon.
    pub fn continues_after(self, position: u32) -> bool {
        matches!(
            self.byte(self.next_token(position)),
            b'(' | b'['
                | b'`'
                | b'+'
                | b'-'
                | b'*'
                | b'/'
                | b','
                | b'.'
                | b'<'
                | b'>'
                | b'='
                | b'?'
                | b'&'
                | b'|'
                | b'^'
                | b'%'
        )
    }
}

pub(crate) fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_white_space_before_a_token_are_skipped() {
        let text = SourceText("a /* ( */ // [\n\u{feff}\u{a0} b");
        assert_eq!(text.word(text.next_token(1)), "b");
        assert_eq!(SourceText("a // end").next_token(1), 8);
    }

    #[test]
    fn brackets_and_operators_continue_an_expression() {
        assert!(SourceText("a\n/* c */ (1)").continues_after(1));
        assert!(!SourceText("a\nb").continues_after(1));
        assert!(!SourceText("a\n}").continues_after(1));
        assert!(!SourceText("a").continues_after(1));
    }
}
