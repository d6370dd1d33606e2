//! Replacement of parts of a text by white space of the same size.

use crate::source_text::is_line_break;

/// Character that stands in for a blank where white space alone would change the meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    None,
    /// Semicolon at the start, which ends the statement before.
    Semicolon,
    /// Opening parenthesis at the start, moved up to the line of the word before.
    Opening,
    /// Closing parenthesis at the end, moved down to the line of the arrow after.
    Closing,
}

/// Part of a text that becomes white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blank {
    pub start: u32,
    pub end: u32,
    pub mark: Mark,
}

/// Unit in which a text with blanks has the size of the text without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// Bytes, so that the spans of syntax trees are comparable.
    Bytes,
    /// UTF-16 units, so that columns stay.
    Utf16,
}

impl Width {
    fn of(self, c: char) -> usize {
        match self {
            Width::Bytes => c.len_utf8(),
            Width::Utf16 => c.len_utf16(),
        }
    }
}

/// Blanks of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blanks {
    blanks: Vec<Blank>,
}

impl Blanks {
    /// Blanks in the order of the text; one inside another is left out.
    pub fn new(mut blanks: Vec<Blank>) -> Self {
        blanks.retain(|blank| blank.start < blank.end);
        blanks.sort_by_key(|blank| (blank.start, std::cmp::Reverse(blank.end)));
        let mut end = 0;
        blanks.retain(|blank| {
            let outer = blank.start >= end;
            end = end.max(blank.end);
            outer
        });
        Self { blanks }
    }

    pub fn is_empty(&self) -> bool {
        self.blanks.is_empty()
    }

    /// Whether everything from `start` to `end` is blank.
    pub fn cover(&self, start: u32, end: u32) -> bool {
        let before = self.blanks.partition_point(|blank| blank.start <= start);
        before > 0 && end <= self.blanks[before - 1].end
    }

    /// Start of the blank that is nearest to the range from `start` to `end`.
    pub fn nearest(&self, start: u32, end: u32) -> Option<u32> {
        let distance = |blank: &&Blank| {
            if blank.start > end { blank.start - end } else { start.saturating_sub(blank.end) }
        };
        self.blanks.iter().min_by_key(distance).map(|blank| blank.start)
    }

    /// Text with white space of the same `width` instead of the blanks, and the same line breaks.
    pub fn apply(&self, source: &str, width: Width) -> String {
        let mut text = String::with_capacity(source.len());
        let mut position = 0;
        for blank in &self.blanks {
            let (start, end) = (blank.start as usize, blank.end as usize);
            text.push_str(&source[position..start]);
            push_blank(&mut text, &source[start..end], blank.mark, width);
            position = end;
        }
        text.push_str(&source[position..]);
        text
    }
}

fn push_blank(text: &mut String, blanked: &str, mark: Mark, width: Width) {
    let last = blanked.char_indices().next_back().map_or(0, |(position, _)| position);
    for (position, c) in blanked.char_indices() {
        let replacement = match mark {
            Mark::Semicolon if position == 0 => ';',
            Mark::Opening if position == 0 => '(',
            Mark::Closing if position == last => ')',
            _ if is_line_break(c) => c,
            _ => ' ',
        };
        text.push(replacement);
        text.extend(std::iter::repeat_n(' ', width.of(c) - width.of(replacement)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blank(start: u32, end: u32, mark: Mark) -> Blank {
        Blank { start, end, mark }
    }

    #[test]
    fn line_breaks_and_utf16_columns_stay() {
        let blanks = Blanks::new(vec![blank(1, 10, Mark::None)]);
        assert_eq!(blanks.apply("a\u{1f600}\r\né\tz", Width::Utf16), "a  \r\n  z");
        assert_eq!(blanks.apply("a\u{1f600}\r\né\tz", Width::Bytes), "a    \r\n   z");
    }

    #[test]
    fn marks_take_the_place_of_the_first_or_last_character() {
        let source = "ab cd ef";
        let blanks =
            Blanks::new(vec![blank(6, 8, Mark::Closing), blank(0, 2, Mark::Semicolon), blank(3, 5, Mark::Opening)]);
        assert_eq!(blanks.apply(source, Width::Utf16), ";  (   )");
    }

    #[test]
    fn a_blank_inside_another_one_is_left_out() {
        let blanks = Blanks::new(vec![blank(2, 3, Mark::Semicolon), blank(1, 5, Mark::None)]);
        assert_eq!(blanks.apply("abcdef", Width::Utf16), "a    f");
        assert!(blanks.cover(1, 5) && blanks.cover(3, 4));
        assert!(!blanks.cover(0, 3) && !blanks.cover(4, 6));
    }

    #[test]
    fn the_nearest_blank_is_found_on_both_sides() {
        let blanks = Blanks::new(vec![blank(2, 4, Mark::None), blank(20, 22, Mark::None)]);
        assert_eq!(blanks.nearest(6, 8), Some(2));
        assert_eq!(blanks.nearest(15, 18), Some(20));
        assert_eq!(Blanks::default().nearest(1, 2), None);
    }
}
