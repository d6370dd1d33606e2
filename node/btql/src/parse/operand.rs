//! Parser of operands.

use serde_json::Value;

use super::{Dialect, Parser};
use crate::ast::{At, Binary, Call, Expr, Interval, Node, Path, Quotes, Step, Type, Unit};
use crate::error::QueryError;
use crate::lex::{Number, Token, is_plain_word};
use crate::print::can_begin_operand;

/// Words that begin no operand.
pub(crate) const NEVER_OPERANDS: [&str; 9] = ["and", "or", "in", "is", "as", "then", "else", "when", "end"];
pub(crate) const NEVER_OPERANDS_IN_SQL: [&str; 17] = [
    "select",
    "from",
    "where",
    "group",
    "order",
    "having",
    "limit",
    "offset",
    "union",
    "intersect",
    "except",
    "join",
    "on",
    "using",
    "unpivot",
    "pivot",
    "settings",
];
/// Words that say what the text behind them is.
const TYPED_TEXTS: [&str; 2] = ["date", "timestamp"];
const CALLS_WITHOUT_PARENTHESES: [&str; 2] = ["current_date", "current_timestamp"];
/// Words that are something else than a path where an operand begins.
pub(crate) const MEAN_SOMETHING: [&str; 16] = [
    "null",
    "true",
    "false",
    "not",
    "case",
    "cast",
    "extract",
    "exists",
    "interval",
    "date",
    "timestamp",
    "isnull",
    "isnotnull",
    "current_date",
    "current_timestamp",
    "distinct",
];

/// Reserved words that are no calls even before a parenthesis.
const NEVER_CALLED: [&str; 6] = ["null", "true", "false", "not", "case", "cast"];

/// Whether a function may have this name, which is in lower case; most that may are none.
pub(super) fn can_be_called(name: &str) -> bool {
    let is_such = MEAN_SOMETHING.contains(&name) && !NEVER_CALLED.contains(&name);
    is_plain_word(name) && (can_begin_operand(name) || is_such)
}

pub(super) fn no_function(name: &str) -> String {
    format!("there is no function `{name}`")
}

impl Parser<'_> {
    pub(super) fn operand(&mut self) -> Result<Expr, QueryError> {
        let at = self.at();
        match self.peek().clone() {
            Token::Number(number) => {
                self.advance();
                self.number(at, number)
            }
            Token::Text(text) => {
                self.advance();
                self.made(at, Node::Literal(Value::String(text)))
            }
            Token::Double(name) | Token::Name(name) => {
                let is_double = matches!(self.peek(), Token::Double(_));
                self.advance();
                let quotes = if is_double { Quotes::Undecided } else { Quotes::Name };
                self.made(at, Node::Path(Path { steps: vec![Step::Key(name)], quotes }))
            }
            Token::Symbol("(") => self.parenthesized(),
            Token::Symbol("[") => {
                self.advance();
                let of = self.list("]")?;
                self.made(at, Node::array(of))
            }
            Token::Symbol("{") => self.object(),
            Token::Symbol("*") => Err(self.error("`*` stands for all columns only alone in a select, and in count(*)")),
            Token::Word(_) if self.starts_operand(0) => self.word(),
            _ => Err(self.expected("an expression")),
        }
    }

    /// Whether what comes can begin an operand.
    pub(super) fn starts_operand(&self, ahead: usize) -> bool {
        match self.peek_at(ahead) {
            Token::Word(word) => {
                let is_one_of = |words: &[&str]| words.iter().any(|never| word.eq_ignore_ascii_case(never));
                let is_field = matches!(self.peek_at(ahead + 1), Token::Symbol("." | "["));
                let never =
                    is_one_of(&NEVER_OPERANDS) || self.dialect == Dialect::Sql && is_one_of(&NEVER_OPERANDS_IN_SQL);
                (!never || is_field && !is_one_of(&NEVER_OPERANDS)) && !self.is_clause_start_at(ahead)
            }
            Token::Symbol(symbol) => matches!(*symbol, "(" | "[" | "{"),
            Token::End => false,
            _ => true,
        }
    }

    /// A number, or a share of a hundred: `50%`, but `10 % 3` and `10%3` are what is left of a division (D-23).
    fn number(&mut self, at: At, number: Number) -> Result<Expr, QueryError> {
        let adjacent = self.tokens[self.next - 1].end == self.tokens[self.next].start;
        if self.is_symbol("%") && adjacent && !self.starts_operand(1) {
            self.advance();
            let share = match number {
                Number::Signed(number) => number as f64,
                Number::Unsigned(number) => number as f64,
                Number::Float(number) => number,
            } / 100.0;
            return self.made(at, Node::Literal(share.into()));
        }
        let value = match number {
            Number::Signed(number) => number.into(),
            Number::Unsigned(number) => number.into(),
            Number::Float(number) => number.into(),
        };
        self.made(at, Node::Literal(value))
    }

    fn parenthesized(&mut self) -> Result<Expr, QueryError> {
        self.advance();
        if self.is_any_word(&["select", "with"]) && self.dialect == Dialect::Sql {
            return Err(self.error("a query within an expression is not supported: only FROM may be one"));
        }
        let open_ternaries = std::mem::take(&mut self.open_ternaries);
        let expr = self.expr()?;
        self.open_ternaries = open_ternaries;
        if self.is_symbol(",") {
            return Err(self.error("a list in parentheses stands only behind IN; an array is [a, b]"));
        }
        if !self.take_symbol(")") {
            return Err(self.expected("an operator or `)`"));
        }
        Ok(expr)
    }

    fn object(&mut self) -> Result<Expr, QueryError> {
        let at = self.at();
        self.advance();
        let open_ternaries = std::mem::take(&mut self.open_ternaries);
        let mut of: Vec<(String, Expr)> = Vec::new();
        while !self.take_symbol("}") {
            let key = match self.peek() {
                Token::Text(_) => self.text_literal("a key")?,
                _ => self.name("a key or `}`")?,
            };
            if of.iter().any(|(other, _)| *other == key) {
                return Err(self.error(format!("the key `{key}` stands twice in this object")));
            }
            self.expect_symbol(":")?;
            of.push((key, self.expr()?));
            if !self.is_symbol("}") {
                self.expect_symbol(",")?;
            }
        }
        self.open_ternaries = open_ternaries;
        self.made(at, Node::object(of))
    }

    fn word(&mut self) -> Result<Expr, QueryError> {
        let at = self.at();
        let Token::Word(word) = self.advance() else { unreachable!("it was seen") };
        let name = word.to_lowercase();
        let calls = self.is_symbol("(");
        let is_path = matches!(self.peek(), Token::Symbol("." | "["));
        // A word of the language can only be said again in quotes, and means what it means in them.
        let quotes = if can_begin_operand(&word) { Quotes::None } else { Quotes::Name };
        let path = |word| Node::Path(Path { steps: vec![Step::Key(word)], quotes });
        if is_path {
            return self.made(at, path(word));
        }
        match (name.as_str(), self.peek()) {
            ("null", _) => self.made(at, Node::Literal(Value::Null)),
            ("true" | "false", _) => self.made(at, Node::Literal(Value::Bool(name == "true"))),
            ("case", _) => self.case(at),
            ("cast", _) if calls => self.cast_call(at),
            ("extract", _) if calls && self.is_word_at(2, "from") => self.extract(at),
            ("interval", Token::Number(_) | Token::Text(_) | Token::Symbol("-")) => self.interval(at),
            ("exists", _) if calls && self.is_word_at(1, "select") => {
                Err(self.error_at(at, "EXISTS (SELECT ...) is not supported"))
            }
            (_, Token::Text(text)) if TYPED_TEXTS.contains(&name.as_str()) => {
                let text = Value::String(text.clone());
                self.advance();
                let literal = self.made(at, Node::Literal(text))?;
                let to = if name == "date" { Type::Date } else { Type::Timestamp };
                self.made(at, Node::Cast(Box::new(literal), to))
            }
            _ if calls && !can_be_called(&name) => Err(self.error_at(at, no_function(&name))),
            _ if calls => self.call(at, name),
            _ if CALLS_WITHOUT_PARENTHESES.contains(&name.as_str()) => {
                self.made(at, Node::Call(Call { name, args: Vec::new(), distinct: false }))
            }
            _ => self.made(at, path(word)),
        }
    }

    fn call(&mut self, at: At, name: String) -> Result<Expr, QueryError> {
        self.advance();
        if self.is_symbol("*") && matches!(self.peek_at(1), Token::Symbol(")")) {
            let star_at = self.at();
            self.advance();
            self.advance();
            let star = self.made(star_at, Node::Star)?;
            self.no_window()?;
            return self.made(at, Node::Call(Call { name, args: vec![star], distinct: false }));
        }
        // A column of that name needs quotes here.
        let something_follows = self.starts_operand(1) || matches!(self.peek_at(1), Token::Symbol("-" | "+"));
        let distinct = self.is_word("distinct") && something_follows;
        if distinct {
            self.advance();
        }
        let args = self.list(")")?;
        self.no_window()?;
        self.made(at, Node::Call(Call { name, args, distinct }))
    }

    fn no_window(&self) -> Result<(), QueryError> {
        let over = self.is_word("over") && matches!(self.peek_at(1), Token::Symbol("("));
        if over { Err(self.error("window functions (OVER) are not supported")) } else { Ok(()) }
    }

    fn case(&mut self, at: At) -> Result<Expr, QueryError> {
        let open_ternaries = std::mem::take(&mut self.open_ternaries);
        let of = if self.is_word("when") { None } else { Some(self.expr()?) };
        let mut cases = Vec::new();
        while self.take_word("when") {
            let mut condition = self.expr()?;
            if let Some(of) = &of {
                self.nodes += of.size();
                let at = condition.at;
                condition = self.made(at, Node::Binary(Binary::Eq, Box::new(of.clone()), Box::new(condition)))?;
            }
            self.expect_word("then")?;
            cases.push((condition, self.expr()?));
        }
        if cases.is_empty() {
            return Err(self.expected("WHEN"));
        }
        let otherwise = if self.take_word("else") { Some(Box::new(self.expr()?)) } else { None };
        if !self.take_word("end") {
            return Err(self.expected("WHEN, ELSE or END"));
        }
        self.open_ternaries = open_ternaries;
        self.made(at, Node::If(cases, otherwise))
    }

    fn cast_call(&mut self, at: At) -> Result<Expr, QueryError> {
        self.advance();
        let of = self.expr()?;
        self.expect_word("as")?;
        let to = self.type_name()?;
        self.expect_symbol(")")?;
        self.made(at, Node::Cast(Box::new(of), to))
    }

    /// `extract(day from x)` is `date_part('day', x)`.
    fn extract(&mut self, at: At) -> Result<Expr, QueryError> {
        self.advance();
        let unit_at = self.at();
        let unit = self.name("a unit of time")?;
        self.expect_word("from")?;
        let of = self.expr()?;
        self.expect_symbol(")")?;
        let unit = self.made(unit_at, Node::Literal(Value::String(unit.to_lowercase())))?;
        self.made(at, Node::Call(Call { name: "date_part".into(), args: vec![unit, of], distinct: false }))
    }

    fn interval(&mut self, at: At) -> Result<Expr, QueryError> {
        if let Token::Text(text) = self.peek() {
            let (text, mut words) = (text.clone(), text.split_whitespace());
            let parts = words.next().and_then(|value| value.parse().ok()).zip(words.next().and_then(Unit::of));
            let parts = parts.filter(|_| words.next().is_none());
            let (value, unit) = parts.ok_or_else(|| self.error(format!("`{text}` is no interval, as '7 days' is")))?;
            self.advance();
            return self.made(at, Node::Interval(Interval { value, unit }));
        }
        let value = self.signed_number("an interval")?;
        let unit = match self.peek() {
            Token::Word(word) => Unit::of(word),
            _ => None,
        };
        let unit = unit.ok_or_else(|| self.expected("a unit of time: year, month, week, day, hour, minute, second"))?;
        self.advance();
        self.made(at, Node::Interval(Interval { value, unit }))
    }
}
