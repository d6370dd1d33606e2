//! Lexer, with the same tokens for SQL, BTQL and single expressions.
//!
//! A quote has two readings until the parser knows where it stands (D-21), so `"x"` is one token that keeps its content; a
//! `%` behind a number is a token of its own, for the same reason (D-23).

use crate::error::{QueryError, quoted};

/// Bytes of a query's text.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// Word as it was written. Keywords are compared without regard to case.
    Word(String),
    /// Name in backquotes.
    Name(String),
    /// Name or text in double quotes.
    Double(String),
    /// Text in single quotes.
    Text(String),
    Number(Number),
    Symbol(&'static str),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

#[derive(Clone, Debug)]
pub(crate) struct Lexed {
    pub token: Token,
    /// Bytes from the beginning of the text.
    pub start: usize,
    pub end: usize,
}

/// Longest first.
const SYMBOLS: [&str; 37] = [
    "<!=>", "!~*", "<=>", "->>", "<=", ">=", "<>", "!=", "=>", "==", "||", "&&", "->", "::", "!~", "~*", "=", "<", ">",
    "+", "-", "*", "/", "%", "~", "?", ":", ",", ".", "(", ")", "[", "]", "{", "}", "|", ";",
];

impl Token {
    /// Describes the token for an error.
    pub fn describe(&self, text: &str, start: usize, end: usize) -> String {
        if *self == Token::End { "the end of the text".into() } else { quoted(&text[start..end]) }
    }
}

/// The tokens of a text, `End` last.
pub(crate) fn lex(text: &str) -> Result<Vec<Lexed>, QueryError> {
    if text.len() > TEXT_BYTES_MAX {
        let what = format!("the text has {} bytes; {TEXT_BYTES_MAX} are allowed", text.len());
        return Err(QueryError::new(what));
    }
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let start = lexer.at;
        let token = lexer.token()?;
        let ends = token == Token::End;
        tokens.push(Lexed { token, start, end: lexer.at });
        if ends {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn error(&self, at: usize, what: impl Into<String>) -> QueryError {
        QueryError::at(self.text, at, what)
    }

    fn skip_blanks(&mut self) -> Result<(), QueryError> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            if blank > 0 {
                self.at += blank;
            } else if rest.starts_with("--") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let end =
                    rest.find("*/").ok_or_else(|| self.error(self.at, "this comment has no end: `*/` is missing"))?;
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Token, QueryError> {
        let Some(first) = self.rest().chars().next() else { return Ok(Token::End) };
        match first {
            '\'' => self.single_quoted().map(Token::Text),
            '"' => self.double_quoted().map(Token::Double),
            '`' => self.backquoted().map(Token::Name),
            '0'..='9' => self.number().map(Token::Number),
            '.' if self.rest()[1..].starts_with(|next: char| next.is_ascii_digit()) && !self.follows_a_name() => {
                self.number().map(Token::Number)
            }
            _ if is_word_start(first) => Ok(Token::Word(self.word())),
            _ => self.symbol(),
        }
    }

    /// `a.1` is a path that was begun, not a name and a number.
    fn follows_a_name(&self) -> bool {
        self.text[..self.at].ends_with(|before: char| is_word_part(before) || matches!(before, ']' | '"' | '`' | ')'))
    }

    fn word(&mut self) -> String {
        let rest = self.rest();
        let length = rest.find(|next: char| !is_word_part(next)).unwrap_or(rest.len());
        let word = rest[..length].to_owned();
        self.at += length;
        word
    }

    fn symbol(&mut self) -> Result<Token, QueryError> {
        let rest = self.rest();
        let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) else {
            let found: String = rest.chars().take(1).collect();
            return Err(self.error(self.at, format!("{} has no meaning here", quoted(&found))));
        };
        self.at += symbol.len();
        Ok(Token::Symbol(symbol))
    }

    fn number(&mut self) -> Result<Number, QueryError> {
        let rest = self.rest().as_bytes();
        let digits = |from: usize| from + rest[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = digits(0);
        let mut whole = true;
        if rest.get(end) == Some(&b'.') && rest.get(end + 1).is_some_and(u8::is_ascii_digit) {
            (end, whole) = (digits(end + 1), false);
        }
        if matches!(rest.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
            if rest.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
                (end, whole) = (digits(end + 1 + sign), false);
            }
        }
        let (start, text) = (self.at, &self.text[self.at..self.at + end]);
        if let Some(letter) = self.text[start + end..].chars().next().filter(|next| is_word_start(*next)) {
            return Err(self.error(start, format!("expected a number, found {}", quoted(&format!("{text}{letter}")))));
        }
        self.at += end;
        let integer = |text: &str| match text.parse() {
            Ok(number) => Some(Number::Signed(number)),
            Err(_) => text.parse().ok().map(Number::Unsigned),
        };
        if let Some(number) = Some(text).filter(|_| whole).and_then(integer) {
            return Ok(number);
        }
        let number: f64 = text.parse().expect("digits, a point and an exponent");
        if number.is_finite() {
            return Ok(Number::Float(number));
        }
        Err(self.error(start, format!("{} is beyond what a number can be, 1.8e308", quoted(text))))
    }

    /// `''` is a quote, `\'` and `\\` are escapes, any other backslash stays (D-25).
    fn single_quoted(&mut self) -> Result<String, QueryError> {
        self.quoted('\'', |escaped| matches!(escaped, '\'' | '\\').then_some(escaped))
    }

    /// Reads a double-quoted token. `""` is a quote, and JSON escapes are supported (section 3).
    fn double_quoted(&mut self) -> Result<String, QueryError> {
        self.quoted('"', |escaped| match escaped {
            '"' | '\\' | '/' => Some(escaped),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            _ => None,
        })
    }

    fn backquoted(&mut self) -> Result<String, QueryError> {
        self.quoted('`', |_| None)
    }

    fn quoted(&mut self, quote: char, escape: impl Fn(char) -> Option<char>) -> Result<String, QueryError> {
        let start = self.at;
        let mut content = String::new();
        let mut chars = self.text[start..].char_indices().skip(1).peekable();
        while let Some((offset, found)) = chars.next() {
            let next = chars.peek().map(|(_, next)| *next);
            if found == quote && next == Some(quote) {
                content.push(quote);
                chars.next();
            } else if found == quote {
                self.at = start + offset + quote.len_utf8();
                return Ok(content);
            } else if found == '\\'
                && quote == '"'
                && let Some((unescaped, length)) = json_unicode(&self.text[start + offset..])
            {
                content.push(unescaped);
                chars.nth(length - 2); // all of it is ASCII
            } else if found == '\\'
                && let Some(unescaped) = next.and_then(&escape)
            {
                content.push(unescaped);
                chars.next();
            } else {
                content.push(found);
            }
        }
        Err(self.error(start, format!("what begins with {quote} here has no end: another {quote} is missing")))
    }
}

/// The character of `\uXXXX`, or of a pair of them, and how many bytes that takes.
fn json_unicode(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok()).flatten()
    };
    let first = unit(0)?;
    if let Some(character) = char::from_u32(first.into()) {
        return Some((character, 6));
    }
    let pair = [first, unit(6)?];
    let character = char::decode_utf16(pair).next()?.ok()?;
    Some((character, 12))
}

fn is_word_start(first: char) -> bool {
    first.is_alphabetic() || first == '_'
}

fn is_word_part(next: char) -> bool {
    next.is_alphanumeric() || matches!(next, '_' | '$')
}

/// Returns whether a name needs no quotes.
pub(crate) fn is_plain_word(name: &str) -> bool {
    name.starts_with(is_word_start) && name.chars().all(is_word_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        lex(text).expect("tokens").into_iter().map(|lexed| lexed.token).collect()
    }

    fn only(text: &str) -> Token {
        let mut tokens = tokens(text);
        assert_eq!(tokens.len(), 2, "{text}: {tokens:?}");
        tokens.swap_remove(0)
    }

    #[test]
    fn quotes_keep_what_their_kind_keeps() {
        let text = |content: &str| Token::Text(content.into());
        assert_eq!(only(r"'it''s'"), text("it's"));
        assert_eq!(only(r"'a\'b\\c'"), text(r"a'b\c"));
        assert_eq!(only(r"'%50\% off%\n'"), text(r"%50\% off%\n"));
        let double = |content: &str| Token::Double(content.into());
        assert_eq!(
            only(r#""say ""hi"" \"you\" \n \u00e9 \ud83d\ude00 \% \u12""#),
            double("say \"hi\" \"you\" \n é 😀 \\% \\u12")
        );
        assert_eq!(only("`a``b\\`"), Token::Name("a`b\\".into()));
        for (open, column) in [("a = 'b", 5), ("\"b\\\"", 1), ("`", 1), ("/* *", 1)] {
            let error = lex(open).expect_err(open).to_string();
            assert!(error.starts_with(&format!("line 1, column {column}: ")), "{error}");
        }
    }

    #[test]
    fn numbers_are_exact_where_they_are_whole() {
        assert_eq!(only("9223372036854775807"), Token::Number(Number::Signed(i64::MAX)));
        assert_eq!(only("18446744073709551615"), Token::Number(Number::Unsigned(u64::MAX)));
        assert_eq!(only("18446744073709551616"), Token::Number(Number::Float(18_446_744_073_709_551_616.0)));
        assert_eq!(only("1.5e-3"), Token::Number(Number::Float(0.0015)));
        assert_eq!(only(".5"), Token::Number(Number::Float(0.5)));
        assert!(lex("1e400").is_err() && lex("12ab").is_err());
    }

    #[test]
    fn the_longest_symbol_wins_and_comments_are_blanks() {
        let symbols = |text: &str| -> Vec<Token> {
            tokens(text).into_iter().filter(|token| matches!(token, Token::Symbol(_))).collect()
        };
        assert_eq!(symbols("<!=> <=> <= !~* ->> ::"), ["<!=>", "<=>", "<=", "!~*", "->>", "::"].map(Token::Symbol));
        assert_eq!(tokens("a -- b\n /* c */ d").len(), 3);
        assert_eq!(tokens("a.b[0].c").len(), 9);
        assert_eq!(lex("a ^ b").expect_err("none").to_string(), "line 1, column 3: `^` has no meaning here");
    }
}
