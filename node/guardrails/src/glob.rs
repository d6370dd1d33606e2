//! Names of models with `*` and `?`.

/// Whether a name matches a glob as a whole: `*` stands for any characters, `?` for one.
pub(crate) fn matches(glob: &str, name: &str) -> bool {
    let (mut glob_rest, mut name_rest) = (glob, name);
    // What to go back to: the glob behind the last star, and the name from which it takes one more character.
    let mut star: Option<(&str, &str)> = None;
    loop {
        let (mut glob_chars, mut name_chars) = (glob_rest.chars(), name_rest.chars());
        match (glob_chars.next(), name_chars.next()) {
            (Some('*'), _) => {
                glob_rest = glob_chars.as_str();
                star = Some((glob_rest, name_rest));
                continue;
            }
            (None, None) => return true,
            (Some(wanted), Some(found)) if wanted == '?' || wanted == found => {
                (glob_rest, name_rest) = (glob_chars.as_str(), name_chars.as_str());
                continue;
            }
            _ => {}
        }
        let Some((behind, taken)) = star else { return false };
        let mut longer = taken.chars();
        if longer.next().is_none() {
            return false;
        }
        star = Some((behind, longer.as_str()));
        (glob_rest, name_rest) = (behind, longer.as_str());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_stand_for_any_characters() {
        let cases = [
            ("gpt-4o", "gpt-4o", true),
            ("gpt-4o", "gpt-4o-mini", false),
            ("gpt-4o*", "gpt-4o-mini", true),
            ("gpt-4o*", "gpt-4o", true),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("*-mini", "gpt-mini-x-mini", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("gpt-?", "gpt-5", true),
            ("gpt-?", "gpt-", false),
            ("?", "é", true),
            ("GPT*", "gpt", false),
            ("**a**", "bab", true),
        ];
        for (glob, name, expected) in cases {
            assert_eq!(matches(glob, name), expected, "{glob} {name}");
        }
    }

    /// The definition, without regard to time.
    fn model(glob: &[char], name: &[char]) -> bool {
        match glob.split_first() {
            None => name.is_empty(),
            Some(('*', rest)) => (0..=name.len()).any(|taken| model(rest, &name[taken..])),
            Some((wanted, rest)) => {
                name.split_first().is_some_and(|(found, name)| (*wanted == '?' || wanted == found) && model(rest, name))
            }
        }
    }

    proptest! {
        #[test]
        fn globs_match_as_defined(glob in "[ab*?é]{0,8}", name in "[abé]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(matches(&glob, &name), model(&chars(&glob), &chars(&name)));
        }
    }
}
