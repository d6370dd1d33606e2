//! A query about which all is known: every name is a field, every function exists, every clause has its place in the order of
//! evaluation (btql.md, section 12). What an engine runs, and what the tests' interpreter runs beside it.
//!
//! ```text
//! rows ─ filter ─ [whole traces ─ their spans kept ─ one row each] ─ sample ─ unpivot ─ filter on what that gave
//!      ├─ columns of each row ─ sort ─ cursor ─ limit
//!      ├─ groups ─ having ─ [groups again] ─ [pivot] ─ sort ─ limit
//!      └─ infer
//! ```

use std::borrow::Cow;

pub use assay_node_values::time_units::DatePart;

use crate::ast::{Amount, Interval, Shape, Step, Type, Unit};
use crate::columns::{Kind, Named};
use crate::values::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    pub rows: Rows,
    /// Of shape spans: which rows.
    pub filter: Option<Expr>,
    /// Of the other shapes: which traces, and which of their spans.
    pub traces: Option<TraceFilter>,
    pub sample: Option<(Amount, i64)>,
    pub unpivot: Vec<Unpivot>,
    /// What can be said only of unpivoted rows.
    pub unpivoted_filter: Option<Expr>,
    pub output: Output,
    pub limit: Option<u64>,
    pub cursor: Option<String>,
    /// Where it is given; -1 cuts nothing off.
    pub preview_length: Option<i64>,
    /// Of a summary: what pairs traces of two experiments.
    pub comparison_key: Option<Expr>,
    /// Of a summary: members of `scores`, in terms of the summary row.
    pub weighted_scores: Vec<(String, Expr)>,
    /// Minutes that UTC is ahead of local time, in which days begin.
    pub tz_offset: i32,
    pub bounds: Bounds,
    /// Rows are not what there is by now, but what was written, write by write (D-90).
    pub audit_log: bool,
    pub notes: Vec<Note>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    Objects { kind: Kind, named: Named, names: Vec<String>, shape: Shape },
    Query(Box<Bound>),
}

/// Which traces are selected, and what of them is seen.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceFilter {
    pub condition: Option<TraceCondition>,
    /// Of a selected trace only such spans are seen, and a trace without any is not.
    pub spans: Option<Expr>,
    /// Of a summary: a condition on its row, in which an aggregate is over the trace's spans.
    pub having: Option<(Expr, Vec<Aggregate>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TraceCondition {
    /// Some live span of the trace satisfies it.
    AnySpan(Expr),
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
    pub of: Expr,
    /// Members and their keys, where a key is named; otherwise elements, or the members of an object.
    pub key: Option<String>,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    Rows { columns: Vec<(String, Expr)>, order: Order },
    Groups(Groups),
    Infer(Infer),
}

/// What is found below columns (D-85): rows of [`INFERRED`].
#[derive(Clone, Debug, PartialEq)]
pub struct Infer {
    pub paths: Vec<InferredPath>,
    /// So many rows are looked at.
    pub budget: u64,
    /// So many steps a path has at most, its column among them.
    pub depth: u64,
    /// In terms of the four columns, as `Field::Inner`; ascending names, then types, where nothing is said.
    pub sort: Vec<SortKey>,
}

/// The columns of what is inferred.
pub const INFERRED: [&str; 4] = ["name", "type", "count", "top_values"];

#[derive(Clone, Debug, PartialEq)]
pub struct InferredPath {
    /// Of what is found there, the beginning of the name.
    pub name: Vec<String>,
    pub field: Field,
    pub steps: Vec<Step>,
}

/// In which order rows come.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// By their pagination keys, or by their transactions: a page can go on where the one before ended. Of shape traces,
    /// where nothing is sorted, it is the traces that come so, and the rows of each ascend.
    Key { by: Key, descending: bool },
    /// Also the rows of traces, whatever trace they are of (D-36).
    Sorted(Vec<SortKey>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Pagination,
    Xact,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    pub expr: Expr,
    pub descending: bool,
    pub nulls_first: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    pub dimensions: Vec<Expr>,
    pub aggregates: Vec<Aggregate>,
    /// In terms of dimensions and aggregates.
    pub columns: Vec<(String, Expr)>,
    pub having: Option<Expr>,
    /// A second grouping, in terms of the columns of the first.
    pub again: Option<Box<Groups>>,
    pub pivot: Option<Pivot>,
    /// In terms of dimensions and aggregates, or of what was pivoted; ascending dimensions where nothing is said.
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
    /// None for `count(*)`.
    pub of: Option<Expr>,
    pub distinct: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Aggregation {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    AnyValue,
    Percentile(f64),
    Stddev,
    ArrayAgg,
    StringAgg(String),
    /// By pagination key.
    First,
    Last,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Const(Datum),
    Field(Field, Vec<Step>),
    Call(Function, Vec<Expr>),
    /// Conditions and what follows from the first that is true.
    If(Vec<(Expr, Expr)>, Box<Expr>),
}

impl Expr {
    /// Whether any of the fields in it is such a one.
    pub fn any_field(&self, is: &impl Fn(&Field) -> bool) -> bool {
        match self {
            Expr::Const(_) => false,
            Expr::Field(field, _) => is(field),
            Expr::Call(_, of) => of.iter().any(|of| of.any_field(is)),
            Expr::If(cases, otherwise) => {
                cases.iter().any(|(condition, then)| condition.any_field(is) || then.any_field(is))
                    || otherwise.any_field(is)
            }
        }
    }
}

/// What a row, or a group, has.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// One of `Kind::columns`.
    Column(&'static str),
    Derived(Derived),
    /// A name that an unpivot gave.
    Unpivoted(String),
    /// Of the query within, of the groups that are grouped again, or of what was inferred.
    Inner(usize),
    Dimension(usize),
    Aggregate(usize),
    /// Of the pivoted table, by its name, which only the data knows.
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

/// What is known of an expression's values before there are any.
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
    /// Of `tags`, where null is empty (D-60).
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
    /// To the start of this many units.
    Truncate {
        unit: Unit,
        many: u32,
    },
    DatePart(DatePart),
    ToUnixTime,
    Lower,
    Upper,
    Length,
    Substring,
    Trim,
    Replace,
    SplitPart,
    StartsWith,
    EndsWith,
    Left,
    Right,
    Levenshtein,
    Similarity,
    JsonExtract,
    ObjectKeys,
    ToJson,
    TypeOf,
    Coalesce,
    NullIf,
    Least,
    Greatest,
    Round,
    Abs,
    Floor,
    Ceil,
    Sqrt,
    Ln,
    Log10,
    Pow,
}

/// What a filter leaves of an order, wherever it is and whatever else is asked: what lies outside need not be read.
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

/// Something about the query that its author should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub code: &'static str,
    pub message: String,
    /// Where strictness is asked for, it is an error.
    pub blocks_strict: bool,
}
