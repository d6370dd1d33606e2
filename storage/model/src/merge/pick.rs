//! Extraction of values at paths within documents: all paths in one walk, which skips subtrees without a path and ends
//! early once all values were found.

use super::MergeError;
use super::split::{Cursor, elements};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    Key(String),
    /// Index into an array, from the end if negative.
    Index(i64),
}

/// Paths that are looked for together.
#[derive(Clone, Debug, Default)]
pub struct Picker {
    root: Level,
    paths: usize,
}

/// Paths wanted at one level: the value itself and paths below it.
#[derive(Clone, Debug, Default)]
struct Level {
    /// The paths that end here.
    ends: Vec<usize>,
    keys: Vec<(String, Level)>,
    indexes: Vec<(i64, Level)>,
}

impl Picker {
    pub fn new<'p>(paths: impl IntoIterator<Item = &'p [Step]>) -> Picker {
        let mut picker = Picker::default();
        for path in paths {
            let mut level = &mut picker.root;
            for step in path {
                level = match step {
                    Step::Key(key) => below(&mut level.keys, key),
                    Step::Index(index) => below(&mut level.indexes, index),
                };
            }
            level.ends.push(picker.paths);
            picker.paths += 1;
        }
        picker
    }

    /// Returns the number of paths, which is the number of values in a result.
    pub fn paths(&self) -> usize {
        self.paths
    }

    /// The JSON text at each path of a stored document; none where there is nothing. `found` has a place for each path.
    pub fn pick<'d>(&self, doc: &'d [u8], found: &mut [Option<&'d [u8]>]) -> Result<(), MergeError> {
        found.fill(None);
        self.root.look(doc, found)
    }
}

fn below<'l, K: Clone + PartialEq>(levels: &'l mut Vec<(K, Level)>, key: &K) -> &'l mut Level {
    let known = levels.iter().position(|(known, _)| known == key);
    let at = known.unwrap_or_else(|| {
        levels.push((key.clone(), Level::default()));
        levels.len() - 1
    });
    &mut levels[at].1
}

impl Level {
    fn look<'d>(&self, value: &'d [u8], found: &mut [Option<&'d [u8]>]) -> Result<(), MergeError> {
        for end in &self.ends {
            found[*end] = Some(value);
        }
        match value.first() {
            Some(b'{') if !self.keys.is_empty() => self.look_into_object(value, found),
            Some(b'[') if !self.indexes.is_empty() => self.look_into_array(value, found),
            _ => Ok(()),
        }
    }

    fn look_into_object<'d>(&self, object: &'d [u8], found: &mut [Option<&'d [u8]>]) -> Result<(), MergeError> {
        let mut cursor = Cursor::opened(object, b'{', "no object")?;
        let mut missing = self.keys.len();
        while missing > 0
            && let Some(member) = cursor.next_member()?
        {
            let level = match member.plain_key() {
                Some(key) => self.keys.iter().find(|(wanted, _)| wanted.as_bytes() == key),
                None => {
                    let key = member.text()?;
                    self.keys.iter().find(|(wanted, _)| *wanted == key)
                }
            };
            if let Some((_, level)) = level {
                level.look(member.value, found)?;
                missing -= 1;
            }
        }
        Ok(())
    }

    fn look_into_array<'d>(&self, array: &'d [u8], found: &mut [Option<&'d [u8]>]) -> Result<(), MergeError> {
        let elements = elements(array)?;
        for (index, level) in &self.indexes {
            let at = if *index < 0 { index.checked_add_unsigned(elements.len() as u64) } else { Some(*index) };
            let element = at.and_then(|at| usize::try_from(at).ok()).and_then(|at| elements.get(at));
            if let Some(element) = element {
                level.look(element, found)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn path(text: &str) -> Vec<Step> {
        let step = |step: &str| step.parse().map_or_else(|_| Step::Key(step.into()), Step::Index);
        text.split('.').filter(|step| !step.is_empty()).map(step).collect()
    }

    /// The same by way of a tree.
    fn by_tree<'v>(value: &'v Value, path: &[Step]) -> Option<&'v Value> {
        path.iter().try_fold(value, |value, step| match step {
            Step::Key(key) => value.as_object()?.get(key),
            Step::Index(index) => {
                let elements = value.as_array()?;
                let at = if *index < 0 { index + elements.len() as i64 } else { *index };
                elements.get(usize::try_from(at).ok()?)
            }
        })
    }

    #[test]
    fn many_paths_find_what_each_would_find_alone() {
        let docs = [
            r#"{"id":"a","metadata":{"model":"gpt","n":5,"deep":{"x":[1,{"y":null}]}},"tags":["p","q"],"scores":{}}"#,
            r#"{"metadata":"text","tags":[],"sc\u006fres":{"a \"b\"":0.5},"deep":[[1,2],[3]]}"#,
            "{}",
            r#"{"tags":null,"metadata":{"model":{"model":1},"":2}}"#,
        ];
        let texts = [
            "",
            "id",
            "metadata",
            "metadata.model",
            "metadata.model.model",
            "metadata.deep.x.1.y",
            "metadata.deep.x.-1.y",
            "metadata.deep.x.-3",
            "tags.0",
            "tags.-1",
            "tags.2",
            "scores",
            "scores.a \"b\"",
            "deep.0.1",
            "deep.-1.0",
            "metadata.n",
            "id",
        ];
        let paths: Vec<Vec<Step>> = texts.iter().map(|text| path(text)).collect();
        let picker = Picker::new(paths.iter().map(Vec::as_slice));
        assert_eq!(picker.paths(), paths.len());
        for doc in docs {
            let tree: Value = serde_json::from_str(doc).expect("JSON");
            let mut found = vec![Some(&b"left over"[..]); paths.len()];
            picker.pick(doc.as_bytes(), &mut found).expect("a document");
            for (path, found) in paths.iter().zip(found) {
                let found = found.map(|text| serde_json::from_slice::<Value>(text).expect("JSON"));
                assert_eq!(found.as_ref(), by_tree(&tree, path), "{path:?} in {doc}");
            }
        }
    }

    #[test]
    fn what_is_cut_off_is_an_error_where_it_is_walked() {
        let picker = Picker::new([path("a.b").as_slice()]);
        let mut found = [None];
        assert!(picker.pick(br#"{"a":{"b":1"#, &mut found).is_err());
        assert!(picker.pick(br#"{"c""#, &mut found).is_err());
    }
}
