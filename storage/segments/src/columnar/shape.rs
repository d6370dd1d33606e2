//! Columns of a columnar segment in addition to the common ones.
//!
//! These are the text of each known field, the layout of each document, and typed columns for frequent paths.
//!
//! Fields are in the order of [`FIELDS`]. A newer program may write more, so the file lists its fields. Typed columns
//! duplicate values of the fields' texts: they add speed, not content. A value of another kind than its column's is
//! left out, and its row is listed as odd. A column with too many of them is marked as unusable.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use serde::{Deserialize, Serialize};

use crate::columns;

/// Fields of rows, except those stored in other columns.
pub(crate) const FIELDS: [&str; 22] = [
    "input",
    "output",
    "expected",
    "error",
    "scores",
    "metadata",
    "metrics",
    "tags",
    "context",
    "span_attributes",
    "span_parents",
    "origin",
    "facets",
    "classifications",
    "comment",
    "name",
    "slug",
    "description",
    "function_type",
    "prompt_data",
    "function_data",
    "function_schema",
];

/// Fields without stored texts: other columns of the row hold the same value.
pub(crate) const SAID: [&str; 5] = ["id", "created", "span_id", "root_span_id", "is_root"];

/// Upper bound of the layouts of one segment. A document beyond it is stored whole.
pub(crate) const LAYOUTS_MAX: usize = 4096;
/// Upper bound of the typed columns of one segment.
pub const TYPED_MAX: usize = 128;
/// Upper bound of the rows that a typed column may leave out and list.
pub const ODD_ROWS_MAX: usize = 1024;
/// Metadata key of the file under which the shape is stored.
pub(crate) const SHAPE_KEY: &str = "assay.shape";

/// Kind of the values of a typed column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Bool,
    /// Integers that fit 64 bits.
    Int,
    /// Numbers, and integers of at most 53 bits, which floats represent exactly.
    Float,
    Text,
}

impl Kind {
    pub fn data_type(self) -> DataType {
        match self {
            Kind::Bool => DataType::Boolean,
            Kind::Int => DataType::Int64,
            Kind::Float => DataType::Float64,
            Kind::Text => DataType::Utf8,
        }
    }
}

/// Path of keys whose values have their own column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Typed {
    /// Keys of the path; the first one is a field.
    pub path: Vec<String>,
    pub kind: Kind,
    /// Rows whose value is of another kind, ascending; the column has null for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub odd: Vec<u32>,
    /// Flag of a column with more odd rows than listed, which must not be used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub useless: bool,
}

/// Shape, as stored in the file's metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape {
    pub fields: Vec<String>,
    /// Positions in `fields` of those that no document has, ascending. Their columns are empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<u8>,
    /// Number of documents that are stored whole.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub whole: u32,
    /// Fields of a document in order: a position in [`SAID`], or after those one in `fields`.
    pub layouts: Vec<Vec<u8>>,
    pub typed: Vec<Typed>,
}

impl Shape {
    /// Creates a shape with the fields known to this program.
    pub fn new(typed: Vec<Typed>) -> Shape {
        let fields = FIELDS.map(str::to_owned).to_vec();
        let absent = (0..fields.len() as u8).collect();
        Shape { fields, absent, whole: 0, layouts: Vec::new(), typed }
    }

    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers always encode")
    }

    /// Decodes a shape. Returns `None` if it is invalid.
    pub fn decode(text: &str, rows: u32) -> Option<Shape> {
        let shape: Shape = serde_json::from_str(text).ok()?;
        let slots = SAID.len() + shape.fields.len();
        let sound = slots <= usize::from(u8::MAX)
            && shape.layouts.len() <= LAYOUTS_MAX
            && shape.typed.len() <= TYPED_MAX
            && shape.absent.is_sorted_by(|a, b| a < b)
            && shape.layouts.iter().flatten().all(|slot| {
                let field = usize::from(*slot).checked_sub(SAID.len());
                usize::from(*slot) < slots && field.is_none_or(|field| shape.has(field))
            })
            && shape.typed.iter().all(|typed| {
                typed.path.len() > 1
                    && shape.fields.contains(&typed.path[0])
                    && typed.odd.len() <= ODD_ROWS_MAX
                    && typed.odd.is_sorted_by(|a, b| a < b)
                    && typed.odd.last().is_none_or(|last| *last < rows)
            });
        sound.then_some(shape)
    }

    /// Returns the field name at a slot of a layout.
    pub fn name(&self, slot: u8) -> &str {
        let slot = usize::from(slot);
        SAID.get(slot).copied().unwrap_or_else(|| &self.fields[slot - SAID.len()])
    }

    /// Returns whether any document has the field.
    pub fn has(&self, field: usize) -> bool {
        u8::try_from(field).is_ok_and(|field| self.absent.binary_search(&field).is_err())
    }

    /// Returns the columns after those that every segment has.
    pub fn columns(&self) -> Vec<FieldRef> {
        let nullable = |name: &str, kind| Arc::new(Field::new(name, kind, true));
        let layout = Arc::new(Field::new("layout", DataType::UInt16, false));
        let fields = self.fields.iter().map(|field| nullable(&format!("field {field}"), DataType::Binary));
        let typed = self.typed.iter().map(|typed| nullable(&column_name(&typed.path), typed.kind.data_type()));
        std::iter::once(layout).chain(fields).chain(typed).collect()
    }

    /// Returns the position of the layout column in the schema.
    pub fn layout_at(&self) -> usize {
        columns::EVERYWHERE
    }

    pub fn field_at(&self, field: usize) -> usize {
        columns::EVERYWHERE + 1 + field
    }

    /// Returns the positions of the columns from which documents are assembled.
    pub fn parts_at(&self) -> impl Iterator<Item = usize> {
        let fields = (0..self.fields.len()).filter(|field| self.has(*field)).map(|field| self.field_at(field));
        std::iter::once(self.layout_at()).chain(fields)
    }

    pub fn typed_at(&self, typed: usize) -> usize {
        columns::EVERYWHERE + 1 + self.fields.len() + typed
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Returns the column name of a path, which is unique for any keys.
fn column_name(path: &[String]) -> String {
    let keys = serde_json::to_string(path).expect("texts always encode");
    format!("path {keys}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(path: &[&str], kind: Kind) -> Typed {
        Typed { path: path.iter().map(|key| (*key).to_owned()).collect(), kind, odd: Vec::new(), useless: false }
    }

    #[test]
    fn a_shape_keeps_its_text() {
        let mut shape = Shape::new(vec![typed(&["metadata", "a.b"], Kind::Text), typed(&["scores", "x"], Kind::Float)]);
        shape.fields.truncate(6);
        shape.absent = vec![1, 3];
        shape.whole = 2;
        shape.layouts = vec![vec![], vec![0, 1, 5, 10]];
        shape.typed[1].odd = vec![3, 9];
        shape.typed[0].useless = true;
        let golden = concat!(
            r#"{"fields":["input","output","expected","error","scores","metadata"],"absent":[1,3],"whole":2,"layouts":[[],[0,1,5,10]],"#,
            r#""typed":[{"path":["metadata","a.b"],"kind":"text","useless":true},"#,
            r#"{"path":["scores","x"],"kind":"float","odd":[3,9]}]}"#
        );
        assert_eq!(shape.encode(), golden);
        assert_eq!(Shape::decode(golden, 10), Some(shape.clone()));
        assert_eq!((shape.name(1), shape.name(5), shape.name(10)), ("created", "input", "metadata"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let whole = |fields: &str, layouts: &str, typed: &str| {
            Shape::decode(&format!(r#"{{"fields":{fields},"layouts":{layouts},"typed":{typed}}}"#), 10).is_some()
        };
        assert!(whole(r#"["input"]"#, "[[5]]", r#"[{"path":["input","a"],"kind":"int","odd":[1,9]}]"#));
        assert!(!whole(r#"["input"]"#, "[[6]]", "[]"));
        assert!(!whole(r#"["input"]"#, "[]", r#"[{"path":["output","a"],"kind":"int"}]"#));
        assert!(!whole(r#"["input"]"#, "[]", r#"[{"path":["input"],"kind":"int"}]"#));
        assert!(!whole(r#"["input"]"#, "[]", r#"[{"path":["input","a"],"kind":"int","odd":[1,10]}]"#));
        assert!(!whole(r#"["input"]"#, "[]", r#"[{"path":["input","a"],"kind":"int","odd":[2,1]}]"#));
        assert!(!whole(r#"["input"]"#, "[]", r#"[{"path":["input","a"],"kind":"date"}]"#));
        assert!(Shape::decode(r#"{"fields":["input"],"absent":[0],"layouts":[[0]],"typed":[]}"#, 1).is_some());
        assert!(Shape::decode(r#"{"fields":["input"],"absent":[0],"layouts":[[5]],"typed":[]}"#, 1).is_none());
        assert_eq!(Shape::decode("{", 0), None);
    }

    #[test]
    fn each_path_has_a_name_of_its_own() {
        let name = |path: &[&str]| column_name(&path.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
        assert_eq!(name(&["metadata", "model"]), r#"path ["metadata","model"]"#);
        assert_ne!(name(&["a", "b.c"]), name(&["a", "b", "c"]));
        assert_ne!(name(&["a\",\"b"]), name(&["a", "b"]));
    }
}
