//! Binding of expressions: operators and functions of the engine, and literals as values.

use assay_storage_model::event::parse_created;
use serde_json::Value;

use super::time_arguments::{bin, can_be_unit, date_part};
use super::{Binder, Mode, QueryError, null};
use crate::ast::{self, Binary, Call, DEPTH_MAX, Interval, Logic, Node, Type, Unary};
use crate::bound::{BoundExpr, Datum, Field, Function, Kinds};
use crate::error::quoted;
use crate::functions::{ARGUMENTS_MAX, ArgumentKind, CallTarget, SpecialFunction, find, near};

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Expressions within each other, aliases written out; twice, for one of a group may be bound as one of a row.
const NESTED_MAX: u16 = 2 * DEPTH_MAX;

impl<'a> Binder<'a> {
    pub(super) fn expr(&mut self, expr: &'a ast::Expr) -> Result<BoundExpr, QueryError> {
        self.nested += 1;
        if self.nested > NESTED_MAX {
            return Err(
                self.error(expr, format!("with its aliases written out this is nested deeper than {NESTED_MAX}"))
            );
        }
        let bound = crate::level(|| self.expr_here(expr));
        self.nested -= 1;
        bound
    }

    fn expr_here(&mut self, expr: &'a ast::Expr) -> Result<BoundExpr, QueryError> {
        if matches!(self.mode, Mode::Groups | Mode::Traces)
            && let Some(bound) = self.of_group(expr)?
        {
            return Ok(bound);
        }
        match &expr.node {
            Node::Literal(value) => Ok(BoundExpr::Const(datum(value))),
            Node::Interval(interval) => Ok(BoundExpr::Const(Datum::Interval(*interval))),
            Node::Path(path) => self.path(path).map_err(|error| self.placed(expr, error)),
            Node::Of(of, steps) => Ok(super::names::into(self.expr(of)?, steps.clone())),
            Node::Star => Err(self.error(expr, "a star stands alone in a select, and in count(*)")),
            Node::Call(call) => self.call(expr, call),
            Node::Unary(unary, of) => self.unary(*unary, of),
            Node::Binary(binary, left, right) => self.binary(expr, *binary, left, right),
            Node::Logic(logic, of) => {
                let of = of.iter().map(|of| self.expr(of)).collect::<Result<_, _>>()?;
                Ok(BoundExpr::Call(if *logic == Logic::And { Function::And } else { Function::Or }, of))
            }
            Node::Between(of) => {
                let [of, low, high] = &**of;
                let least = self.compared(expr, Function::Ge, of, low)?;
                let most = self.compared(expr, Function::Le, of, high)?;
                Ok(BoundExpr::Call(Function::And, vec![least, most]))
            }
            Node::Array(of) => {
                let of = of.iter().map(|of| self.expr(of)).collect::<Result<_, _>>()?;
                Ok(BoundExpr::Call(Function::Array, of))
            }
            Node::Object(of) => {
                let keys = of.iter().map(|(key, _)| key.clone()).collect();
                let of = of.iter().map(|(_, of)| self.expr(of)).collect::<Result<_, _>>()?;
                Ok(BoundExpr::Call(Function::Object(keys), of))
            }
            Node::If(cases, otherwise) => {
                let case =
                    |(condition, then): &'a (ast::Expr, ast::Expr)| Ok((self.expr(condition)?, self.expr(then)?));
                let cases = cases.iter().map(case).collect::<Result<_, QueryError>>()?;
                let otherwise = otherwise.as_ref().map_or(Ok(null()), |otherwise| self.expr(otherwise))?;
                Ok(BoundExpr::If(cases, Box::new(otherwise)))
            }
            Node::Cast(of, to) => {
                let of = self.expr(of)?;
                Ok(cast(of, *to))
            }
        }
    }

    /// Adds the position of an expression to an error.
    fn placed(&self, expr: &ast::Expr, error: QueryError) -> QueryError {
        if error.place.is_some() { error } else { self.error(expr, error.what) }
    }

    fn unary(&mut self, unary: Unary, of: &'a ast::Expr) -> Result<BoundExpr, QueryError> {
        let of = self.expr(of)?;
        Ok(match (unary, of) {
            (Unary::Minus, BoundExpr::Const(Datum::Interval(interval))) => {
                BoundExpr::Const(Datum::Interval(Interval { value: interval.value.saturating_neg(), ..interval }))
            }
            (Unary::Not, of) => BoundExpr::Call(Function::Not, vec![of]),
            (Unary::Minus, of) => BoundExpr::Call(Function::Minus, vec![of]),
            (Unary::IsNull, of) => BoundExpr::Call(Function::IsNull, vec![of]),
            (Unary::IsNotNull, of) => BoundExpr::Call(Function::IsNotNull, vec![of]),
        })
    }

    fn binary(
        &mut self,
        whole: &'a ast::Expr,
        binary: Binary,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
    ) -> Result<BoundExpr, QueryError> {
        let function = match binary {
            Binary::Eq | Binary::Ne if left.is_null() || right.is_null() => {
                // D-49
                let of = self.expr(if right.is_null() { left } else { right })?;
                let test = if binary == Binary::Eq { Function::IsNull } else { Function::IsNotNull };
                return Ok(BoundExpr::Call(test, vec![of]));
            }
            Binary::Eq => return self.compared(whole, Function::Eq, left, right),
            Binary::Ne => return self.compared(whole, Function::Ne, left, right),
            Binary::Lt => return self.compared(whole, Function::Lt, left, right),
            Binary::Le => return self.compared(whole, Function::Le, left, right),
            Binary::Gt => return self.compared(whole, Function::Gt, left, right),
            Binary::Ge => return self.compared(whole, Function::Ge, left, right),
            Binary::Same => return self.compared(whole, Function::Same, left, right),
            Binary::NotSame => return self.compared(whole, Function::NotSame, left, right),
            Binary::In => return self.is_in(whole, left, right),
            Binary::Includes => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                return Ok(includes(left, right));
            }
            Binary::Regex | Binary::RegexAnyCase => {
                return self.regex(left, right, binary == Binary::RegexAnyCase);
            }
            Binary::NotRegex | Binary::NotRegexAnyCase => {
                let found = self.regex(left, right, binary == Binary::NotRegexAnyCase)?;
                return Ok(BoundExpr::Call(Function::Not, vec![found]));
            }
            Binary::Like | Binary::ILike => return self.like(left, right, binary == Binary::ILike),
            Binary::Match => Function::Match,
            Binary::Add => Function::Add,
            Binary::Sub => Function::Sub,
            Binary::Mul => Function::Mul,
            Binary::Div => Function::Div,
            Binary::Mod => Function::Mod,
            Binary::Concat => Function::Concat { skips_nulls: false },
        };
        let args = vec![self.expr(left)?, self.expr(right)?];
        if matches!(function, Function::Add | Function::Sub)
            && let [BoundExpr::Const(Datum::Time(time)), BoundExpr::Const(Datum::Interval(by))] = args.as_slice()
        {
            let by = if function == Function::Sub { Interval { value: by.value.saturating_neg(), ..*by } } else { *by };
            return Ok(crate::calendar::moved(*time, by).map_or_else(null, |time| BoundExpr::Const(Datum::Time(time))));
        }
        if matches!(function, Function::Mul | Function::Div | Function::Mod)
            && args.iter().any(|arg| matches!(self.kinds_of(arg), Kinds::Time | Kinds::Interval))
        {
            return Err(self.error(whole, "times and intervals are added and subtracted only"));
        }
        Ok(BoundExpr::Call(function, args))
    }

    fn kinds_of(&self, expr: &BoundExpr) -> Kinds {
        super::kinds::kinds(expr, &self.groups.aggregates, &self.groups.dimensions)
    }

    /// Text beside a time is read as a time, once.
    fn compared(
        &mut self,
        whole: &'a ast::Expr,
        function: Function,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
    ) -> Result<BoundExpr, QueryError> {
        let (mut left, mut right) = (self.expr(left)?, self.expr(right)?);
        if self.kinds_of(&left) == Kinds::Time {
            right = self.as_time(whole, right)?;
        } else if self.kinds_of(&right) == Kinds::Time {
            left = self.as_time(whole, left)?;
        }
        Ok(BoundExpr::Call(function, vec![left, right]))
    }

    fn as_time(&self, whole: &ast::Expr, expr: BoundExpr) -> Result<BoundExpr, QueryError> {
        let BoundExpr::Const(Datum::Text(text)) = &expr else { return Ok(expr) };
        match parse_created(text.trim()) {
            Some(time) => Ok(BoundExpr::Const(Datum::Time(time))),
            None => Err(self.error(whole, format!("{} is no time, as '2026-05-04T23:30:00Z' is", quoted(text)))),
        }
    }

    fn is_in(
        &mut self,
        whole: &'a ast::Expr,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
    ) -> Result<BoundExpr, QueryError> {
        let left = self.expr(left)?;
        let mut right = self.expr(right)?;
        if self.kinds_of(&left) == Kinds::Time
            && let BoundExpr::Const(Datum::Json(Value::Array(texts))) = &right
        {
            let times = texts.iter().map(|text| self.as_time(whole, BoundExpr::Const(datum(text))));
            right = BoundExpr::Call(Function::Array, times.collect::<Result<_, _>>()?);
        }
        if matches!(
            self.kinds_of(&right),
            Kinds::Boolean | Kinds::Integer | Kinds::Number | Kinds::Time | Kinds::Interval
        ) {
            return Err(self.error(whole, "IN looks into a list in parentheses, or into an array"));
        }
        Ok(BoundExpr::Call(Function::In, vec![left, right]))
    }

    fn call(&mut self, whole: &'a ast::Expr, call: &'a Call) -> Result<BoundExpr, QueryError> {
        let Some((target, row)) = find(&call.name) else {
            let hint = near(&call.name).map(|near| format!("; there is {near}")).unwrap_or_default();
            return Err(self.error(whole, format!("there is no function {}{hint}", quoted(&call.name))));
        };
        let counts = row.arity();
        if !counts.contains(&call.args.len()) {
            let wanted = match (counts.start(), counts.end()) {
                (least, most) if least == most => format!("{least}"),
                (least, most) if *most >= ARGUMENTS_MAX => format!("{least} or more"),
                (least, most) => format!("{least} to {most}"),
            };
            let what = format!("{} takes {wanted} arguments and not {}", call.name, call.args.len());
            return Err(self.error(whole, what));
        }
        let function = match target {
            CallTarget::Aggregate(_) => {
                let what = match self.mode {
                    Mode::Spans => "an aggregate has no place in a filter; HAVING (final_filter) is about groups",
                    _ => "an aggregate has no place here",
                };
                return Err(self.error(whole, what));
            }
            _ if call.distinct => return Err(self.error(whole, "DISTINCT belongs to aggregates")),
            CallTarget::Special(special) => return self.special(whole, special, &call.args),
            CallTarget::Operation(operation) => operation.function(),
            CallTarget::Scalar(function) => Function::Scalar(function),
        };
        let args = call.args.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>, _>>()?;
        if let (Function::Cast(to), [_]) = (&function, args.as_slice()) {
            return Ok(cast(args.into_iter().next().expect("one"), *to));
        }
        if let Function::Truncate { .. } = function
            && !matches!(self.kinds_of(&args[0]), Kinds::Time | Kinds::Any | Kinds::Text | Kinds::Null)
        {
            return Err(self.error(whole, "this takes a time"));
        }
        let args = args.into_iter().enumerate();
        let args = args.map(|(number, arg)| self.argument(whole, row.argument_kind(number), arg));
        let args = args.collect::<Result<_, _>>()?;
        Ok(BoundExpr::Call(function, args))
    }

    /// Checks and converts an argument that is constant, by its kind.
    fn argument(&mut self, whole: &ast::Expr, kind: ArgumentKind, arg: BoundExpr) -> Result<BoundExpr, QueryError> {
        match kind {
            ArgumentKind::Time => self.as_time(whole, arg),
            ArgumentKind::Pattern => self.group_pattern(whole, arg),
            ArgumentKind::Unit if !can_be_unit(&arg) => {
                Err(self.error(whole, "expected a unit of time such as 'day' or 'hour'"))
            }
            _ => Ok(arg),
        }
    }

    fn special(
        &mut self,
        whole: &'a ast::Expr,
        special: SpecialFunction,
        args: &'a [ast::Expr],
    ) -> Result<BoundExpr, QueryError> {
        let literal = |number: usize| match args.get(number).map(|arg| &arg.node) {
            Some(Node::Literal(Value::String(text))) => Some(text.as_str()),
            _ => None,
        };
        match special {
            SpecialFunction::Now => Ok(BoundExpr::Const(Datum::Time(self.env.now))),
            SpecialFunction::CurrentDate => {
                let shift = i64::from(self.env.tz_offset) * 60 * MICROS_PER_SECOND;
                let day = SECONDS_PER_DAY * MICROS_PER_SECOND;
                let local = self.env.now - shift;
                Ok(BoundExpr::Const(Datum::Time(local - local.rem_euclid(day) + shift)))
            }
            SpecialFunction::DateTrunc => {
                let units = "second, minute, hour, day, week, month, year, or a multiple such as '15 minutes'";
                let bin = literal(0).and_then(bin);
                let (unit, many) = bin.ok_or_else(|| self.error(whole, format!("date_trunc takes one of {units}")))?;
                let of = self.expr(&args[1])?;
                let of = self.as_time(whole, of)?;
                Ok(BoundExpr::Call(Function::Truncate { unit, many }, vec![of]))
            }
            SpecialFunction::DatePart => {
                let part = literal(0).and_then(date_part);
                let part =
                    part.ok_or_else(|| self.error(whole, "expected a part of a date such as 'day' or 'hour'"))?;
                let of = self.expr(&args[1])?;
                let of = self.as_time(whole, of)?;
                Ok(BoundExpr::Call(Function::DatePart(part), vec![of]))
            }
            // D-78: both are about columns of single rows, which they do not name.
            SpecialFunction::Search | SpecialFunction::EstimatedCost if self.mode == Mode::Groups => {
                Err(self.error(whole, "this is neither grouped by nor aggregated"))
            }
            SpecialFunction::Search => {
                let words = self.expr(&args[0])?;
                let searched = self.searched();
                if searched.is_empty() {
                    return Err(self.error(
                        whole,
                        "search() looks into input, output, expected, metadata and span_attributes, which are not here",
                    ));
                }
                let found =
                    searched.into_iter().map(|field| BoundExpr::Call(Function::Match, vec![field, words.clone()]));
                Ok(BoundExpr::Call(Function::Or, found.collect()))
            }
            SpecialFunction::EstimatedCost => self.estimated_cost().map_err(|error| self.placed(whole, error)),
            SpecialFunction::Includes => {
                let (left, right) = (self.expr(&args[0])?, self.expr(&args[1])?);
                Ok(includes(left, right))
            }
            SpecialFunction::ToInterval => match literal(0).and_then(crate::calendar::interval) {
                Some(interval) => Ok(BoundExpr::Const(Datum::Interval(interval))),
                None => Ok(BoundExpr::Call(Function::ToInterval, vec![self.expr(&args[0])?])),
            },
            SpecialFunction::AnySpan | SpecialFunction::FilterSpans => {
                let what = "any_span and filter_spans stand in the filter of a query, joined by AND, OR and NOT";
                Err(self.error(whole, what))
            }
        }
    }
}

/// D-60: of tags, null is empty.
fn includes(left: BoundExpr, right: BoundExpr) -> BoundExpr {
    let is_tags = matches!(&left, BoundExpr::Field(Field::Column("tags"), steps) if steps.is_empty());
    BoundExpr::Call(if is_tags { Function::TagsInclude } else { Function::Includes }, vec![left, right])
}

pub(super) fn datum(value: &Value) -> Datum {
    match value {
        Value::Null => Datum::Null,
        Value::Bool(boolean) => Datum::Boolean(*boolean),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Datum::Integer(whole),
            (None, Some(whole)) => Datum::Unsigned(whole),
            (None, None) => Datum::Float(number.as_f64().expect("JSON has no other numbers")),
        },
        Value::String(text) => Datum::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => Datum::Json(value.clone()),
    }
}

/// Casts a constant at once; an invalid cast is null (D-52). The day of a text is in UTC, since texts are not shifted
/// (D-66). The day of a time is local, and cast for each row.
fn cast(of: BoundExpr, to: Type) -> BoundExpr {
    let BoundExpr::Const(Datum::Text(text)) = &of else { return BoundExpr::Call(Function::Cast(to), vec![of]) };
    match to {
        Type::Timestamp => parse_created(text.trim()).map_or_else(null, |time| BoundExpr::Const(Datum::Time(time))),
        Type::Date => {
            let day = SECONDS_PER_DAY * MICROS_PER_SECOND;
            let midnight = parse_created(text.trim()).map(|time| time - time.rem_euclid(day));
            midnight.map_or_else(null, |time| BoundExpr::Const(Datum::Time(time)))
        }
        _ => BoundExpr::Call(Function::Cast(to), vec![of]),
    }
}
