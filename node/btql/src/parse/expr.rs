//! The grammar of expressions, by precedence (btql.md, section 10).

use serde_json::Value;

use super::{Dialect, Parser, too_deep};
use crate::ast::{
    At, Binary, Call, DEPTH_MAX, Expr, Interval, Logic, Node, Path, Precedence, Quotes, Step, Type, Unary, Unit,
};
use crate::error::QueryError;
use crate::lex::{Number, Token};

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

/// Of a comparison: which kind, and so what stands behind it.
enum Operator {
    Symbol(Binary),
    In,
    Between,
    Is,
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Result<Expr, QueryError> {
        self.nested += 1;
        if self.nested > DEPTH_MAX {
            return Err(self.error(too_deep()));
        }
        let expr = self.ternary();
        self.nested -= 1;
        expr
    }

    fn ternary(&mut self) -> Result<Expr, QueryError> {
        let condition = self.binary(Precedence::Or)?;
        if !self.take_symbol("?") {
            return Ok(condition);
        }
        self.open_ternaries += 1;
        let then = self.expr()?;
        self.open_ternaries -= 1;
        self.expect_symbol(":")?;
        let otherwise = self.expr()?;
        let at = condition.at;
        // A chain is one list of cases, as CASE has it.
        let node = match otherwise.node {
            Node::If(mut cases, last) => {
                cases.insert(0, (condition, then));
                Node::If(cases, last)
            }
            _ => Node::If(vec![(condition, then)], Some(Box::new(otherwise))),
        };
        self.made(at, node)
    }

    /// Operators that bind at least as tightly as `from`.
    fn binary(&mut self, from: Precedence) -> Result<Expr, QueryError> {
        match from {
            Precedence::Or => self.logic(Logic::Or, "or", Precedence::And),
            Precedence::And => self.logic(Logic::And, "and", Precedence::Not),
            Precedence::Not => self.not(),
            Precedence::Comparison => self.comparison(),
            Precedence::Sum => self.chain(Precedence::Sum, Precedence::Product),
            Precedence::Product => self.chain(Precedence::Product, Precedence::Minus),
            Precedence::Minus => self.minus(),
            Precedence::Cast | Precedence::Primary => self.cast(),
        }
    }

    fn logic(&mut self, logic: Logic, word: &str, tighter: Precedence) -> Result<Expr, QueryError> {
        let first = self.binary(tighter)?;
        if !self.is_word(word) {
            return self.no_c_operator(first);
        }
        let at = first.at;
        let mut of = vec![first];
        while self.take_word(word) {
            of.push(self.binary(tighter)?);
        }
        self.made(at, Node::logic(logic, of))
    }

    /// What people write who come from elsewhere.
    fn no_c_operator(&self, expr: Expr) -> Result<Expr, QueryError> {
        match self.peek() {
            Token::Symbol("&&") => Err(self.error("`&&` is written AND here")),
            Token::Symbol("==") => Err(self.error("`==` is written = here")),
            _ => Ok(expr),
        }
    }

    fn not(&mut self) -> Result<Expr, QueryError> {
        let at = self.at();
        if !self.is_word("not") || self.is_clause_start() {
            return self.comparison();
        }
        let mut nots = 0u16;
        while self.take_word("not") {
            nots = nots.saturating_add(1);
        }
        let mut expr = self.comparison()?;
        for _ in 0..nots {
            expr = self.made(at, Node::Unary(Unary::Not, Box::new(expr)))?;
        }
        Ok(expr)
    }

    fn comparison(&mut self) -> Result<Expr, QueryError> {
        let at = self.at();
        for (word, unary) in [("isnull", Unary::IsNull), ("isnotnull", Unary::IsNotNull)] {
            if self.is_word(word) && self.starts_operand(1) && !self.is_clause_start() {
                self.advance();
                let of = self.binary(Precedence::Sum)?;
                return self.made(at, Node::Unary(unary, Box::new(of)));
            }
        }
        let mut left = self.binary(Precedence::Sum)?;
        let mut compared = false;
        loop {
            let at = left.at;
            if let Some(unary) = self.null_test() {
                left = self.made(at, Node::Unary(unary, Box::new(left)))?;
                continue;
            }
            let before = self.at();
            let negated = self.is_word("not") && self.negatable(1);
            if negated {
                self.advance();
            }
            let Some(operator) = self.operator() else { return self.no_c_operator(left) };
            if compared {
                let what = "comparisons do not chain: join them with AND, or put one in parentheses";
                return Err(self.error_at(before, what));
            }
            compared = true;
            let node = self.compared(left, operator)?;
            left = self.made(at, node)?;
            if negated {
                left = self.made(at, Node::Unary(Unary::Not, Box::new(left)))?;
            }
        }
    }

    /// Whether the word there is an operator that NOT may stand before.
    fn negatable(&self, ahead: usize) -> bool {
        ["in", "like", "ilike", "match", "includes", "contains", "between"]
            .iter()
            .any(|word| self.is_word_at(ahead, word))
    }

    fn null_test(&mut self) -> Option<Unary> {
        if self.take_words(["is", "null"]) || self.take_word("isnull") {
            return Some(Unary::IsNull);
        }
        if self.is_word("is") && self.is_word_at(1, "not") && self.is_word_at(2, "null") {
            (0..3).for_each(|_| drop(self.advance()));
            return Some(Unary::IsNotNull);
        }
        self.take_word("isnotnull").then_some(Unary::IsNotNull)
    }

    /// The operator that follows, which is taken.
    fn operator(&mut self) -> Option<Operator> {
        let found = match self.peek() {
            Token::Symbol(symbol) => {
                let symbol = if *symbol == "<>" { "!=" } else { *symbol };
                let found = Binary::ALL.into_iter().find(|binary| binary.symbol() == symbol)?;
                (found.precedence() == Precedence::Comparison).then_some(Operator::Symbol(found))?
            }
            Token::Word(word) if !self.is_clause_start() => match word.to_ascii_lowercase().as_str() {
                "like" => Operator::Symbol(Binary::Like),
                "ilike" => Operator::Symbol(Binary::ILike),
                "match" => Operator::Symbol(Binary::Match),
                "includes" | "contains" => Operator::Symbol(Binary::Includes),
                "in" => Operator::In,
                "between" => Operator::Between,
                "is" => Operator::Is,
                _ => return None,
            },
            _ => return None,
        };
        self.advance();
        Some(found)
    }

    fn compared(&mut self, left: Expr, operator: Operator) -> Result<Node, QueryError> {
        let left = Box::new(left);
        match operator {
            Operator::Symbol(binary) => {
                let right = self.binary(Precedence::Sum)?;
                Ok(Node::Binary(binary, left, Box::new(right)))
            }
            Operator::In => Ok(Node::Binary(Binary::In, left, Box::new(self.in_list()?))),
            Operator::Between => {
                let low = self.binary(Precedence::Sum)?;
                self.expect_word("and")?;
                let high = self.binary(Precedence::Sum)?;
                Ok(Node::Between(Box::new([*left, low, high])))
            }
            Operator::Is => self.is_what(left),
        }
    }

    /// Behind IS, where it is not NULL: that is `null_test`'s.
    fn is_what(&mut self, left: Box<Expr>) -> Result<Node, QueryError> {
        let negated = self.take_word("not");
        let binary = if negated { Binary::NotSame } else { Binary::Same };
        let at = self.at();
        if self.take_words(["distinct", "from"]) {
            let right = self.binary(Precedence::Sum)?;
            let binary = if negated { Binary::Same } else { Binary::NotSame };
            return Ok(Node::Binary(binary, left, Box::new(right)));
        }
        if !self.is_any_word(&["true", "false"]) {
            return Err(self.expected("NULL, NOT NULL, TRUE, FALSE or DISTINCT FROM behind IS"));
        }
        let value = self.take_word("true") || !self.take_word("false");
        let right = self.made(at, Node::Literal(value.into()))?;
        Ok(Node::Binary(binary, left, Box::new(right)))
    }

    /// `(a, b)`, `[a, b]`, or something that is an array.
    fn in_list(&mut self) -> Result<Expr, QueryError> {
        let at = self.at();
        if !self.is_symbol("(") {
            return self.binary(Precedence::Sum);
        }
        self.advance();
        if self.is_word("select") {
            return Err(self.error("IN (SELECT ...) is not supported: list the values, or ask twice"));
        }
        let of = self.list(")")?;
        self.made(at, Node::array(of))
    }

    /// What stands between commas, up to the closing symbol, which is taken.
    fn list(&mut self, close: &'static str) -> Result<Vec<Expr>, QueryError> {
        let open_ternaries = std::mem::take(&mut self.open_ternaries);
        let mut of = Vec::new();
        while !self.take_symbol(close) {
            of.push(self.expr()?);
            if !self.is_symbol(close) && !self.take_symbol(",") {
                return Err(self.expected(&format!("an operator, `,` or `{close}`")));
            }
        }
        self.open_ternaries = open_ternaries;
        Ok(of)
    }

    /// Operators of one precedence, the left ones first.
    fn chain(&mut self, precedence: Precedence, tighter: Precedence) -> Result<Expr, QueryError> {
        let mut left = self.binary(tighter)?;
        loop {
            let Token::Symbol(symbol) = *self.peek() else { return Ok(left) };
            let found = Binary::ALL.into_iter().find(|binary| binary.symbol() == symbol);
            let Some(binary) = found.filter(|binary| binary.precedence() == precedence) else { return Ok(left) };
            self.advance();
            let right = self.binary(tighter)?;
            let at = left.at;
            left = self.made(at, Node::Binary(binary, Box::new(left), Box::new(right)))?;
        }
    }

    fn minus(&mut self) -> Result<Expr, QueryError> {
        let at = self.at();
        if self.take_symbol("+") {
            return self.minus_nested();
        }
        if !self.take_symbol("-") {
            return self.cast();
        }
        let of = self.minus_nested()?;
        self.made(at, Node::minus(of))
    }

    fn minus_nested(&mut self) -> Result<Expr, QueryError> {
        self.nested += 1;
        if self.nested > DEPTH_MAX {
            return Err(self.error(too_deep()));
        }
        let of = self.minus();
        self.nested -= 1;
        of
    }

    fn cast(&mut self) -> Result<Expr, QueryError> {
        let mut expr = self.postfix()?;
        while self.take_symbol("::") {
            let to = self.type_name()?;
            let at = expr.at;
            expr = self.made(at, Node::Cast(Box::new(expr), to))?;
        }
        Ok(expr)
    }

    fn type_name(&mut self) -> Result<Type, QueryError> {
        let known = match self.peek() {
            Token::Word(name) => Type::of(name),
            _ => None,
        };
        let known =
            known.ok_or_else(|| self.expected("a type: string, boolean, integer, number, date, timestamp or json"))?;
        self.advance();
        // `varchar(20)`, `double precision`
        if self.take_symbol("(") {
            self.whole_number("a length")?;
            self.expect_symbol(")")?;
        }
        self.take_word("precision");
        Ok(known)
    }

    /// An operand and the steps into it.
    fn postfix(&mut self) -> Result<Expr, QueryError> {
        let mut expr = self.operand()?;
        loop {
            let at = expr.at;
            let step = match self.peek() {
                Token::Symbol(".") => {
                    self.advance();
                    Step::Key(self.name("a name behind the point")?)
                }
                Token::Symbol("[") => {
                    self.advance();
                    self.bracketed()?
                }
                Token::Symbol("->" | "->>") => {
                    let as_text = self.is_symbol("->>");
                    self.advance();
                    let step = self.step("a key or an index behind the arrow")?;
                    expr = self.step_into(expr, step)?;
                    if as_text {
                        expr = self.made(at, Node::Cast(Box::new(expr), Type::Text))?;
                    }
                    continue;
                }
                _ => return Ok(expr),
            };
            expr = self.step_into(expr, step)?;
        }
    }

    fn step_into(&mut self, expr: Expr, step: Step) -> Result<Expr, QueryError> {
        let at = expr.at;
        let node = Node::of(expr, vec![step]);
        if let Node::Path(Path { steps, .. }) | Node::Of(_, steps) = &node
            && steps.len() > usize::from(DEPTH_MAX)
        {
            return Err(self.error_at(at, format!("this path has more than {DEPTH_MAX} steps")));
        }
        Ok(Expr::new(at, node))
    }

    fn bracketed(&mut self) -> Result<Step, QueryError> {
        let step = self.step("an index or a key in quotes")?;
        self.expect_symbol("]")?;
        Ok(step)
    }

    fn step(&mut self, what: &str) -> Result<Step, QueryError> {
        match self.peek() {
            Token::Text(_) | Token::Double(_) => self.text_literal(what).map(Step::Key),
            Token::Number(_) | Token::Symbol("-") => self.signed_number("an index").map(Step::Index),
            _ => Err(self.expected(what)),
        }
    }

    fn operand(&mut self) -> Result<Expr, QueryError> {
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
    fn starts_operand(&self, ahead: usize) -> bool {
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
        if is_path {
            return self.made(at, Node::Path(Path { steps: vec![Step::Key(word)], quotes: Quotes::None }));
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
            _ if calls => self.call(at, name),
            _ if CALLS_WITHOUT_PARENTHESES.contains(&name.as_str()) => {
                self.made(at, Node::Call(Call { name, args: Vec::new(), distinct: false }))
            }
            _ => self.made(at, Node::Path(Path { steps: vec![Step::Key(word)], quotes: Quotes::None })),
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
