//! Names of tools for models: `<server>_<tool>`, valid and unique.

use std::collections::HashSet;

use crate::spec::TOOL_NAME_CHARS_MAX;

/// Returns a name for each tool of a server, in their order. A number behind it tells those apart that are the same after
/// cleaning and cutting; so the names depend on the list alone.
pub fn tool_names<'t>(server: &str, tools: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let mut taken = HashSet::new();
    tools.into_iter().map(|tool| free_name(&format!("{server}_{tool}"), &mut taken)).collect()
}

fn free_name(wanted: &str, taken: &mut HashSet<String>) -> String {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let valid = wanted.chars().map(|c| if is_valid(c) { c } else { '_' });
    let clean: String = valid.take(TOOL_NAME_CHARS_MAX).collect();
    let numbered = (2..=taken.len() + 2).map(|number| {
        let suffix = format!("_{number}");
        // all characters are ASCII by now
        format!("{}{suffix}", &clean[..clean.len().min(TOOL_NAME_CHARS_MAX - suffix.len())])
    });
    let mut names = std::iter::once(clean.clone()).chain(numbered);
    let name = names.find(|name| !taken.contains(name)).expect("there are more names than are taken");
    taken.insert(name.clone());
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_those_of_server_and_tool_cleaned_and_cut() {
        let long = "t".repeat(70);
        let cut = format!("my_docs_{}", "t".repeat(56));
        let cut_again = format!("my_docs_{}_2", "t".repeat(54));
        let names = tool_names("my docs", ["search", "a.b", "a b", "", &long, &long, "ü"]);
        let expected = ["my_docs_search", "my_docs_a_b", "my_docs_a_b_2", "my_docs_", &cut, &cut_again, "my_docs__"];
        assert_eq!(names, expected);
    }

    proptest! {
        #[test]
        fn names_are_valid_unique_and_depend_on_the_list_alone(
            server in ".{0,80}",
            tools in prop::collection::vec(prop_oneof!["[a.b ]{0,3}", ".{0,80}"], 0..20),
        ) {
            let names = tool_names(&server, tools.iter().map(String::as_str));
            prop_assert_eq!(names.len(), tools.len());
            let unique: HashSet<_> = names.iter().collect();
            prop_assert_eq!(unique.len(), names.len());
            for name in &names {
                prop_assert!((1..=TOOL_NAME_CHARS_MAX).contains(&name.len()));
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
            }
            prop_assert_eq!(names, tool_names(&server, tools.iter().map(String::as_str)));
        }
    }
}
