//! Inference of paths below columns (D-85): the count and the most frequent values of each path and type.
//!
//! Rows have the default order, up to a budget. The budget counts the first rows of all shards together, so shards send
//! values.

use ahash::AHashMap;
use assay_node_btql::bound::{INFERRED, Infer};
use assay_node_btql::values::{Value, in_order};
use assay_node_expressions::ValueCounts;

use crate::groups::object_members;

const TOP_VALUES_MAX: usize = 10;
/// Names of types, in the order of result rows.
const TYPES: [&str; 6] = ["array", "boolean", "null", "number", "object", "string"];
const OBJECT: usize = 4;

/// Row of inferred paths.
pub type InferredRow = [Value<'static>; INFERRED.len()];

/// Paths found so far.
#[derive(Clone, Debug)]
pub struct Inference {
    depth: u64,
    /// Start of each inferred path: its node and its number of steps.
    starts: Vec<(usize, u64)>,
    /// Nodes of the tree. The first one is the root.
    places: Vec<PathNode>,
}

/// Node of the tree of paths.
#[derive(Clone, Debug, Default)]
struct PathNode {
    /// Last step of the path.
    name: String,
    above: usize,
    below: AHashMap<String, usize>,
    /// Counts by type.
    seen: [Option<Box<TypeCount>>; TYPES.len()],
}

#[derive(Clone, Debug, Default)]
struct TypeCount {
    count: u64,
    /// Counts of scalar values other than null.
    values: ValueCounts,
}

impl Inference {
    pub fn new(infer: &Infer) -> Inference {
        let mut new = Inference { depth: infer.depth, starts: Vec::new(), places: vec![PathNode::default()] };
        for path in &infer.paths {
            let start = path.name.iter().fold(0, |place, step| new.below(place, step));
            new.starts.push((start, path.name.len() as u64));
        }
        new
    }

    /// Adds the value of a row at the path with this number.
    pub fn add(&mut self, path: usize, value: &Value<'_>) {
        if let Some((start, steps)) = self.starts.get(path).copied() {
            self.look(start, steps, value);
        }
    }

    /// Returns rows ordered by name and type.
    pub fn rows(&self) -> Vec<InferredRow> {
        let mut rows: Vec<(Vec<&str>, usize, &TypeCount)> = Vec::new();
        for (number, place) in self.places.iter().enumerate() {
            for (kind, seen) in place.seen.iter().enumerate() {
                rows.extend(seen.as_deref().map(|seen| (self.path(number), kind, seen)));
            }
        }
        rows.sort_by(|left, right| (&left.0, left.1).cmp(&(&right.0, right.1)));
        rows.into_iter().map(|(path, kind, seen)| row(&path, kind, seen)).collect()
    }

    fn look(&mut self, place: usize, steps: u64, value: &Value<'_>) {
        let kind = type_of(value);
        if kind == OBJECT && steps < self.depth {
            object_members::each(value, |key, member| {
                let below = self.below(place, key);
                self.look(below, steps + 1, &member);
            });
        }
        let seen = self.places[place].seen[kind].get_or_insert_default();
        seen.count += 1;
        if is_single(value) {
            seen.values.add(value, 1);
        }
    }

    fn below(&mut self, place: usize, step: &str) -> usize {
        if let Some(below) = self.places[place].below.get(step) {
            return *below;
        }
        let below = self.places.len();
        self.places.push(PathNode { name: step.to_owned(), above: place, ..PathNode::default() });
        self.places[place].below.insert(step.to_owned(), below);
        below
    }

    fn path(&self, mut place: usize) -> Vec<&str> {
        let mut path = Vec::new();
        while place > 0 {
            path.push(self.places[place].name.as_str());
            place = self.places[place].above;
        }
        path.reverse();
        path
    }
}

fn row(path: &[&str], kind: usize, seen: &TypeCount) -> InferredRow {
    let text = |text: &str| Value::Text(text.to_owned().into());
    let path = path.iter().map(|step| text(step)).collect();
    [Value::List(path), text(TYPES[kind]), Value::whole(seen.count.into()), Value::List(top_values(&seen.values))]
}

/// Returns the most frequent values. Equally frequent ones are in the order of values.
fn top_values(values: &ValueCounts) -> Vec<Value<'static>> {
    let mut top: Vec<(&Value<'static>, u64)> = values.iter().collect();
    // The sort is stable, so values without an order stay in the order of occurrence.
    top.sort_by(|(left, left_count), (right, right_count)| {
        right_count.cmp(left_count).then_with(|| in_order(left, right))
    });
    top.truncate(TOP_VALUES_MAX);
    let entry = |(value, count): (&Value<'static>, u64)| {
        Value::Members(vec![("value".into(), value.clone()), ("count".into(), Value::whole(count.into()))])
    };
    top.into_iter().map(entry).collect()
}

/// Index of the type that `typeof` reports.
fn type_of(value: &Value<'_>) -> usize {
    match value {
        Value::Array(_) | Value::List(_) => 0,
        Value::Boolean(_) => 1,
        Value::Null => 2,
        Value::Integer(_) | Value::Unsigned(_) | Value::Float(_) => 3,
        Value::Object(_) | Value::Members(_) => OBJECT,
        Value::Text(_) | Value::Time(_) | Value::Stored(_) | Value::Xact(_) | Value::Interval(_) => 5,
    }
}

fn is_single(value: &Value<'_>) -> bool {
    !matches!(value, Value::Null | Value::Array(_) | Value::List(_) | Value::Object(_) | Value::Members(_))
}

#[cfg(test)]
mod tests {
    use assay_node_btql::bound::{Field, InferredPath};

    use super::*;

    fn infer(depth: u64, paths: &[&[&str]]) -> Inference {
        let path = |name: &&[&str]| InferredPath {
            name: name.iter().map(|step| (*step).to_owned()).collect(),
            field: Field::Column("metadata"),
            steps: Vec::new(),
        };
        Inference::new(&Infer { paths: paths.iter().map(path).collect(), budget: 1000, depth, sort: Vec::new() })
    }

    fn shown(inference: &Inference) -> Vec<String> {
        let one = |row: InferredRow| row.iter().map(Value::to_json).collect::<Vec<_>>().join(" ");
        inference.rows().into_iter().map(one).collect()
    }

    #[test]
    fn what_is_in_a_column_is_counted_by_path_and_type() {
        let mut found = infer(5, &[&["m"]]);
        for json in
            [r#"{"b":1,"a":"x"}"#, r#"{"a":"y","b":null,"c":[1]}"#, "null", r#"{"a":"x","b":1.0,"d":{"e":true}}"#]
        {
            found.add(0, &Value::read(json));
        }
        let expected = [
            r#"["m"] "null" 1 []"#,
            r#"["m"] "object" 3 []"#,
            r#"["m","a"] "string" 3 [{"value":"x","count":2},{"value":"y","count":1}]"#,
            r#"["m","b"] "null" 1 []"#,
            r#"["m","b"] "number" 2 [{"value":1,"count":2}]"#,
            r#"["m","c"] "array" 1 []"#,
            r#"["m","d"] "object" 1 []"#,
            r#"["m","d","e"] "boolean" 1 [{"value":true,"count":1}]"#,
        ];
        assert_eq!(shown(&found), expected);
    }

    #[test]
    fn no_path_is_longer_than_the_depth() {
        let deep = Value::read(r#"{"a":{"b":{"c":1}}}"#);
        for (depth, paths) in [(0, 1), (1, 1), (2, 2), (3, 3), (4, 4), (9, 4)] {
            let mut found = infer(depth, &[&["m"]]);
            found.add(0, &deep);
            assert_eq!(found.rows().len(), paths, "{depth}");
        }
        let mut found = infer(3, &[&["m", "a"]]);
        found.add(0, &Value::read(r#"{"b":{"c":1}}"#));
        assert_eq!(shown(&found), [r#"["m","a"] "object" 1 []"#, r#"["m","a","b"] "object" 1 []"#]);
    }

    #[test]
    fn ten_values_are_on_top_and_ties_come_in_order() {
        let mut found = infer(5, &[&["m"]]);
        for number in (0..30).rev() {
            found.add(0, &Value::Integer(number));
        }
        [7, 29, 7].iter().for_each(|number| found.add(0, &Value::Integer(*number)));
        let top = [(7, 3), (29, 2), (0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (8, 1)];
        let top: Vec<String> =
            top.iter().map(|(value, count)| format!(r#"{{"value":{value},"count":{count}}}"#)).collect();
        assert_eq!(shown(&found), [format!(r#"["m"] "number" 33 [{}]"#, top.join(","))]);
    }

    /// A path that is requested together with the path above it is visited twice.
    #[test]
    fn paths_of_one_name_are_counted_together() {
        let mut found = infer(5, &[&["m"], &["m", "a"]]);
        found.add(0, &Value::read(r#"{"a":1}"#));
        found.add(1, &Value::Integer(1));
        found.add(2, &Value::Integer(1)); // there is no such path
        assert_eq!(shown(&found), [r#"["m"] "object" 1 []"#, r#"["m","a"] "number" 2 [{"value":1,"count":2}]"#]);
    }

    #[test]
    fn times_and_transactions_are_strings() {
        let mut found = infer(5, &[&["created"], &["_xact_id"]]);
        found.add(0, &Value::Stored(0));
        found.add(1, &Value::Xact(12));
        let expected = [
            r#"["_xact_id"] "string" 1 [{"value":"12","count":1}]"#,
            r#"["created"] "string" 1 [{"value":"1970-01-01T00:00:00.000Z","count":1}]"#,
        ];
        assert_eq!(shown(&found), expected);
    }

    /// A linear search through all values would take minutes.
    #[test]
    fn many_values_and_many_names_are_no_matter() {
        let mut found = infer(5, &[&["m"]]);
        for number in 0..50_000 {
            found.add(0, &Value::read(&format!(r#"{{"id":{number},"k{}":"{number}"}}"#, number % 5_000)));
        }
        assert_eq!(found.rows().len(), 5_002);
    }
}
