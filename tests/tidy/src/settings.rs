//! Environment variables of the program, from its sources.

use std::collections::BTreeSet;

use crate::workspace::Source;

const PREFIX: &str = "ASSAY_";
const ROOT: &str = "Config";

/// Returns every setting, from the fields of `Config` and their types, and the variables that the program reads by
/// name.
pub fn variables(sources: &[Source]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let texts: Vec<&str> = sources.iter().map(|source| source.text.as_str()).collect();
    below(&texts, ROOT, PREFIX, &mut found);
    for text in texts {
        for (name, value) in text.lines().filter_map(constant) {
            if name.contains("VARIABLE") {
                found.insert(value.to_owned());
            }
        }
    }
    found
}

/// `const NAME: &str = "VALUE";`
fn constant(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once("const ")?.1.split_once(": &str = \"")?;
    Some((name, value.strip_suffix("\";")?)).filter(|(_, value)| value.starts_with(PREFIX))
}

fn below(texts: &[&str], kind: &str, prefix: &str, found: &mut BTreeSet<String>) {
    for (name, kind) in texts.iter().find_map(|text| fields(text, kind)).unwrap_or_default() {
        let path = format!("{prefix}{}", name.to_uppercase());
        let kind = kind.strip_prefix("Option<").and_then(|rest| rest.strip_suffix('>')).unwrap_or(kind);
        match texts.iter().any(|text| fields(text, kind).is_some()) {
            true => below(texts, kind, &format!("{path}_"), found),
            false => drop(found.insert(path)),
        }
    }
}

/// Setting, as its field describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Such as `http.listen`.
    pub name: String,
    pub about: String,
}

/// Returns every setting, in the order of the fields of `Config` and of their types.
pub fn settings(sources: &[Source]) -> Vec<Setting> {
    let texts: Vec<&str> = sources.iter().map(|source| source.text.as_str()).collect();
    let mut found = Vec::new();
    described(&texts, ROOT, "", &mut found);
    found
}

fn described(texts: &[&str], kind: &str, prefix: &str, found: &mut Vec<Setting>) {
    let Some(text) = texts.iter().find(|text| fields(text, kind).is_some()) else { return };
    let body = text.split_once(&format!("\npub struct {kind} {{\n")).map_or("", |(_, body)| body);
    for (name, kind) in fields(text, kind).unwrap_or_default() {
        let path = format!("{prefix}{name}");
        let inner = kind.strip_prefix("Option<").and_then(|rest| rest.strip_suffix('>')).unwrap_or(kind);
        match texts.iter().any(|text| fields(text, inner).is_some()) {
            true => described(texts, inner, &format!("{path}."), found),
            false => {
                let about = doc_comment(body, &format!("    pub {name}: {kind},"));
                found.push(Setting { name: path, about });
            }
        }
    }
}

/// Doc comment above a line, in one line.
fn doc_comment(text: &str, line: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = lines.iter().position(|found| *found == line) else { return String::new() };
    let above = lines[..at].iter().rev().map(|line| line.trim_start());
    let above = above.take_while(|line| line.starts_with("///") || line.starts_with("#["));
    let mut comment: Vec<&str> = above.filter_map(|line| line.strip_prefix("///")).map(str::trim).collect();
    comment.reverse();
    comment.join(" ")
}

/// The public fields of a struct, each with its type; none where it is not in this text.
fn fields<'a>(text: &'a str, name: &str) -> Option<Vec<(&'a str, &'a str)>> {
    let body = text.split_once(&format!("\npub struct {name} {{\n"))?.1.split("\n}").next()?;
    let field = |line: &'a str| line.strip_prefix("    pub ")?.strip_suffix(',')?.split_once(": ");
    Some(body.lines().filter_map(field).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_constants_are_variables() {
        let text = "\npub struct Config {\n    /// X.\n    pub http: Http,\n}\n\npub struct Http {\n    pub url: Option<String>,\n    \
            pub tls: Option<Tls>,\n}\n\npub struct Tls {\n    pub key: PathBuf,\n}\nconst KEY_VARIABLE: &str = \"ASSAY_KEY\";\n";
        let found = variables(&[Source { path: "a.rs".into(), text: text.into() }]);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["ASSAY_HTTP_TLS_KEY", "ASSAY_HTTP_URL", "ASSAY_KEY"]);
    }

    #[test]
    fn a_setting_is_described_by_its_doc_comment() {
        let text = "\npub struct Config {\n    pub http: Http,\n}\n\npub struct Http {\n    /// Address\n    /// and port.\n    \
            #[serde(default)]\n    pub listen: String,\n}\n";
        let found = settings(&[Source { path: "a.rs".into(), text: text.into() }]);
        assert_eq!(found, [Setting { name: "http.listen".into(), about: "Address and port.".into() }]);
    }
}
