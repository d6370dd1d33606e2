//! LIKE: `%` is any run, `_` one character, a backslash takes either for itself (D-55). The whole value must fit.

/// A pattern, ready to be held against many values.
#[derive(Clone, Debug)]
pub struct Like {
    /// What stands between the `%`: at least one piece.
    pieces: Vec<Vec<Piece>>,
    any_case: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Piece {
    Char(char),
    Any,
}

impl Like {
    pub fn new(pattern: &str, any_case: bool) -> Like {
        let mut pieces = vec![Vec::new()];
        let mut chars = pattern.chars();
        while let Some(next) = chars.next() {
            let last = pieces.last_mut().expect("there is always one");
            match next {
                '%' => pieces.push(Vec::new()),
                '_' => last.push(Piece::Any),
                '\\' => last.push(Piece::Char(chars.next().unwrap_or('\\'))),
                other => last.push(Piece::Char(other)),
            }
        }
        if any_case {
            pieces.iter_mut().for_each(|piece| *piece = piece.iter().flat_map(lower).collect());
        }
        Like { pieces, any_case }
    }

    pub fn fits(&self, value: &str) -> bool {
        let value: Vec<char> =
            if self.any_case { value.chars().flat_map(char::to_lowercase).collect() } else { value.chars().collect() };
        let (first, rest) = self.pieces.split_first().expect("there is always one");
        if !begins(&value, first) {
            return false;
        }
        let mut value = &value[first.len()..];
        let Some((last, middle)) = rest.split_last() else { return value.is_empty() };
        for piece in middle {
            // The first place where it fits is as good as any.
            let Some(at) = (0..=value.len().saturating_sub(piece.len())).find(|at| begins(&value[*at..], piece)) else {
                return false;
            };
            value = &value[at + piece.len()..];
        }
        value.len() >= last.len() && begins(&value[value.len() - last.len()..], last)
    }
}

fn lower(piece: &Piece) -> Vec<Piece> {
    match piece {
        Piece::Char(char) => char.to_lowercase().map(Piece::Char).collect(),
        Piece::Any => vec![Piece::Any],
    }
}

fn begins(value: &[char], piece: &[Piece]) -> bool {
    value.len() >= piece.len()
        && piece.iter().zip(value).all(|(piece, char)| *piece == Piece::Any || *piece == Piece::Char(*char))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_what_they_say() {
        for (value, pattern, expected) in [
            ("Cancel my order, it was 50% off", r"%50\% off%", true),
            ("it was 50 off", r"%50\% off%", false),
            ("abc", "abc", true),
            ("abc", "ab", false),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "a_c", true),
            ("ac", "a_c", false),
            ("a_c", r"a\_c", true),
            ("abc", r"a\_c", false),
            ("é", "_", true),
            ("", "%", true),
            ("", "", true),
            ("aab", "%ab", true),
            ("abab", "ab%ab", true),
            ("ab", "ab%ab", false),
            ("a\\", r"a\", true),
            ("xaxbx", "%a%b%", true),
            ("xbxax", "%a%b%", false),
        ] {
            assert_eq!(Like::new(pattern, false).fits(value), expected, "{value} like {pattern}");
        }
        assert!(Like::new("%REFUND%", true).fits("Where is my refund?"));
        assert!(Like::new("straße", true).fits("STRAßE"));
        assert!(!Like::new("%REFUND%", false).fits("Where is my refund?"));
    }
}
