//! Rules that are sent with a merge. Their text is on disk: fields may be added, never renamed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::split::{elements, members};
use super::values::{ValueSet, read};
use super::{FIRST_WRITERS, MergeError, comma};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rules {
    #[serde(default)]
    pub merge_paths: Vec<Vec<String>>,
    #[serde(default)]
    pub array_delete: Vec<ArrayDelete>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ArrayDelete {
    pub path: Vec<String>,
    pub delete: Vec<Value>,
}

impl Rules {
    pub fn parse(text: &[u8]) -> Result<Rules, MergeError> {
        if text.is_empty() {
            return Ok(Rules::default());
        }
        serde_json::from_slice(text).map_err(|e| MergeError::Rules(e.to_string()))
    }

    /// Encodes the rules; empty if there is no rule.
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.merge_paths.is_empty() && self.array_delete.is_empty() {
            return Vec::new();
        }
        serde_json::to_vec(self).expect("strings and JSON values are written without fail")
    }

    /// The document with every `array_delete` carried out.
    pub fn without_deleted(&self, mut doc: Vec<u8>) -> Result<Vec<u8>, MergeError> {
        for item in &self.array_delete {
            let first_writers = item.path.first().is_none_or(|first| FIRST_WRITERS.contains(&first.as_str()));
            if first_writers {
                continue;
            }
            let Some((at, length)) = place_of(&doc, &item.path)? else {
                continue;
            };
            let shorter = item.shortened(&doc[at..at + length])?;
            doc.splice(at..at + length, shorter);
        }
        Ok(doc)
    }
}

impl ArrayDelete {
    fn shortened(&self, array: &[u8]) -> Result<Vec<u8>, MergeError> {
        let mut deleted = ValueSet::default();
        for value in &self.delete {
            deleted.insert(value.clone());
        }
        let mut out = Vec::with_capacity(array.len());
        out.push(b'[');
        for element in elements(array)? {
            if !deleted.contains(&read(element)?) {
                comma(&mut out);
                out.extend_from_slice(element);
            }
        }
        out.push(b']');
        Ok(out)
    }
}

/// Returns position and length of the array at `path` in the document; none if there is no array at the path.
fn place_of(doc: &[u8], path: &[String]) -> Result<Option<(usize, usize)>, MergeError> {
    let mut at = 0;
    let mut value = doc;
    for name in path {
        if value.first() != Some(&b'{') {
            return Ok(None);
        }
        let mut next = None;
        for member in members(value)? {
            if member.text()? == name.as_str() {
                next = Some(member);
            }
        }
        let Some(member) = next else {
            return Ok(None);
        };
        at += member.value_at;
        value = member.value;
    }
    Ok((value.first() == Some(&b'[')).then_some((at, value.len())))
}
