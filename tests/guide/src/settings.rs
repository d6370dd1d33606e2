//! The settings reference, made of the doc comments of the settings and of what `assay config` prints.

use std::collections::BTreeMap;
use std::fmt::Write;

use assay_tests_tidy::settings::Setting;
use toml::{Table, Value};

/// Words with which a doc comment describes a default that depends on the machine or on other settings.
const COMPUTED: [&str; 2] = ["The default is ", "The default follows "];

/// Returns the reference in Markdown: one table for each section, in their order in the sources.
pub fn reference(settings: &[Setting], printed: &Table) -> String {
    let mut sections: Vec<(&str, String)> = Vec::new();
    let defaults = flattened(printed);
    for setting in settings {
        let (section, _) = setting.name.split_once('.').unwrap_or((setting.name.as_str(), ""));
        if sections.last().is_none_or(|(last, _)| *last != section) {
            sections.push((section, "| setting | default | meaning |\n|---|---|---|\n".to_owned()));
        }
        // A default that depends on the machine is described in words.
        let default = match defaults.get(&setting.name) {
            _ if COMPUTED.iter().any(|words| setting.about.contains(words)) => "computed".to_owned(),
            Some(value) => format!("`{value}`"),
            None => "none".to_owned(),
        };
        if let Some((_, table)) = sections.last_mut() {
            let about = setting.about.replace('|', "\\|");
            writeln!(table, "| `{}` | {default} | {about} |", setting.name).expect("a text takes all");
        }
    }
    let written = sections.into_iter().map(|(section, table)| format!("### `[{section}]`\n\n{table}"));
    format!("\n{}\n", written.collect::<Vec<_>>().join("\n"))
}

/// Values by their names, such as `http.listen`.
fn flattened(table: &Table) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (name, value) in table {
        match value {
            Value::Table(below) => {
                all.extend(flattened(below).into_iter().map(|(rest, value)| (format!("{name}.{rest}"), value)));
            }
            value => drop(all.insert(name.clone(), value.to_string())),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_a_row_with_its_default() {
        let setting = |name: &str| Setting { name: name.into(), about: "Address.".into() };
        let printed = "[http]\nlisten = \"127.0.0.1:8000\"\n".parse().expect("TOML");
        let text = reference(&[setting("http.listen"), setting("http.public_url")], &printed);
        assert!(text.contains("### `[http]`"), "{text}");
        assert!(text.contains("| `http.listen` | `\"127.0.0.1:8000\"` | Address. |"), "{text}");
        assert!(text.contains("| `http.public_url` | none | Address. |"), "{text}");
    }
}
