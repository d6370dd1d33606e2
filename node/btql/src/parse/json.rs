//! Parser of the JSON form (btql.md, section 5).
//!
//! A member that is null is absent. Unknown members of the query are told and passed over (D-31); an unknown operator or an
//! operand that is missing is an error that names its place.

use serde_json::{Map, Value};

use super::operand::{can_be_called, no_function};
use super::{Parsed, no_shape, no_source, parse_expression, settle, too_deep};
use crate::ast::{
    Amount, At, Binary, Call, DEPTH_MAX, Expr, From, InferClause, Interval, Logic, NODES_MAX, Node, Path, PivotClause,
    Precedence, Query, Quotes, Sample, Select, SelectItem, Shape, Sort, Source, Step, Type, Unary, Unit, UnpivotClause,
};
use crate::error::QueryError;
use crate::print::can_begin_operand;

type Object = Map<String, Value>;

pub(super) fn query(tree: &Value) -> Result<Parsed, QueryError> {
    let Value::Object(members) = tree else { return Err(QueryError::new("a query is a text or an object")) };
    let mut reader = Reader { nodes: 0, nested: 0 };
    let mut query = Query::default();
    let mut unknown_keys = Vec::new();
    for (key, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        if !reader.clause(key, value, &mut query)? {
            unknown_keys.push(key.clone());
        }
    }
    if query == Query::default() {
        return Err(QueryError::new("the query is empty: it has none of a query's members, such as `from`"));
    }
    Ok(Parsed { query: settle::query(query)?, unknown_keys })
}

struct Reader {
    nodes: usize,
    nested: u16,
}

type Read<T> = Result<T, QueryError>;

impl Reader {
    /// Whether the key is one of a query's.
    fn clause(&mut self, key: &str, value: &Value, query: &mut Query) -> Read<bool> {
        match key {
            "select" => query.select = self.each(key, value, Reader::select)?,
            "dimensions" => query.dimensions = self.each(key, value, Reader::item)?,
            "measures" => query.measures = self.each(key, value, Reader::item)?,
            "pivot" => {
                let measures = self.each(key, value, Reader::item)?;
                query.pivot = Some(PivotClause::Measures(measures))
                    .filter(|_| value.as_array().is_some_and(|all| !all.is_empty()));
            }
            "weighted_scores" => query.weighted_scores = self.each(key, value, Reader::item)?,
            "custom_columns" => query.custom_columns = self.each(key, value, Reader::item)?,
            "final_dimensions" => query.final_dimensions = self.each(key, value, Reader::item)?,
            "final_measures" => query.final_measures = self.each(key, value, Reader::item)?,
            "infer" => query.infer = self.each(key, value, Reader::infer)?,
            "unpivot" => query.unpivot = self.each(key, value, Reader::unpivot)?,
            "from" => query.from = Some(self.from(key, value)?),
            // D-26: two words for one thing.
            "filter" | "where" if query.filter.is_some() => {
                return Err(QueryError::below(key, "filter and where mean the same: only one of them may be here"));
            }
            "filter" | "where" => query.filter = Some(self.condition(key, value)?),
            "span_filter" => query.span_filter = Some(self.condition(key, value)?),
            "trace_filter" => query.trace_filter = Some(self.condition(key, value)?),
            "final_filter" => query.final_filter = Some(self.condition(key, value)?),
            "comparison_key" => query.comparison_key = Some(self.expr(key, value)?),
            "sort" => query.sort = self.each(key, value, Reader::sort)?,
            "limit" => query.limit = Some(whole(key, value)?),
            "inference_budget" => query.inference_budget = Some(whole(key, value)?),
            "preview_length" => {
                let length = value.as_i64().filter(|length| *length >= -1);
                query.preview_length = Some(length.ok_or_else(|| wrong(key, "a whole number of -1 or more", value))?);
            }
            "cursor" => query.cursor = Some(text(key, value)?.to_owned()).filter(|cursor| !cursor.is_empty()),
            "sample" => query.sample = Some(sample(key, value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn each<T>(&mut self, at: &str, value: &Value, one: impl Fn(&mut Self, &str, &Value) -> Read<T>) -> Read<Vec<T>> {
        let all = value.as_array().ok_or_else(|| wrong(at, "an array", value))?;
        all.iter().enumerate().map(|(number, value)| one(self, &format!("{at}[{number}]"), value)).collect()
    }

    fn select(&mut self, at: &str, value: &Value) -> Read<Select> {
        let members = object(at, value)?;
        match members.get("op").and_then(Value::as_str) {
            Some("star") => self.replacements(at, members).map(Select::Star),
            _ => self.item(at, value).map(Select::Item),
        }
    }

    fn replacements(&mut self, at: &str, star: &Object) -> Read<Vec<(String, Expr)>> {
        let Some(replaced) = present(star, "replace") else { return Ok(Vec::new()) };
        let at = format!("{at}.replace");
        let members = object(&at, replaced)?;
        members.iter().map(|(column, expr)| Ok((column.clone(), self.expr(&format!("{at}.{column}"), expr)?))).collect()
    }

    /// `{expr, alias}`, or an expression alone.
    fn item(&mut self, at: &str, value: &Value) -> Read<SelectItem> {
        let members = object(at, value)?;
        let alias = optional_text(at, members, "alias")?;
        let expr = match present(members, "expr").filter(|_| !members.contains_key("op")) {
            Some(expr) => self.expr(&format!("{at}.expr"), expr)?,
            None => self.expr(at, value)?,
        };
        Ok(SelectItem { expr, alias })
    }

    fn infer(&mut self, at: &str, value: &Value) -> Read<InferClause> {
        let members = object(at, value)?;
        if members.get("op").and_then(Value::as_str) == Some("star") {
            return Ok(InferClause::Star);
        }
        match self.expr(at, value)?.node {
            Node::Path(path) => Ok(InferClause::Path(path)),
            _ => Err(wrong(at, "an ident or a star", value)),
        }
    }

    fn unpivot(&mut self, at: &str, value: &Value) -> Read<UnpivotClause> {
        let members = object(at, value)?;
        let expr = self.needed(at, members, "expr")?;
        let place = format!("{at}.alias");
        let name = |value: &Value| value.as_str().filter(|name| !name.is_empty()).map(str::to_owned);
        let names = match present(members, "alias") {
            Some(Value::Array(names)) => names.iter().map(name).collect::<Option<Vec<_>>>(),
            Some(one) => name(one).map(|name| vec![name]),
            None => None,
        };
        match names.as_deref() {
            Some([value]) => Ok(UnpivotClause { expr, key: None, value: value.clone() }),
            Some([key, value]) => Ok(UnpivotClause { expr, key: Some(key.clone()), value: value.clone() }),
            _ => Err(QueryError::below(&place, "expected a name, or an array of a key's name and a value's name")),
        }
    }

    fn from(&mut self, at: &str, value: &Value) -> Read<From> {
        let members = object(at, value)?;
        let op = members.get("op").and_then(Value::as_str);
        let shape = match optional_text(at, members, "shape")? {
            Some(shape) => {
                let place = format!("{at}.shape");
                Some(Shape::of(&shape).ok_or_else(|| QueryError::below(&place, no_shape(&shape)))?)
            }
            None => None,
        };
        let source = match op {
            Some("function") => {
                let name = function_name(at, members)?;
                let args = match present(members, "args") {
                    Some(args) => self.each(&format!("{at}.args"), args, Reader::expr)?,
                    None => Vec::new(),
                };
                Source::Objects { name, args }
            }
            Some("ident") => {
                let name = one_name(at, members)?;
                if !can_be_called(&name) {
                    return Err(QueryError::below(&format!("{at}.name"), no_source(&name)));
                }
                Source::Objects { name, args: Vec::new() }
            }
            _ => return Err(wrong(at, "a function such as project_logs, or an ident", value)),
        };
        Ok(From { source, shape, alias: None })
    }

    /// An expression, or several that must all hold.
    fn condition(&mut self, at: &str, value: &Value) -> Read<Expr> {
        if !value.is_array() {
            return self.expr(at, value);
        }
        let all = self.each(at, value, Reader::expr)?;
        self.logic(at, Logic::And, all)
    }

    fn sort(&mut self, at: &str, value: &Value) -> Read<Sort> {
        let members = object(at, value)?;
        let expr = self.needed(at, members, "expr")?;
        let descending = match optional_text(at, members, "dir")?.as_deref() {
            None | Some("asc") => false,
            Some("desc") => true,
            Some(_) => return Err(wrong(&format!("{at}.dir"), "asc or desc", &members["dir"])),
        };
        let nulls_first = match optional_text(at, members, "nulls")?.as_deref() {
            None => None,
            Some("first") => Some(true),
            Some("last") => Some(false),
            Some(_) => return Err(wrong(&format!("{at}.nulls"), "first or last", &members["nulls"])),
        };
        Ok(Sort { expr, descending, nulls_first })
    }

    fn needed(&mut self, at: &str, members: &Object, key: &str) -> Read<Expr> {
        let value = present(members, key).ok_or_else(|| missing(at, key))?;
        self.expr(&format!("{at}.{key}"), value)
    }

    fn made(&mut self, at: &str, node: Node) -> Read<Expr> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(QueryError::below(at, format!("the query has more than {NODES_MAX} parts")));
        }
        let expr = Expr::new(At::default(), node);
        if expr.depth() > DEPTH_MAX { Err(QueryError::below(at, too_deep())) } else { Ok(expr) }
    }

    fn logic(&mut self, at: &str, logic: Logic, of: Vec<Expr>) -> Read<Expr> {
        if of.is_empty() {
            // D-32
            return self.made(at, Node::Literal((logic == Logic::And).into()));
        }
        self.made(at, Node::logic(logic, of))
    }

    fn expr(&mut self, at: &str, value: &Value) -> Read<Expr> {
        self.nested += 1;
        if self.nested > DEPTH_MAX {
            return Err(QueryError::below("query", too_deep()));
        }
        let expr = crate::level(|| self.node(at, value));
        self.nested -= 1;
        expr
    }

    fn node(&mut self, at: &str, value: &Value) -> Read<Expr> {
        let members = object(at, value)?;
        let btql = present(members, "btql").filter(|_| matches!(op(members), None | Some("btql")));
        if let Some(btql) = btql {
            return self.text_within(&format!("{at}.btql"), btql);
        }
        let name = op(members).ok_or_else(|| missing(at, "op"))?;
        if let Some(binary) = Binary::ALL.into_iter().find(|binary| binary.op() == name) {
            return self.binary(at, members, binary);
        }
        let node = match name {
            "literal" => Node::Literal(members.get("value").cloned().unwrap_or_default()),
            "interval" => Node::Interval(interval(at, members)?),
            "ident" => Node::Path(path(at, members)?),
            "star" => return Err(QueryError::below(at, "a star stands alone in a select, and in count(*)")),
            "function" => self.call(at, members)?,
            "singlespanfilter" => self.span_call(at, members, "any_span")?,
            "matchingspansfilter" => self.span_call(at, members, "filter_spans")?,
            "is" => return self.is(at, members),
            "and" | "or" => {
                let logic = if name == "and" { Logic::And } else { Logic::Or };
                let of = self.operands(at, members)?;
                return self.logic(at, logic, of);
            }
            "not" => Node::Unary(Unary::Not, Box::new(self.needed(at, members, "expr")?)),
            "isnull" => Node::Unary(Unary::IsNull, Box::new(self.needed(at, members, "expr")?)),
            "isnotnull" => Node::Unary(Unary::IsNotNull, Box::new(self.needed(at, members, "expr")?)),
            "neg" => Node::minus(self.needed(at, members, "expr")?),
            "between" => {
                let of = [("expr", ()), ("low", ()), ("high", ())].map(|(key, ())| self.needed(at, members, key));
                let [of, low, high] = of;
                Node::Between(Box::new([of?, low?, high?]))
            }
            "cast" => {
                let to = optional_text(at, members, "type")?.ok_or_else(|| missing(at, "type"))?;
                let known = Type::of(&to).ok_or_else(|| wrong(&format!("{at}.type"), "a type", &members["type"]))?;
                Node::Cast(Box::new(self.needed(at, members, "expr")?), known)
            }
            "if" => self.cases(at, members)?,
            "array" => {
                let of = present(members, "items").ok_or_else(|| missing(at, "items"))?;
                Node::array(self.each(&format!("{at}.items"), of, Reader::expr)?)
            }
            "object" => {
                let of = present(members, "members").ok_or_else(|| missing(at, "members"))?;
                let place = format!("{at}.members");
                let of = object(&place, of)?;
                let read =
                    |(key, value): (&String, &Value)| Ok((key.clone(), self.expr(&format!("{place}.{key}"), value)?));
                Node::object(of.iter().map(read).collect::<Read<_>>()?)
            }
            "get" => {
                let of = self.needed(at, members, "expr")?;
                Node::of(of, steps(at, members, "path")?)
            }
            _ => return Err(QueryError::below(&format!("{at}.op"), format!("there is no operator `{name}`"))),
        };
        self.made(at, node)
    }

    /// BTQL as text, wherever an expression is.
    fn text_within(&mut self, at: &str, value: &Value) -> Read<Expr> {
        let expr = parse_expression(text(at, value)?).map_err(|error| QueryError::below(at, error.to_string()))?;
        self.nodes += expr.size();
        if self.nodes > NODES_MAX || expr.depth() + self.nested > DEPTH_MAX {
            return Err(QueryError::below(at, "this makes the query too large or too deep"));
        }
        Ok(expr)
    }

    fn binary(&mut self, at: &str, members: &Object, binary: Binary) -> Read<Expr> {
        let [left, right] = if binary == Binary::Includes { ["haystack", "needle"] } else { ["left", "right"] };
        let left = self.needed(at, members, left)?;
        let place = format!("{at}.{right}");
        let right = self.needed(at, members, right)?;
        if binary == Binary::In && right.node.precedence() < Precedence::Sum {
            return Err(QueryError::below(&place, "expected an array, or a path to one"));
        }
        self.made(at, Node::Binary(binary, Box::new(left), Box::new(right)))
    }

    fn is(&mut self, at: &str, members: &Object) -> Read<Expr> {
        let left = Box::new(self.needed(at, members, "left")?);
        let right = self.needed(at, members, "right")?;
        let node = if right.is_null() {
            Node::Unary(Unary::IsNull, left)
        } else {
            Node::Binary(Binary::Same, left, Box::new(right))
        };
        self.made(at, node)
    }

    /// `left` and `right`, `children`, or all of them.
    fn operands(&mut self, at: &str, members: &Object) -> Read<Vec<Expr>> {
        let mut of = Vec::new();
        for key in ["left", "right"] {
            if let Some(value) = present(members, key) {
                of.push(self.expr(&format!("{at}.{key}"), value)?);
            }
        }
        if let Some(children) = present(members, "children") {
            of.extend(self.each(&format!("{at}.children"), children, Reader::expr)?);
        }
        Ok(of)
    }

    fn call(&mut self, at: &str, members: &Object) -> Read<Node> {
        let name = function_name(at, members)?;
        let distinct = match optional_text(at, members, "duplicate_treatment")?.as_deref() {
            None | Some("All") => false,
            Some("Distinct") => true,
            Some(_) => {
                return Err(wrong(
                    &format!("{at}.duplicate_treatment"),
                    "Distinct or All",
                    &members["duplicate_treatment"],
                ));
            }
        };
        let args = present(members, "args");
        if let Some([Value::Object(only)]) = args.and_then(Value::as_array).map(Vec::as_slice)
            && op(only) == Some("star")
            && !distinct
        {
            let star = self.made(at, Node::Star)?;
            return Ok(Node::Call(Call { name, args: vec![star], distinct }));
        }
        let mut args = match args {
            Some(args) => {
                self.each(&format!("{at}.args"), args, |reader, at, value| Ok(reader.item(at, value)?.expr))?
            }
            None => Vec::new(),
        };
        match (name.as_str(), args.len()) {
            ("isnull", 1) => Ok(Node::Unary(Unary::IsNull, Box::new(args.remove(0)))),
            ("isnotnull", 1) => Ok(Node::Unary(Unary::IsNotNull, Box::new(args.remove(0)))),
            _ => Ok(Node::Call(Call { name, args, distinct })),
        }
    }

    fn span_call(&mut self, at: &str, members: &Object, name: &str) -> Read<Node> {
        let args = vec![self.needed(at, members, "expr")?];
        Ok(Node::Call(Call { name: name.into(), args, distinct: false }))
    }

    fn cases(&mut self, at: &str, members: &Object) -> Read<Node> {
        let cases = present(members, "conds").ok_or_else(|| missing(at, "conds"))?;
        let cases = self.each(&format!("{at}.conds"), cases, |reader, at, value| {
            let members = object(at, value)?;
            Ok((reader.needed(at, members, "cond")?, reader.needed(at, members, "then")?))
        })?;
        if cases.is_empty() {
            return Err(QueryError::below(&format!("{at}.conds"), "expected at least one case"));
        }
        let otherwise = match present(members, "else") {
            Some(otherwise) => Some(Box::new(self.expr(&format!("{at}.else"), otherwise)?)),
            None => None,
        };
        Ok(Node::If(cases, otherwise))
    }
}

fn op(members: &Object) -> Option<&str> {
    members.get("op").and_then(Value::as_str)
}

fn present<'a>(members: &'a Object, key: &str) -> Option<&'a Value> {
    members.get(key).filter(|value| !value.is_null())
}

fn object<'a>(at: &str, value: &'a Value) -> Read<&'a Object> {
    value.as_object().ok_or_else(|| wrong(at, "an object", value))
}

fn text<'a>(at: &str, value: &'a Value) -> Read<&'a str> {
    value.as_str().ok_or_else(|| wrong(at, "a text", value))
}

fn whole(at: &str, value: &Value) -> Read<u64> {
    value.as_u64().ok_or_else(|| wrong(at, "a whole number of 0 or more", value))
}

fn optional_text(at: &str, members: &Object, key: &str) -> Read<Option<String>> {
    present(members, key).map(|value| text(&format!("{at}.{key}"), value).map(str::to_owned)).transpose()
}

fn missing(at: &str, key: &str) -> QueryError {
    QueryError::below(at, format!("`{key}` is missing"))
}

fn wrong(at: &str, expected: &str, found: &Value) -> QueryError {
    QueryError::below(at, format!("expected {expected}, found {}", crate::error::quoted(&found.to_string())))
}

fn sample(at: &str, value: &Value) -> Read<Sample> {
    let count = |value: &Value| value.as_u64().filter(|count| *count > 0).map(Amount::Count);
    let rate = |value: &Value| value.as_f64().filter(|rate| (0.0..=1.0).contains(rate)).map(Amount::Rate);
    let Value::Object(members) = value else {
        let amount = count(value).ok_or_else(|| wrong(at, "a number of rows of 1 or more, or an object", value))?;
        return Ok(Sample { amount, seed: None });
    };
    let method = object(&format!("{at}.method"), members.get("method").unwrap_or(&Value::Null))?;
    let given = method.get("value").unwrap_or(&Value::Null);
    let place = format!("{at}.method.value");
    let amount = match method.get("type").and_then(Value::as_str) {
        Some("rate") => rate(given).ok_or_else(|| wrong(&place, "a number between 0 and 1", given))?,
        Some("count") => count(given).ok_or_else(|| wrong(&place, "a whole number of 1 or more", given))?,
        _ => return Err(QueryError::below(&format!("{at}.method.type"), "expected rate or count")),
    };
    let seed = present(members, "seed");
    let seed = seed.map(|seed| seed.as_i64().ok_or_else(|| wrong(&format!("{at}.seed"), "a whole number", seed)));
    Ok(Sample { amount, seed: seed.transpose()? })
}

fn interval(at: &str, members: &Object) -> Read<Interval> {
    let value = members.get("value").unwrap_or(&Value::Null);
    let number = value.as_i64().ok_or_else(|| wrong(&format!("{at}.value"), "a whole number", value))?;
    let unit = members.get("unit").unwrap_or(&Value::Null);
    let known = unit.as_str().and_then(Unit::of);
    Ok(Interval { value: number, unit: known.ok_or_else(|| wrong(&format!("{at}.unit"), "a unit of time", unit))? })
}

fn steps(at: &str, members: &Object, key: &str) -> Read<Vec<Step>> {
    let place = format!("{at}.{key}");
    let given = members.get(key).unwrap_or(&Value::Null);
    let all = given.as_array().filter(|all| !all.is_empty() && all.len() <= usize::from(DEPTH_MAX));
    let all = all.ok_or_else(|| wrong(&place, "an array of 1 to 256 texts and whole numbers", given))?;
    let step = |value: &Value| match value {
        Value::String(key) => Some(Step::Key(key.clone())),
        other => other.as_i64().map(Step::Index),
    };
    all.iter().map(|value| step(value).ok_or_else(|| wrong(&place, "a text or a whole number", value))).collect()
}

fn path(at: &str, members: &Object) -> Read<Path> {
    let steps = steps(at, members, "name")?;
    let quoted = match &steps[0] {
        // A name that needs quotes had some.
        Step::Key(key) => !can_begin_operand(key) || members.get("quoted") == Some(&Value::Bool(true)),
        Step::Index(_) => return Err(QueryError::below(&format!("{at}.name"), "a path begins with a name")),
    };
    Ok(Path { steps, quotes: if quoted { Quotes::Name } else { Quotes::None } })
}

fn one_name(at: &str, members: &Object) -> Read<String> {
    match steps(at, members, "name")?.as_slice() {
        [Step::Key(name)] => Ok(name.to_lowercase()),
        _ => Err(QueryError::below(&format!("{at}.name"), "expected one name")),
    }
}

/// `name` is an ident, or a text.
fn function_name(at: &str, members: &Object) -> Read<String> {
    let place = format!("{at}.name");
    let name = match present(members, "name") {
        Some(Value::String(name)) => name.to_lowercase(),
        Some(Value::Object(ident)) => one_name(&place, ident)?,
        Some(other) => return Err(wrong(&place, "an ident", other)),
        None => return Err(missing(at, "name")),
    };
    if can_be_called(&name) { Ok(name) } else { Err(QueryError::below(&place, no_function(&name))) }
}
