//! Parser of mustache templates, as mustache.js parses them: which text is a tag, and which blank lines disappear.

use super::{MustacheError, SECTION_DEPTH_MAX, TAG_NAME_BYTES_MAX, TemplatePosition};

/// A parsed template, which borrows its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MustacheTemplate<'t> {
    pub(super) nodes: Vec<TemplateNode<'t>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplateNode<'t> {
    Text(&'t str),
    Variable(&'t str),
    Section { name: &'t str, inverted: bool, nodes: Vec<TemplateNode<'t>> },
}

/// What the text is made of, in a row.
#[derive(Clone, Copy, Debug)]
enum Piece<'t> {
    Text {
        start: usize,
        end: usize,
    },
    Variable(&'t str),
    Open {
        name: &'t str,
        inverted: bool,
        at: usize,
    },
    Close {
        name: &'t str,
        at: usize,
    },
    /// A comment, a partial, new delimiters, or blanks that were removed.
    Nothing,
}

impl<'t> MustacheTemplate<'t> {
    pub fn parse(text: &'t str) -> Result<MustacheTemplate<'t>, MustacheError> {
        let mut scanner =
            Scanner { text, at: 0, open: "{{", close: "}}", pieces: Vec::new(), line: TemplateLine::default() };
        scanner.run()?;
        nest(text, &scanner.pieces)
    }
}

/// What is known of the current line.
#[derive(Debug, Default)]
struct TemplateLine {
    /// Pieces that are blank.
    blanks: Vec<usize>,
    has_tag: bool,
    has_content: bool,
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    open: &'t str,
    close: &'t str,
    pieces: Vec<Piece<'t>>,
    line: TemplateLine,
}

impl<'t> Scanner<'t> {
    fn run(&mut self) -> Result<(), MustacheError> {
        while self.at < self.text.len() {
            let found = self.text[self.at..].find(self.open).map(|offset| self.at + offset);
            self.push_text(found.unwrap_or(self.text.len()));
            let Some(start) = found else { break };
            self.at = start + self.open.len();
            self.skip_blanks();
            self.line.has_tag = true;
            self.read_tag(start)?;
        }
        self.end_line();
        Ok(())
    }

    /// Takes the text up to `end`, split where blanks begin and end, and behind each newline.
    fn push_text(&mut self, end: usize) {
        let mut start = self.at;
        while start < end {
            let rest = &self.text[start..end];
            let is_blank = rest.starts_with(is_blank_char);
            let length = rest.find(|c| is_blank_char(c) != is_blank).unwrap_or(rest.len());
            let newline = rest[..length].find('\n').filter(|_| is_blank);
            let length = newline.map_or(length, |newline| newline + 1);
            match is_blank {
                true => self.line.blanks.push(self.pieces.len()),
                false => self.line.has_content = true,
            }
            self.pieces.push(Piece::Text { start, end: start + length });
            start += length;
            if newline.is_some() {
                self.end_line();
            }
        }
        self.at = end;
    }

    /// A line that has tags but no content of its own disappears with its newline.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.has_tag && !line.has_content {
            for blank in line.blanks {
                self.pieces[blank] = Piece::Nothing;
            }
        }
    }

    fn read_tag(&mut self, start: usize) -> Result<(), MustacheError> {
        let sign = self.text[self.at..].chars().next().filter(|sign| "#^/>{&=!".contains(*sign));
        self.at += sign.map_or(0, char::len_utf8);
        self.skip_blanks();
        let value = match sign {
            Some('=') => self.value_before("=", start)?,
            Some('{') => {
                let curly = format!("}}{}", self.close);
                let found = self.text[self.at..].find(&curly).ok_or_else(|| self.unclosed(start))?;
                let value = &self.text[self.at..self.at + found];
                self.at += found + 1;
                value
            }
            _ => {
                let found = self.text[self.at..].find(self.close).ok_or_else(|| self.unclosed(start))?;
                let value = &self.text[self.at..self.at + found];
                self.at += found;
                value
            }
        };
        let close = self.text[self.at..].find(self.close).ok_or_else(|| self.unclosed(start))?;
        self.at += close + self.close.len();
        let value = value.trim_end_matches(is_blank_char);
        if value.len() > TAG_NAME_BYTES_MAX && !matches!(sign, Some('!' | '>')) {
            return Err(MustacheError::LongName { at: TemplatePosition::of(self.text, start) });
        }
        let piece = match sign {
            Some('#') => Piece::Open { name: value, inverted: false, at: start },
            Some('^') => Piece::Open { name: value, inverted: true, at: start },
            Some('/') => Piece::Close { name: value, at: start },
            Some('!' | '>') => Piece::Nothing,
            Some('=') => {
                self.set_delimiters(value, start)?;
                Piece::Nothing
            }
            _ => {
                self.line.has_content = true;
                Piece::Variable(value)
            }
        };
        self.pieces.push(piece);
        Ok(())
    }

    /// Takes the value before a sign, and the sign.
    fn value_before(&mut self, sign: &str, start: usize) -> Result<&'t str, MustacheError> {
        let found = self.text[self.at..].find(sign).ok_or_else(|| self.unclosed(start))?;
        let value = &self.text[self.at..self.at + found];
        self.at += found + sign.len();
        Ok(value)
    }

    fn set_delimiters(&mut self, given: &'t str, start: usize) -> Result<(), MustacheError> {
        let mut words = given.split(is_blank_char).filter(|word| !word.is_empty());
        let (Some(open), Some(close)) = (words.next(), words.next()) else {
            let at = TemplatePosition::of(self.text, start);
            return Err(MustacheError::Delimiters { at, given: given.to_owned() });
        };
        (self.open, self.close) = (open, close);
        Ok(())
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches(is_blank_char).len();
    }

    fn unclosed(&self, start: usize) -> MustacheError {
        MustacheError::UnclosedTag { at: TemplatePosition::of(self.text, start) }
    }
}

/// Sections that are open, each with the nodes before it.
struct OpenSection<'t> {
    name: &'t str,
    inverted: bool,
    at: usize,
    before: Vec<TemplateNode<'t>>,
}

fn nest<'t>(text: &'t str, pieces: &[Piece<'t>]) -> Result<MustacheTemplate<'t>, MustacheError> {
    let (mut nodes, mut open) = (Vec::new(), Vec::<OpenSection<'t>>::new());
    let mut pieces = pieces.iter().copied().filter(|piece| !matches!(piece, Piece::Nothing)).peekable();
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Nothing => {}
            Piece::Variable(name) => nodes.push(TemplateNode::Variable(name)),
            Piece::Text { start, mut end } => {
                while let Some(Piece::Text { end: next, .. }) =
                    pieces.next_if(|piece| matches!(piece, Piece::Text { start, .. } if *start == end))
                {
                    end = next;
                }
                nodes.push(TemplateNode::Text(&text[start..end]));
            }
            Piece::Open { name, inverted, at } => {
                if open.len() >= SECTION_DEPTH_MAX {
                    return Err(MustacheError::TooDeep { at: TemplatePosition::of(text, at) });
                }
                open.push(OpenSection { name, inverted, at, before: std::mem::take(&mut nodes) });
            }
            Piece::Close { name, at } => {
                let at = TemplatePosition::of(text, at);
                let Some(section) = open.pop() else {
                    return Err(MustacheError::UnopenedSection { at, name: name.to_owned() });
                };
                if section.name != name {
                    return Err(MustacheError::UnclosedSection { at, name: section.name.to_owned() });
                }
                let inside = std::mem::replace(&mut nodes, section.before);
                nodes.push(TemplateNode::Section { name, inverted: section.inverted, nodes: inside });
            }
        }
    }
    match open.pop() {
        Some(section) => {
            let at = TemplatePosition::of(text, section.at);
            Err(MustacheError::UnclosedSection { at, name: section.name.to_owned() })
        }
        None => Ok(MustacheTemplate { nodes }),
    }
}

/// Returns whether JavaScript counts a character as white space.
fn is_blank_char(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}
