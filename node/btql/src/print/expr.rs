//! Printer of expressions, the same for SQL and clauses. It prints parentheses only where they are needed.

use std::fmt::Write;

use serde_json::Value;

use crate::ast::{Binary, Call, Expr, Logic, Node, Path, Precedence, Quotes, Step, Unary};
use crate::lex::is_plain_word;
use crate::parse::operand::{MEAN_SOMETHING, NEVER_OPERANDS, NEVER_OPERANDS_IN_SQL};

/// An expression as text.
pub fn expression(expr: &Expr) -> String {
    let mut out = String::new();
    put(&mut out, expr);
    out
}

/// Whether a word is read as a path where an operand begins, in any of the languages.
pub(crate) fn can_begin_operand(word: &str) -> bool {
    let never = NEVER_OPERANDS.iter().chain(&NEVER_OPERANDS_IN_SQL).chain(&MEAN_SOMETHING);
    is_plain_word(word) && !never.into_iter().any(|never| word.eq_ignore_ascii_case(never))
}

/// An alias, or anything else that can only be a name.
pub(crate) fn name(name: &str) -> String {
    if can_begin_operand(name) { name.to_owned() } else { in_backquotes(name) }
}

fn in_backquotes(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

pub(super) fn text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

pub(super) fn put(out: &mut String, expr: &Expr) {
    crate::level(|| put_node(out, &expr.node));
}

fn put_node(out: &mut String, node: &Node) {
    match node {
        Node::Literal(value) => put_literal(out, value),
        Node::Interval(interval) => {
            let _ = write!(out, "interval {} {}", interval.value, interval.unit.name());
        }
        Node::Path(path) => put_path(out, path),
        Node::Of(of, steps) => {
            put_from(out, of, matches!(of.node, Node::Call(_)).then_some(Precedence::Primary));
            steps.iter().for_each(|step| put_step(out, step));
        }
        Node::Star => out.push('*'),
        Node::Call(call) => put_call(out, call),
        Node::Unary(unary, of) => put_unary(out, *unary, of),
        Node::Binary(binary, left, right) => put_binary(out, *binary, left, right),
        Node::Logic(logic, of) => {
            let (word, tighter) = match logic {
                Logic::And => (" AND ", Precedence::Not),
                Logic::Or => (" OR ", Precedence::And),
            };
            put_joined(out, of, word, |out, expr| put_from(out, expr, Some(tighter)));
        }
        Node::Between(of) => {
            let [of, low, high] = &**of;
            put_from(out, of, Some(Precedence::Sum));
            out.push_str(" BETWEEN ");
            put_from(out, low, Some(Precedence::Sum));
            out.push_str(" AND ");
            put_from(out, high, Some(Precedence::Sum));
        }
        Node::Array(of) => put_array(out, of, ["[", "]"]),
        Node::Object(of) => {
            out.push('{');
            put_joined(out, of, ", ", |out, (key, value)| {
                out.push_str(&text(key));
                out.push_str(": ");
                put(out, value);
            });
            out.push('}');
        }
        Node::If(cases, otherwise) => put_cases(out, cases, otherwise.as_deref()),
        Node::Cast(of, to) => {
            put_from(out, of, Some(Precedence::Cast));
            out.push_str("::");
            out.push_str(to.name());
        }
    }
}

/// In parentheses unless it binds at least so tightly; `None` always.
fn put_from(out: &mut String, expr: &Expr, from: Option<Precedence>) {
    let bare = from.is_some_and(|from| expr.node.precedence() >= from);
    if !bare {
        out.push('(');
    }
    put(out, expr);
    if !bare {
        out.push(')');
    }
}

fn put_joined<T>(out: &mut String, of: &[T], between: &str, put_one: impl Fn(&mut String, &T)) {
    for (number, one) in of.iter().enumerate() {
        if number > 0 {
            out.push_str(between);
        }
        put_one(out, one);
    }
}

fn put_array(out: &mut String, of: &[Expr], [open, close]: [&str; 2]) {
    out.push_str(open);
    put_joined(out, of, ", ", put);
    out.push_str(close);
}

fn put_literal(out: &mut String, value: &Value) {
    match value {
        Value::String(string) => out.push_str(&text(string)),
        Value::Array(of) => {
            out.push('[');
            put_joined(out, of, ", ", put_literal);
            out.push(']');
        }
        Value::Object(of) => {
            out.push('{');
            for (number, (key, value)) in of.iter().enumerate() {
                out.push_str(if number > 0 { ", " } else { "" });
                out.push_str(&text(key));
                out.push_str(": ");
                put_literal(out, value);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

pub(super) fn put_path(out: &mut String, path: &Path) {
    for (number, step) in path.steps.iter().enumerate() {
        match step {
            Step::Key(key) if number > 0 => put_key(out, key),
            Step::Key(key) if path.quotes == Quotes::None && can_begin_operand(key) => out.push_str(key),
            Step::Key(key) => out.push_str(&in_backquotes(key)),
            Step::Index(index) => {
                let _ = write!(out, "[{index}]");
            }
        }
    }
}

fn put_step(out: &mut String, step: &Step) {
    match step {
        Step::Key(key) => put_key(out, key),
        Step::Index(index) => {
            let _ = write!(out, "[{index}]");
        }
    }
}

fn put_key(out: &mut String, key: &str) {
    out.push('.');
    if is_plain_word(key) { out.push_str(key) } else { out.push_str(&in_backquotes(key)) }
}

fn put_call(out: &mut String, call: &Call) {
    out.push_str(&call.name);
    out.push_str(if call.distinct { "(DISTINCT " } else { "(" });
    put_joined(out, &call.args, ", ", put);
    out.push(')');
}

fn put_unary(out: &mut String, unary: Unary, of: &Expr) {
    match unary {
        Unary::Not => {
            out.push_str("NOT ");
            put_from(out, of, Some(Precedence::Not));
        }
        Unary::Minus => {
            out.push('-');
            put_from(out, of, Some(Precedence::Cast)); // two of them would begin a comment
        }
        Unary::IsNull | Unary::IsNotNull => {
            put_from(out, of, Some(Precedence::Sum));
            out.push_str(if unary == Unary::IsNull { " IS NULL" } else { " IS NOT NULL" });
        }
    }
}

fn put_binary(out: &mut String, binary: Binary, left: &Expr, right: &Expr) {
    let precedence = binary.precedence();
    let (from_left, from_right) = match precedence {
        Precedence::Sum => (Precedence::Sum, Precedence::Product),
        Precedence::Product => (Precedence::Product, Precedence::Minus),
        _ => (Precedence::Sum, Precedence::Sum),
    };
    put_from(out, left, Some(from_left));
    out.push(' ');
    out.push_str(binary.symbol());
    out.push(' ');
    match &right.node {
        Node::Array(of) if binary == Binary::In => put_array(out, of, ["(", ")"]),
        Node::Literal(Value::Array(of)) if binary == Binary::In => {
            out.push('(');
            put_joined(out, of, ", ", put_literal);
            out.push(')');
        }
        _ => put_from(out, right, Some(from_right)),
    }
}

fn put_cases(out: &mut String, cases: &[(Expr, Expr)], otherwise: Option<&Expr>) {
    out.push_str("CASE");
    for (condition, then) in cases {
        out.push_str(" WHEN ");
        put(out, condition);
        out.push_str(" THEN ");
        put(out, then);
    }
    if let Some(otherwise) = otherwise {
        out.push_str(" ELSE ");
        put(out, otherwise);
    }
    out.push_str(" END");
}
