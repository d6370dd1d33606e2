//! Parser of the YAML subset in `docker/`: mappings and lists of texts, indented by two spaces, no tabs; flow form of
//! one level on one line; anchors of mappings, and merges of them.

use std::collections::BTreeMap;

/// State of the parser.
#[derive(Debug, Default)]
struct Reader {
    said: BTreeMap<String, String>,
    /// Merged values by path, with the merging key: the key's own value has precedence.
    merged: BTreeMap<String, (String, String)>,
    /// Position of each anchor.
    anchors: BTreeMap<String, String>,
    /// Mappings that lines may still belong to, with their level.
    open: Vec<(usize, String)>,
    items: BTreeMap<String, usize>,
}

/// Values by their path (`services.assay.image`, items as `services.assay.ports.0`).
pub fn yaml(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(text.lines()) {
        reader.line(line).map_err(|problem| format!("line {number}: {problem}"))?;
    }
    Ok(reader.below(""))
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let content = line.trim_start_matches(' ');
        let level = line.len() - content.len();
        if content.is_empty() || content.starts_with('#') {
            return Ok(());
        }
        if content.starts_with('\t') || level % 2 == 1 {
            return Err("two blanks a level, no tabs".into());
        }
        self.open.retain(|(above, _)| *above < level);
        let parent: String = self.open.iter().map(|(_, name)| format!("{name}.")).collect();
        let (name, value) = match content.strip_prefix("- ") {
            Some(item) => {
                let count = self.items.entry(parent.clone()).or_default();
                *count += 1;
                ((*count - 1).to_string(), item)
            }
            None => match content.split_once(':') {
                Some((name, value)) if value.is_empty() || value.starts_with(' ') => (name.to_owned(), value.trim()),
                _ => return Err(format!("`{content}` is neither `name: value` nor `- item`")),
            },
        };
        if name == "<<" {
            return self.merge(&parent, value);
        }
        let path = format!("{parent}{name}");
        if let Some(anchor) = value.strip_prefix('&') {
            self.anchors.insert(anchor.to_owned(), path);
            self.open.push((level, name));
            return Ok(());
        }
        if value.is_empty() {
            self.open.push((level, name));
            return Ok(());
        }
        for (path, value) in flow(&path, value)? {
            if self.said.contains_key(&path) {
                return Err(format!("{path} is said twice"));
            }
            self.said.insert(path, value);
        }
        Ok(())
    }

    fn merge(&mut self, parent: &str, value: &str) -> Result<(), String> {
        let anchor = value.strip_prefix('*').and_then(|name| self.anchors.get(name));
        let from = anchor.ok_or_else(|| format!("`{value}` is no anchor above"))?;
        for (path, value) in self.below(&format!("{from}.")) {
            let key = path.split('.').next().unwrap_or_default();
            self.merged.insert(format!("{parent}{path}"), (format!("{parent}{key}"), value));
        }
        Ok(())
    }

    /// Returns the values at and below a path, merges included, without that path.
    fn below(&self, prefix: &str) -> BTreeMap<String, String> {
        let is_said = |key: &str| self.said.keys().any(|path| path == key || path.starts_with(&format!("{key}.")));
        let merged = self.merged.iter().filter(|(_, (key, _))| !is_said(key)).map(|(path, (_, value))| (path, value));
        let all = merged.chain(&self.said);
        all.filter_map(|(path, value)| Some((path.strip_prefix(prefix)?.to_owned(), value.clone()))).collect()
    }
}

/// `["a", "b"]` and `{ a: b }`, or the text itself.
fn flow(path: &str, value: &str) -> Result<Vec<(String, String)>, String> {
    let inside =
        |open: char, close: char| value.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)).map(str::trim);
    if let Some(items) = inside('[', ']') {
        let items = items.split(',').enumerate();
        return items.map(|(place, item)| Ok((format!("{path}.{place}"), unquoted(item)?))).collect();
    }
    if let Some(pairs) = inside('{', '}').filter(|pairs| !pairs.is_empty()) {
        let pair = |pair: &str| {
            let (name, value) = pair.split_once(':').ok_or_else(|| format!("`{pair}` is no `name: value`"))?;
            Ok((format!("{path}.{}", name.trim()), unquoted(value)?))
        };
        return pairs.split(',').map(pair).collect();
    }
    Ok(vec![(path.to_owned(), unquoted(value)?)])
}

fn unquoted(text: &str) -> Result<String, String> {
    let text = text.trim();
    match text.matches('"').count() {
        0 => Ok(text.to_owned()),
        2 if text.starts_with('"') && text.ends_with('"') => Ok(text.trim_matches('"').to_owned()),
        _ => Err(format!("`{text}` is quoted in another way than these files are")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let expected = expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(yaml(text), Ok(expected), "{text}");
    }

    #[test]
    fn yaml_of_our_kind_is_read_and_other_is_refused() {
        check(
            "a:\n  b: \"1\"\n  c:\n    - x\n    - y: z\nd: {}\n",
            &[("a.b", "1"), ("a.c.0", "x"), ("a.c.1", "y: z"), ("d", "{}")],
        );
        check("a: [\"x\", \"y:1\"]\nb: { c: d }\n", &[("a.0", "x"), ("a.1", "y:1"), ("b.c", "d")]);
        for bad in ["a:\n\tb: 1\n", "a:\n   b: 1\n", "a b\n", "a: 1\na: 2\n", "a: [\"x,y\"]\n", "a:\n  <<: *b\n"] {
            assert!(yaml(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_is_said_comes_before_what_is_merged() {
        let text = "x: &x\n  a: 1\n  b:\n    - 2\n  c: 3\ny: &y\n  <<: *x\n  b:\n    e: 4\nz:\n  <<: *y\n  a: 5\n";
        let all = yaml(text).expect("reads");
        let of = |name: &str| {
            let own = all.iter().filter_map(|(path, value)| Some((path.strip_prefix(name)?, value.as_str())));
            own.collect::<Vec<_>>()
        };
        assert_eq!(of("y."), [("a", "1"), ("b.e", "4"), ("c", "3")]);
        assert_eq!(of("z."), [("a", "5"), ("b.e", "4"), ("c", "3")]);
    }
}
