//! Parser of expressions, by precedence (btql.md, section 10).

use super::{NESTED_MAX, Parser};
use crate::ast::{Binary, DEPTH_MAX, Expr, Logic, Node, Path, Precedence, Step, Type, Unary};
use crate::error::QueryError;
use crate::lex::Token;

/// Operator of a comparison, which decides on the operand that follows.
enum Operator {
    Symbol(Binary),
    In,
    Between,
    Is,
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Result<Expr, QueryError> {
        self.nested += 1;
        if self.nested > NESTED_MAX {
            return Err(self.error(format!("this is nested deeper than {NESTED_MAX}")));
        }
        let expr = crate::level(|| self.ternary());
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

    /// Returns an error for C operators.
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

    /// Parses elements between commas up to and including the closing symbol.
    pub(super) fn list(&mut self, close: &'static str) -> Result<Vec<Expr>, QueryError> {
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
        if self.nested > NESTED_MAX {
            return Err(self.error(format!("this is nested deeper than {NESTED_MAX}")));
        }
        let of = crate::level(|| self.minus());
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

    pub(super) fn type_name(&mut self) -> Result<Type, QueryError> {
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
}
