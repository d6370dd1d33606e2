//! Formats on disk: the constants of their versions, and data written in each. Data of a release stays in
//! `tests/compat/releases`, where every later program is tested with it.

use crate::workspace::Source;

/// Areas that encode data on disk.
const AREAS: [&str; 2] = ["storage/", "cluster/"];
/// Endings of the names of constants that change with a format.
const ENDINGS: [&str; 3] = ["VERSION", "FORMAT", "MAGIC"];

/// `path NAME value` of every such constant, in the order of paths.
pub fn constants(sources: &[Source]) -> Vec<String> {
    let encoders = sources
        .iter()
        .filter(|source| AREAS.iter().any(|area| source.path.starts_with(area)) && source.path.contains("/src/"));
    let mut found: Vec<String> = encoders
        .flat_map(|source| {
            let constants = source.text.lines().filter_map(constant);
            constants.map(|(name, value)| format!("{} {name} {value}", source.path))
        })
        .collect();
    found.sort();
    found
}

/// Returns name and value of a constant defined in one line.
fn constant(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
    let (name, rest) = line.strip_prefix("const ")?.split_once(':')?;
    let value = rest.split_once(" = ")?.1.trim_end_matches(';');
    ENDINGS.iter().any(|ending| name.ends_with(ending)).then_some((name, value))
}

/// Returns the text of the constants, as stored beside the data of a release.
pub fn text(constants: &[String]) -> String {
    let remark = "# The formats in which this was written: constants of the code, where they stood, and their values.";
    format!("{remark}\n{}\n", constants.join("\n"))
}

/// The newest of the releases, which are versions like 0.10.2.
pub fn newest(releases: &[String]) -> Option<&String> {
    let number = |part: &str| part.parse::<u64>().unwrap_or_default();
    releases.iter().max_by_key(|version| version.split('.').map(number).collect::<Vec<_>>())
}

/// Returns constants that differ between the code and the newest release.
pub fn complaints(code: &[String], release: &str, text: &str) -> Vec<String> {
    let written: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let new = code.iter().filter(|constant| !written.contains(&constant.as_str())).map(|constant| {
        format!("`{constant}`: no data of that in tests/compat/releases; tests/README.md says how it is written")
    });
    let old = written.iter().filter(|constant| !code.iter().any(|known| known == *constant)).map(|constant| {
        format!(
            "`{constant}`: {release} was written with it; where it only moved, say its new place in its formats.txt"
        )
    });
    new.chain(old).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    #[test]
    fn constants_that_name_a_format_are_found_where_things_are_encoded() {
        let text = "//! X.\nconst VERSION: u8 = 1;\n    pub(crate) const MAGIC: &[u8; 4] = b\"ABCD\";\n\
            pub const ROW_FORMAT: u16 = 3;\nconst VERSION_BYTES: usize = 2;\n// const OLD_VERSION: u8 = 0;\nlet x = VERSION;\n";
        let found = constants(&[
            source("storage/log/src/frame.rs", text),
            source("storage/log/tests/frame.rs", text),
            source("node/src/main.rs", text),
        ]);
        assert_eq!(
            found,
            [
                "storage/log/src/frame.rs MAGIC b\"ABCD\"",
                "storage/log/src/frame.rs ROW_FORMAT 3",
                "storage/log/src/frame.rs VERSION 1",
            ]
        );
    }

    #[test]
    fn a_format_without_data_and_one_that_is_gone_are_named() {
        let [one, two, other] = ["a.rs VERSION 1", "a.rs VERSION 2", "b.rs VERSION 1"].map(str::to_owned);
        let check = |code: &[&String]| {
            let code: Vec<String> = code.iter().copied().cloned().collect();
            complaints(&code, "0.1.0", &text(std::slice::from_ref(&one))).len()
        };
        assert_eq!(check(&[&one]), 0);
        assert_eq!(check(&[&two]), 2, "changed: the new is without data, the old is gone");
        assert_eq!(check(&[&one, &other]), 1, "new");
        assert_eq!(check(&[]), 1, "gone");
    }

    #[test]
    fn the_newest_release_is_so_by_numbers() {
        let releases = ["0.9.0", "0.10.0", "0.2.11"].map(str::to_owned);
        assert_eq!(newest(&releases).map(String::as_str), Some("0.10.0"));
        assert_eq!(newest(&[]), None);
    }
}
