//! Syntax tree of a query, before binding. All three forms parse to it, and it prints in each of them (`print`) where
//! that form can express it.

pub use assay_storage_model::merge::Step;
use serde_json::{Number, Value};

pub(crate) use crate::operators::Precedence;
pub use crate::operators::{Binary, Logic, Type, Unary};
pub use assay_node_values::time_units::{Interval, Unit};

/// Upper bound of the depth of an expression.
pub const DEPTH_MAX: u16 = 256;
/// Upper bound of the nodes of a query. The elements of a literal count as one.
pub const NODES_MAX: usize = 20_000;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    pub select: Vec<Select>,
    /// Groups of SQL. The selected columns have the positions of dimensions and measures.
    pub group_by: Option<Vec<Expr>>,
    pub distinct: bool,
    pub dimensions: Vec<SelectItem>,
    pub measures: Vec<SelectItem>,
    pub infer: Vec<InferClause>,
    pub from: Option<From>,
    pub filter: Option<Expr>,
    pub span_filter: Option<Expr>,
    pub trace_filter: Option<Expr>,
    pub final_filter: Option<Expr>,
    pub unpivot: Vec<UnpivotClause>,
    pub pivot: Option<PivotClause>,
    pub final_dimensions: Vec<SelectItem>,
    pub final_measures: Vec<SelectItem>,
    pub sample: Option<Sample>,
    pub sort: Vec<Sort>,
    pub limit: Option<u64>,
    pub cursor: Option<String>,
    /// -1 cuts nothing off.
    pub preview_length: Option<i64>,
    pub inference_budget: Option<u64>,
    pub comparison_key: Option<Expr>,
    pub weighted_scores: Vec<SelectItem>,
    pub custom_columns: Vec<SelectItem>,
    /// Hints to an engine, which are read and not used (D-29).
    pub settings: Vec<(String, Value)>,
}

impl Query {
    /// Treats dimensions that are positions of a select as its groups, as GROUP BY does (D-26).
    pub fn positions_as_groups(&mut self) {
        let positional = |item: &SelectItem| item.alias.is_none() && item.expr.position().is_some();
        let are_groups = !self.select.is_empty()
            && !self.dimensions.is_empty()
            && self.measures.is_empty()
            && self.group_by.is_none()
            && self.dimensions.iter().all(positional);
        if are_groups {
            let dimensions = std::mem::take(&mut self.dimensions);
            self.group_by = Some(dimensions.into_iter().map(|item| item.expr).collect());
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Select {
    /// All columns, some of them replaced.
    Star(Vec<(String, Expr)>),
    Item(SelectItem),
}

#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    pub expr: Expr,
    pub alias: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum InferClause {
    Star,
    Path(Path),
}

#[derive(Clone, Debug, PartialEq)]
pub struct From {
    pub source: Source,
    pub shape: Option<Shape>,
    /// A name that paths may begin with (D-27).
    pub alias: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Source such as `project_logs('a', 'b')`, or without arguments.
    Objects {
        name: String,
        args: Vec<Expr>,
    },
    Query(Box<Query>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    #[default]
    Spans,
    Traces,
    Summary,
}

#[derive(Clone, Debug, PartialEq)]
pub struct UnpivotClause {
    pub expr: Expr,
    /// Name of the key; `None` for elements only.
    pub key: Option<String>,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PivotClause {
    /// BTQL's: measures of the query, over its last dimension.
    Measures(Vec<SelectItem>),
    /// SQL's: measures of its own, over a column of its own.
    For { measures: Vec<SelectItem>, column: Path },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub amount: Amount,
    pub seed: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Fraction between 0 and 1.
    Rate(f64),
    Count(u64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sort {
    pub expr: Expr,
    pub descending: bool,
    /// Position of nulls; last by default.
    pub nulls_first: Option<bool>,
}

/// Offset of an expression in its text. It is ignored in comparisons.
#[derive(Clone, Copy, Debug, Default)]
pub struct At(pub u32);

impl PartialEq for At {
    fn eq(&self, _: &At) -> bool {
        true
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub at: At,
    depth: u16,
    pub node: Node,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    Literal(Value),
    Interval(Interval),
    Path(Path),
    /// Steps into a computed value.
    Of(Box<Expr>, Vec<Step>),
    /// The star of `count(*)`.
    Star,
    Call(Call),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    Logic(Logic, Vec<Expr>),
    Between(Box<[Expr; 3]>),
    /// Array with elements that are not literals.
    Array(Vec<Expr>),
    Object(Vec<(String, Expr)>),
    If(Vec<(Expr, Expr)>, Option<Box<Expr>>),
    Cast(Box<Expr>, Type),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    pub steps: Vec<Step>,
    pub quotes: Quotes,
}

/// Quoting of the first step of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quotes {
    #[default]
    None,
    /// Only such a name may be a score's (D-43).
    Name,
    /// Double-quoted word alone: a name or a text, resolved after parsing (D-21).
    Undecided,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Name in lower case.
    pub name: String,
    pub args: Vec<Expr>,
    pub distinct: bool,
}

impl Expr {
    pub fn new(at: At, node: Node) -> Expr {
        let depth = node.children().map(Expr::depth).max().unwrap_or(0).saturating_add(1);
        Expr { at, depth, node }
    }

    /// Returns the depth, which is 1 without children.
    pub fn depth(&self) -> u16 {
        self.depth
    }

    pub fn literal(value: impl Into<Value>) -> Expr {
        Expr::new(At::default(), Node::Literal(value.into()))
    }

    pub fn path(keys: &[&str]) -> Expr {
        let steps = keys.iter().map(|key| Step::Key((*key).to_owned())).collect();
        Expr::new(At::default(), Node::Path(Path { steps, quotes: Quotes::None }))
    }

    /// The nodes of the whole tree.
    pub fn size(&self) -> usize {
        self.node.children().map(Expr::size).sum::<usize>() + 1
    }

    pub fn is_null(&self) -> bool {
        self.node == Node::Literal(Value::Null)
    }

    /// Returns the position of a column, counted from one, if the expression is such a number.
    pub fn position(&self) -> Option<usize> {
        match &self.node {
            Node::Literal(Value::Number(number)) => usize::try_from(number.as_u64()?).ok(),
            _ => None,
        }
    }
}

impl Node {
    pub fn children(&self) -> Box<dyn Iterator<Item = &Expr> + '_> {
        match self {
            Node::Literal(_) | Node::Interval(_) | Node::Path(_) | Node::Star => Box::new(std::iter::empty()),
            Node::Of(of, _) | Node::Unary(_, of) | Node::Cast(of, _) => Box::new(std::iter::once(&**of)),
            Node::Call(call) => Box::new(call.args.iter()),
            Node::Binary(_, left, right) => Box::new([&**left, &**right].into_iter()),
            Node::Logic(_, of) | Node::Array(of) => Box::new(of.iter()),
            Node::Between(of) => Box::new(of.iter()),
            Node::Object(of) => Box::new(of.iter().map(|(_, value)| value)),
            Node::If(cases, otherwise) => {
                let cases = cases.iter().flat_map(|(condition, then)| [condition, then]);
                Box::new(cases.chain(otherwise.as_deref()))
            }
        }
    }

    pub(crate) fn children_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            Node::Literal(_) | Node::Interval(_) | Node::Path(_) | Node::Star => {}
            Node::Of(of, _) | Node::Unary(_, of) | Node::Cast(of, _) => f(of),
            Node::Call(call) => call.args.iter_mut().for_each(f),
            Node::Binary(_, left, right) => [left, right].into_iter().for_each(|child| f(child)),
            Node::Logic(_, of) | Node::Array(of) => of.iter_mut().for_each(f),
            Node::Between(of) => of.iter_mut().for_each(f),
            Node::Object(of) => of.iter_mut().for_each(|(_, value)| f(value)),
            Node::If(cases, otherwise) => {
                for (condition, then) in cases {
                    f(condition);
                    f(then);
                }
                otherwise.iter_mut().for_each(|child| f(child));
            }
        }
    }

    /// Several conditions that must hold, or of which one must; those of the same kind within them are taken apart.
    pub fn logic(logic: Logic, of: impl IntoIterator<Item = Expr>) -> Node {
        let mut flat = Vec::new();
        for expr in of {
            match expr.node {
                Node::Logic(inner, of) if inner == logic => flat.extend(of),
                node => flat.push(Expr { node, ..expr }),
            }
        }
        match flat.len() {
            1 => flat.remove(0).node,
            _ => Node::Logic(logic, flat),
        }
    }

    /// Negates an expression; a literal stays a literal.
    pub fn minus(of: Expr) -> Node {
        let negative = match &of.node {
            Node::Literal(Value::Number(number)) if !is_signed(number) => match number.as_u64() {
                Some(whole) => i64::try_from(-i128::from(whole)).ok().map(Number::from),
                None => number.as_f64().and_then(|number| Number::from_f64(-number)),
            },
            _ => None,
        };
        match negative {
            Some(number) => Node::Literal(Value::Number(number)),
            None => Node::Unary(Unary::Minus, Box::new(of)),
        }
    }

    /// Applies steps to an expression; a path stays a path.
    pub fn of(expr: Expr, into: Vec<Step>) -> Node {
        match expr.node {
            Node::Path(Path { mut steps, quotes }) => {
                steps.extend(into);
                // What something is taken from has a name.
                let quotes = if quotes == Quotes::None { quotes } else { Quotes::Name };
                Node::Path(Path { steps, quotes })
            }
            Node::Of(of, mut steps) => {
                steps.extend(into);
                Node::Of(of, steps)
            }
            node => Node::Of(Box::new(Expr { node, ..expr }), into),
        }
    }

    /// An array, which is a literal if all of it is.
    pub fn array(of: Vec<Expr>) -> Node {
        if of.iter().all(|element| matches!(element.node, Node::Literal(_))) {
            return Node::Literal(of.into_iter().map(into_literal).collect());
        }
        Node::Array(of)
    }

    pub fn object(of: Vec<(String, Expr)>) -> Node {
        if of.iter().all(|(_, value)| matches!(value.node, Node::Literal(_))) {
            return Node::Literal(of.into_iter().map(|(key, value)| (key, into_literal(value))).collect());
        }
        Node::Object(of)
    }
}

fn into_literal(expr: Expr) -> Value {
    match expr.node {
        Node::Literal(value) => value,
        other => unreachable!("{other:?} was seen to be a literal"),
    }
}

impl Shape {
    pub fn name(self) -> &'static str {
        match self {
            Shape::Spans => "spans",
            Shape::Traces => "traces",
            Shape::Summary => "summary",
        }
    }

    pub fn of(name: &str) -> Option<Shape> {
        [Shape::Spans, Shape::Traces, Shape::Summary].into_iter().find(|shape| shape.name().eq_ignore_ascii_case(name))
    }
}

impl Node {
    pub(crate) fn precedence(&self) -> Precedence {
        match self {
            Node::Logic(_, of) if of.len() < 2 => Precedence::Primary,
            Node::Logic(Logic::Or, _) => Precedence::Or,
            Node::Logic(Logic::And, _) => Precedence::And,
            Node::Unary(Unary::Not, _) => Precedence::Not,
            Node::Unary(Unary::IsNull | Unary::IsNotNull, _) | Node::Between(_) => Precedence::Comparison,
            Node::Unary(Unary::Minus, _) => Precedence::Minus,
            Node::Binary(binary, _, _) => binary.precedence(),
            Node::Cast(_, _) => Precedence::Cast,
            Node::Literal(Value::Number(number)) if is_signed(number) => Precedence::Minus,
            _ => Precedence::Primary,
        }
    }
}

/// A negative number is written as a minus and a number.
fn is_signed(number: &Number) -> bool {
    number.as_f64().is_some_and(f64::is_sign_negative)
}
