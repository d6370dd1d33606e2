//! Bound query: names are fields, functions exist, and clauses have their positions in the order of evaluation
//! (btql.md, section 12). The engine executes it, and so does the interpreter of the tests.
//!
//! ```text
//! rows ─ filter ─ [whole traces ─ their spans kept ─ one row each] ─ sample ─ unpivot ─ filter on what that gave
//!      ├─ columns of each row ─ sort ─ cursor ─ limit
//!      ├─ groups ─ having ─ [groups again] ─ [pivot] ─ sort ─ limit
//!      └─ infer
//! ```

use std::borrow::Cow;

pub use assay_node_values::time_units::DatePart;

pub use crate::functions::{
    Aggregation, ConditionalFunction, JsonFunction, NumberFunction, ScalarFunction, TextFunction, TimeFunction,
};

use crate::ast::{Amount, Interval, Shape, Step, Type, Unit};
use crate::columns::{Kind, Named};
use crate::values::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    pub rows: Rows,
    /// Filter of rows, for the shape `spans`.
    pub filter: Option<BoundExpr>,
    /// Filter of traces and of their spans, for the other shapes.
    pub traces: Option<TraceFilter>,
    pub sample: Option<(Amount, i64)>,
    pub unpivot: Vec<Unpivot>,
    /// Filter that applies to unpivoted rows only.
    pub unpivoted_filter: Option<BoundExpr>,
    pub output: Output,
    pub limit: Option<u64>,
    pub cursor: Option<String>,
    /// Requested length of previews; -1 for whole values.
    pub preview_length: Option<i64>,
    /// Key that pairs traces of two experiments in a summary.
    pub comparison_key: Option<BoundExpr>,
    /// Members of `scores` of a summary, computed from its row.
    pub weighted_scores: Vec<(String, BoundExpr)>,
    /// Minutes that UTC is ahead of local time, which decides where days begin.
    pub tz_offset: i32,
    pub bounds: Bounds,
    /// Whether rows are single writes instead of current rows (D-90).
    pub audit_log: bool,
    pub notes: Vec<Note>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    Objects { kind: Kind, named: Named, names: Vec<String>, shape: Shape },
    Query(Box<Bound>),
}

/// Selected traces, and their visible spans.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceFilter {
    pub condition: Option<TraceCondition>,
    /// Condition on the visible spans of a selected trace. Traces without such spans are not visible.
    pub spans: Option<BoundExpr>,
    /// Condition on the row of a summary, with aggregates over the spans of the trace.
    pub having: Option<(BoundExpr, Vec<Aggregate>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TraceCondition {
    /// Some live span of the trace satisfies it.
    AnySpan(BoundExpr),
    Not(Box<TraceCondition>),
    And(Vec<TraceCondition>),
    Or(Vec<TraceCondition>),
}

impl Bound {
    /// Whether its rows come in pages, each of which ends at a row (D-76). Of rows that an unpivot made of one the cursor
    /// would name all at once.
    pub fn has_pages(&self) -> bool {
        let by_key = matches!(&self.output, Output::Rows { order: Order::Key { .. }, .. });
        by_key && self.unpivot.is_empty() && matches!(self.rows, Rows::Objects { .. })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Unpivot {
    pub of: BoundExpr,
    /// Members and their keys, where a key is named; otherwise elements, or the members of an object.
    pub key: Option<String>,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    Rows { columns: Vec<(String, BoundExpr)>, order: Order },
    Groups(Groups),
    Infer(Infer),
}

/// Result of inference below columns (D-85): rows of [`INFERRED`].
#[derive(Clone, Debug, PartialEq)]
pub struct Infer {
    pub paths: Vec<InferredPath>,
    /// So many rows are looked at.
    pub budget: u64,
    /// So many steps a path has at most, its column among them.
    pub depth: u64,
    /// Order by the four columns, as `Field::Inner`; by default ascending names, then types.
    pub sort: Vec<SortKey>,
}

/// Columns of the result of `infer`.
pub const INFERRED: [&str; 4] = ["name", "type", "count", "top_values"];

#[derive(Clone, Debug, PartialEq)]
pub struct InferredPath {
    /// Prefix of the names of inferred paths.
    pub name: Vec<String>,
    pub field: Field,
    pub steps: Vec<Step>,
}

/// Order of rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Order by pagination keys or transactions, which allows cursors. For shape traces without a sort it orders
    /// traces, whose rows ascend.
    Key { by: Key, descending: bool },
    /// Order by keys, also of rows across traces (D-36).
    Sorted(Vec<SortKey>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Pagination,
    Xact,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    pub expr: BoundExpr,
    pub descending: bool,
    pub nulls_first: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    pub dimensions: Vec<BoundExpr>,
    pub aggregates: Vec<Aggregate>,
    /// Columns, computed from dimensions and aggregates.
    pub columns: Vec<(String, BoundExpr)>,
    pub having: Option<BoundExpr>,
    /// A second grouping, in terms of the columns of the first.
    pub again: Option<Box<Groups>>,
    pub pivot: Option<Pivot>,
    /// Order by dimensions and aggregates, or by pivoted columns; by default ascending dimensions.
    pub sort: Vec<SortKey>,
}

/// Each value of one column becomes a column for each of some others.
#[derive(Clone, Debug, PartialEq)]
pub struct Pivot {
    pub column: usize,
    pub measures: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub function: Aggregation,
    /// Operand; `None` for `count(*)`.
    pub of: Option<BoundExpr>,
    pub distinct: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BoundExpr {
    Const(Datum),
    Field(Field, Vec<Step>),
    Call(Function, Vec<BoundExpr>),
    /// Conditions and results; the first that is true counts.
    If(Vec<(BoundExpr, BoundExpr)>, Box<BoundExpr>),
}

impl BoundExpr {
    /// Returns whether `is` holds for any field in the expression.
    pub fn any_field(&self, is: &impl Fn(&Field) -> bool) -> bool {
        match self {
            BoundExpr::Const(_) => false,
            BoundExpr::Field(field, _) => is(field),
            BoundExpr::Call(_, of) => of.iter().any(|of| of.any_field(is)),
            BoundExpr::If(cases, otherwise) => {
                cases.iter().any(|(condition, then)| condition.any_field(is) || then.any_field(is))
                    || otherwise.any_field(is)
            }
        }
    }
}

/// Field of a row or a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// Column of `Kind::columns`.
    Column(&'static str),
    Derived(Derived),
    /// Name that an unpivot defines.
    Unpivoted(String),
    /// Column of the inner query, of inner groups, or of inferred paths.
    Inner(usize),
    Dimension(usize),
    Aggregate(usize),
    /// Column of the pivoted table. Its name comes from the data.
    Pivoted(String),
}

/// Fields of `metrics` that are computed where they were not logged (btql.md, section 8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Derived {
    Duration,
    TotalTokens,
    EstimatedCost,
}

impl Derived {
    pub const ALL: [Derived; 3] = [Derived::Duration, Derived::TotalTokens, Derived::EstimatedCost];

    /// Its key in `metrics`.
    pub fn name(self) -> &'static str {
        match self {
            Derived::Duration => "duration",
            Derived::TotalTokens => "total_tokens",
            Derived::EstimatedCost => "estimated_cost",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    Null,
    Boolean(bool),
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
    /// Microseconds since the epoch, UTC.
    Time(i64),
    Interval(Interval),
    /// An array or an object.
    Json(serde_json::Value),
}

impl Datum {
    /// Returns the literal as a value.
    pub fn to_value(&self) -> Value<'static> {
        match self {
            Datum::Null => Value::Null,
            Datum::Boolean(boolean) => Value::Boolean(*boolean),
            Datum::Integer(number) => Value::Integer(*number),
            Datum::Unsigned(number) => Value::whole((*number).into()),
            Datum::Float(number) => Value::float(*number),
            Datum::Text(text) => Value::Text(Cow::Owned(text.clone())),
            Datum::Time(micros) => Value::Time(*micros),
            Datum::Interval(interval) => Value::Interval(*interval),
            Datum::Json(json) => Value::read(&json.to_string()).into_owned(),
        }
    }
}

/// Types of an expression that hold for all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    Null,
    Boolean,
    Integer,
    Number,
    Text,
    Time,
    Interval,
    Texts,
    /// Anything that JSON can be.
    Any,
}

/// Operator or function of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Function {
    And,
    Or,
    Not,
    IsNull,
    IsNotNull,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Same,
    NotSame,
    Like {
        any_case: bool,
    },
    Match,
    In,
    Includes,
    /// `includes` on `tags`, where null is empty (D-60).
    TagsInclude,
    Regex {
        any_case: bool,
    },
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Minus,
    Concat {
        skips_nulls: bool,
    },
    Array,
    Object(Vec<String>),
    /// Steps into a value that is computed.
    Get(Vec<Step>),
    Cast(Type),
    ToInterval,
    /// Truncates to a multiple of a unit.
    Truncate {
        unit: Unit,
        many: u32,
    },
    DatePart(DatePart),
    /// Function with a row in [`crate::functions`] and an entry in `assay-node-expressions`.
    Scalar(ScalarFunction),
}

/// Bounds that a filter implies. Data outside of them need not be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Microseconds; both ends belong to it.
    pub created: Range<i64>,
    pub xact: Range<u64>,
    pub pagination_key: Range<String>,
    pub ids: Option<Vec<String>>,
    pub root_span_ids: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Range<T> {
    pub from: Option<T>,
    pub to: Option<T>,
}

impl<T> Default for Range<T> {
    fn default() -> Range<T> {
        Range { from: None, to: None }
    }
}

/// Note about the query for its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub code: &'static str,
    pub message: String,
    /// Whether it is an error in strict mode.
    pub blocks_strict: bool,
}
