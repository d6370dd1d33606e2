//! Choice of paths for typed columns: paths that enough documents of a sample have, with short values of one kind.

use std::collections::HashMap;

use serde_json::Value;

use super::scalar::exact_float;
use super::shape::{FIELDS, Kind, TYPED_MAX, Typed};

/// Upper bound of the keys of a path, including its field's name.
const DEPTH_MAX: usize = 4;
/// Upper bound of the examined paths. Documents whose keys are data have an unlimited number.
const PATHS_MAX: usize = 8192;
/// Number of sampled documents per document that must have the path.
const ONE_IN: usize = 200;
/// Number of values of a path per value that may be of another kind.
const ODD_ONE_IN: usize = 100;
/// Upper bound of the mean length of texts in a typed column.
const TEXT_BYTES_MEAN_MAX: usize = 128;

/// Counts of a path's values by kind.
#[derive(Clone, Copy, Debug, Default)]
struct PathSample {
    bools: usize,
    ints: usize,
    /// Integers that no float can represent.
    wide: usize,
    floats: usize,
    texts: usize,
    text_bytes: usize,
    others: usize,
}

/// Sample of documents from which typed columns are chosen.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    docs: usize,
    paths: HashMap<Vec<String>, PathSample>,
}

impl Sample {
    /// Counts a document. Invalid documents count as documents without paths.
    pub fn look(&mut self, doc: &[u8]) {
        self.docs += 1;
        if let Ok(Value::Object(members)) = serde_json::from_slice(doc) {
            let mut path = Vec::with_capacity(DEPTH_MAX);
            for (name, value) in members.iter().filter(|(name, _)| FIELDS.contains(&name.as_str())) {
                path.push(name.clone());
                self.look_below(&mut path, value);
                path.pop();
            }
        }
    }

    fn look_below(&mut self, path: &mut Vec<String>, value: &Value) {
        if let Value::Object(members) = value
            && path.len() < DEPTH_MAX
        {
            for (key, value) in members {
                path.push(key.clone());
                self.look_below(path, value);
                path.pop();
            }
        }
        if path.len() > 1 && !value.is_null() {
            if let Some(seen) = self.paths.get_mut(path) {
                seen.count(value);
            } else if self.paths.len() < PATHS_MAX {
                self.paths.entry(path.clone()).or_default().count(value);
            }
        }
    }

    /// Returns the chosen paths, sorted; at most [`TYPED_MAX`], the most frequent ones.
    pub fn choose(&self) -> Vec<Typed> {
        let enough = self.docs.div_ceil(ONE_IN).max(2);
        let mut chosen: Vec<(usize, &Vec<String>, Kind)> = self
            .paths
            .iter()
            .filter(|(_, seen)| seen.all() >= enough)
            .filter_map(|(path, seen)| Some((seen.all(), path, seen.kind()?)))
            .collect();
        chosen.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        chosen.truncate(TYPED_MAX);
        chosen.sort_by_key(|(_, path, _)| *path);
        let typed = |(_, path, kind): (usize, &Vec<String>, Kind)| Typed {
            path: path.clone(),
            kind,
            odd: Vec::new(),
            useless: false,
        };
        chosen.into_iter().map(typed).collect()
    }
}

impl PathSample {
    fn count(&mut self, value: &Value) {
        match value {
            Value::Bool(_) => self.bools += 1,
            Value::Number(number) => match number.as_i64() {
                Some(int) => {
                    self.ints += 1;
                    self.wide += usize::from(exact_float(int).is_none());
                }
                None => self.floats += 1,
            },
            Value::String(text) => {
                self.texts += 1;
                self.text_bytes += text.len();
            }
            _ => self.others += 1,
        }
    }

    fn all(&self) -> usize {
        self.bools + self.ints + self.floats + self.texts + self.others
    }

    fn kind(&self) -> Option<Kind> {
        let nearly_all = |count: usize| count > 0 && (self.all() - count) * ODD_ONE_IN <= self.all();
        if nearly_all(self.ints + self.floats) {
            return Some(if self.floats == 0 || self.wide > self.floats { Kind::Int } else { Kind::Float });
        }
        if nearly_all(self.texts) {
            return (self.text_bytes <= TEXT_BYTES_MEAN_MAX * self.texts).then_some(Kind::Text);
        }
        nearly_all(self.bools).then_some(Kind::Bool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(docs: &[String]) -> Vec<(String, Kind)> {
        let mut sample = Sample::default();
        docs.iter().for_each(|doc| sample.look(doc.as_bytes()));
        sample.choose().into_iter().map(|typed| (typed.path.join("."), typed.kind)).collect()
    }

    #[test]
    fn paths_of_one_kind_that_are_frequent_and_short_are_chosen() {
        let docs: Vec<String> = (0..400)
            .map(|nth| {
                let user = if nth % 100 == 7 { nth.to_string() } else { format!("\"u{nth}\"") };
                let mixed = ["1", "true", "\"x\"", "null"][nth % 4];
                let (score, rare) = (["1", "0", "0.5"][nth % 3], if nth == 5 { r#","rare":1"# } else { "" });
                format!(
                    r#"{{"id":"{nth}","created":"t","input":{{"messages":[{nth}],"long":"{}"}},"metadata":{{"user":{user},"mixed":{mixed},
                    "deep":{{"er":{{"est":{{"too":1}},"flag":true}}}}{rare}}},"scores":{{"s":{score}}},"metrics":{{"n":{nth}}},"own":{{"a":1}}}}"#,
                    "y".repeat(200)
                )
            })
            .collect();
        let expected = [
            ("metadata.deep.er.flag", Kind::Bool),
            ("metadata.user", Kind::Text),
            ("metrics.n", Kind::Int),
            ("scores.s", Kind::Float),
        ];
        assert_eq!(chosen(&docs), expected.map(|(path, kind)| (path.to_owned(), kind)));
    }

    #[test]
    fn keys_that_are_data_neither_fill_memory_nor_the_segment() {
        let docs: Vec<String> = (0..20)
            .map(|nth| {
                let keys: Vec<String> = (0..1000).map(|key| format!("\"k{}\":1", nth * 500 + key)).collect();
                format!(r#"{{"metadata":{{{}}}}}"#, keys.join(","))
            })
            .collect();
        assert_eq!(chosen(&docs).len(), TYPED_MAX);
        assert_eq!(chosen(&["{".to_owned(), "[]".to_owned(), String::new()]), []);
    }
}
