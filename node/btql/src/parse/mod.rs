//! Parsers from text or JSON to a [`Query`].
//!
//! One expression grammar (`expr`) stands under SQL (`sql`), clauses (`clauses`) and expressions alone; the tree (`json`) has
//! the same nodes. What a quote means is settled last (`settle`), when the columns and the aliases are known.

mod clauses;
mod expr;
mod json;
pub(crate) mod operand;
mod settle;
mod sql;

use serde_json::Value;

use crate::ast::{At, DEPTH_MAX, Expr, NODES_MAX, Node, Query, Shape, Source};
use crate::error::QueryError;
use crate::lex::{Lexed, Number, Token, lex};
use crate::parse::operand::can_be_called;

/// A query, and what was found in it that nobody here understands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    pub query: Query,
    /// Members of a tree that are not known (D-31).
    pub unknown_keys: Vec<String>,
}

/// Field `query` of a request: a text of either dialect, or the JSON form.
pub fn parse(query: &Value) -> Result<Parsed, QueryError> {
    match query {
        Value::String(text) => Ok(Parsed { query: parse_text(text)?, unknown_keys: Vec::new() }),
        Value::Object(_) => json::query(query),
        _ => Err(QueryError::new("a query is a text (SQL or BTQL) or an object")),
    }
}

/// SQL if it begins with SELECT or WITH and a blank, and clauses otherwise (section 2).
pub fn parse_text(text: &str) -> Result<Query, QueryError> {
    let tokens = lex(text)?;
    let is_sql = matches!(tokens.as_slice(), [Lexed { token: Token::Word(word), end, .. }, ..]
        if ["select", "with"].iter().any(|keyword| word.eq_ignore_ascii_case(keyword))
            && text[*end..].starts_with(|next: char| next.is_whitespace() || next == '*'));
    let mut parser = Parser::new(text, tokens, if is_sql { Dialect::Sql } else { Dialect::Clauses });
    let query = if is_sql { sql::statement(&mut parser)? } else { clauses::query(&mut parser)? };
    settle::query(query)
}

/// A filter that is stored elsewhere: the operators of both languages (D-19).
pub fn parse_expression(text: &str) -> Result<Expr, QueryError> {
    let mut parser = Parser::new(text, lex(text)?, Dialect::Alone);
    let expr = parser.expr()?;
    parser.expect_end("an operator, or the end")?;
    Ok(settle::expression(expr))
}

/// Parentheses and the like within each other. More than `DEPTH_MAX`, for not all that is within something makes it deeper.
const NESTED_MAX: u16 = 4 * DEPTH_MAX;

/// Words that mean something else to one language than to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Sql,
    Clauses,
    Alone,
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Lexed>,
    next: usize,
    dialect: Dialect,
    nodes: usize,
    /// Depth of nested calls of `expr`, which is bounded to protect the stack.
    nested: u16,
    /// Queries within each other.
    queries: usize,
    /// Open `?` whose `:` has not come: a word and a colon are then no clause.
    open_ternaries: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, tokens: Vec<Lexed>, dialect: Dialect) -> Parser<'a> {
        Parser { text, tokens, next: 0, dialect, nodes: 0, nested: 0, queries: 0, open_ternaries: 0 }
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.next].token
    }

    fn peek_at(&self, ahead: usize) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.next + ahead).min(last)].token
    }

    fn advance(&mut self) -> Token {
        let token = self.peek().clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn at(&self) -> At {
        At(u32::try_from(self.tokens[self.next].start).expect("texts are short"))
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(found) if *found == symbol)
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect_symbol(&mut self, symbol: &'static str) -> Result<(), QueryError> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    fn is_word_at(&self, ahead: usize, word: &str) -> bool {
        matches!(self.peek_at(ahead), Token::Word(found) if found.eq_ignore_ascii_case(word))
    }

    fn is_word(&self, word: &str) -> bool {
        self.is_word_at(0, word)
    }

    fn is_any_word(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is_word(word))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    /// Both, or none.
    fn take_words(&mut self, [first, second]: [&str; 2]) -> bool {
        let found = self.is_word(first) && self.is_word_at(1, second);
        if found {
            self.advance();
            self.advance();
        }
        found
    }

    fn expect_word(&mut self, word: &str) -> Result<(), QueryError> {
        if self.take_word(word) { Ok(()) } else { Err(self.expected(&word.to_uppercase())) }
    }

    fn expect_end(&self, or: &str) -> Result<(), QueryError> {
        if *self.peek() == Token::End { Ok(()) } else { Err(self.expected(or)) }
    }

    /// The next token is not what could stand here.
    fn expected(&self, what: &str) -> QueryError {
        let Lexed { token, start, end } = &self.tokens[self.next];
        let found = token.describe(self.text, *start, *end);
        self.error(format!("expected {what}, found {found}"))
    }

    fn error(&self, what: impl Into<String>) -> QueryError {
        QueryError::at(self.text, self.tokens[self.next].start, what)
    }

    fn error_at(&self, At(offset): At, what: impl Into<String>) -> QueryError {
        QueryError::at(self.text, offset as usize, what)
    }

    /// A node of the query, which may have so many and be so deep.
    fn made(&mut self, at: At, node: Node) -> Result<Expr, QueryError> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(self.error_at(at, format!("the query has more than {NODES_MAX} parts")));
        }
        let expr = Expr::new(at, node);
        if expr.depth() > DEPTH_MAX {
            return Err(self.error_at(at, too_deep()));
        }
        Ok(expr)
    }

    /// A name as an alias is one: any word, or anything in quotes.
    fn name(&mut self, what: &str) -> Result<String, QueryError> {
        match self.peek() {
            Token::Word(_) | Token::Name(_) | Token::Double(_) => match self.advance() {
                Token::Word(name) | Token::Name(name) | Token::Double(name) => Ok(name),
                _ => unreachable!("it was seen"),
            },
            _ => Err(self.expected(what)),
        }
    }

    fn text_literal(&mut self, what: &str) -> Result<String, QueryError> {
        match self.peek() {
            Token::Text(text) | Token::Double(text) => {
                let text = text.clone();
                self.advance();
                Ok(text)
            }
            _ => Err(self.expected(what)),
        }
    }

    fn whole_number(&mut self, what: &str) -> Result<u64, QueryError> {
        match self.peek() {
            Token::Number(Number::Signed(number)) => {
                let number = u64::try_from(*number).expect("a minus is another token");
                self.advance();
                Ok(number)
            }
            Token::Number(Number::Unsigned(number)) => {
                let number = *number;
                self.advance();
                Ok(number)
            }
            _ => Err(self.expected(&format!("{what}: a whole number of 0 or more"))),
        }
    }

    fn signed_number(&mut self, what: &str) -> Result<i64, QueryError> {
        let minus = self.take_symbol("-");
        let at = self.at();
        let number = self.whole_number(what)?;
        let signed = i64::try_from(number).map(|number| if minus { -number } else { number });
        signed.map_err(|_| self.error_at(at, format!("{what} {number} is too large")))
    }

    /// The arguments of a source, of which one may be its shape.
    fn source(&mut self) -> Result<(Source, Option<Shape>), QueryError> {
        let at = self.at();
        let name = self.name("a source, such as project_logs('...')")?.to_lowercase();
        if !can_be_called(&name) {
            return Err(self.error_at(at, no_source(&name)));
        }
        let mut shape = None;
        let mut args = Vec::new();
        if self.take_symbol("(") {
            while !self.take_symbol(")") {
                if self.is_word("shape") && matches!(self.peek_at(1), Token::Symbol("=>")) {
                    self.advance();
                    self.advance();
                    let at = self.at();
                    let text = self.text_literal("a shape: 'spans', 'traces' or 'summary'")?;
                    shape = Some(Shape::of(&text).ok_or_else(|| self.error_at(at, no_shape(&text)))?);
                } else {
                    args.push(self.expr()?);
                }
                if !self.is_symbol(")") {
                    self.expect_symbol(",")?;
                }
            }
        }
        Ok((Source::Objects { name, args }, shape))
    }
}

fn too_deep() -> String {
    format!("this is nested deeper than {DEPTH_MAX}")
}

fn no_source(name: &str) -> String {
    format!("there is no source `{name}`")
}

fn no_shape(text: &str) -> String {
    format!("there is no shape `{text}`: spans, traces and summary are")
}
