//! Parser of SQL: one SELECT over one source (btql.md, section 4.2). Unsupported syntax is refused by its name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Parser;
use crate::ast::{
    Amount, From, Node, Path, PivotClause, Query, Quotes, Sample, Select, SelectItem, Source, Step, UnpivotClause,
};
use crate::error::QueryError;
use crate::lex::{Number, Token};

/// Queries within queries, each the source of the next.
pub const SUBQUERIES_MAX: usize = 8;

/// Words behind an expression or a source that are no alias of it.
const NO_ALIASES: [&str; 33] = [
    "from",
    "where",
    "group",
    "order",
    "having",
    "limit",
    "offset",
    "settings",
    "union",
    "intersect",
    "except",
    "join",
    "inner",
    "left",
    "right",
    "full",
    "cross",
    "natural",
    "lateral",
    "on",
    "using",
    "unpivot",
    "pivot",
    "tablesample",
    "window",
    "qualify",
    "fetch",
    "for",
    "and",
    "or",
    "as",
    "asc",
    "desc",
];
const JOINS: [&str; 8] = ["join", "inner", "left", "right", "full", "cross", "natural", "lateral"];
const SET_OPERATIONS: [&str; 3] = ["union", "intersect", "except"];

type CommonTables = BTreeMap<String, (Query, usize)>;

pub(super) fn statement(parser: &mut Parser<'_>) -> Result<Query, QueryError> {
    let mut named = CommonTables::new();
    if parser.take_word("with") {
        if parser.is_word("recursive") {
            return Err(parser.error("WITH RECURSIVE is not supported"));
        }
        loop {
            let name = parser.name("a name for this query")?;
            parser.expect_word("as")?;
            parser.expect_symbol("(")?;
            let (query, depth) = parser.select(&named)?;
            parser.expect_symbol(")")?;
            let key = name.to_lowercase();
            if named.insert(key, (query, depth)).is_some() {
                return Err(parser.error(format!("WITH names `{name}` twice")));
            }
            if !parser.take_symbol(",") {
                break;
            }
        }
    }
    let (query, _) = parser.select(&named)?;
    if parser.take_symbol(";") && *parser.peek() != Token::End {
        return Err(parser.error("several statements are not supported: ask one by one"));
    }
    parser.no_set_operation()?;
    parser.expect_end("a clause (WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET), in this order, or the end")?;
    Ok(query)
}

impl Parser<'_> {
    /// A SELECT, and how many there are within it.
    fn select(&mut self, named: &CommonTables) -> Result<(Query, usize), QueryError> {
        self.expect_word("select")?;
        let mut query = Query { distinct: self.take_word("distinct"), ..Query::default() };
        self.take_word("all");
        query.select = self.commas(Parser::sql_item)?;
        if !self.take_word("from") {
            return Err(self.expected("an operator, `,`, AS or FROM"));
        }
        let (from, depth) = self.sql_from(named)?;
        query.from = Some(from);
        self.table_clauses(&mut query)?;
        if self.take_word("where") {
            query.filter = Some(self.expr()?);
        }
        if self.take_words(["group", "by"]) {
            query.group_by = Some(self.commas(Parser::expr)?);
        }
        if self.is_word("pivot") {
            self.sql_pivot(&mut query)?;
        }
        if self.take_word("having") {
            query.final_filter = Some(self.expr()?);
        }
        if self.is_any_word(&["window", "qualify"]) {
            return Err(self.error("window functions (WINDOW, QUALIFY) are not supported"));
        }
        if self.take_words(["order", "by"]) {
            query.sort = self.commas(Parser::sort)?;
        }
        if self.take_word("limit") {
            query.limit = Some(self.whole_number("LIMIT")?);
        }
        if self.take_word("offset") {
            if matches!(self.peek(), Token::Number(_)) {
                return Err(self.error("OFFSET takes the cursor of the page before, in quotes, and no number"));
            }
            query.cursor = Some(self.text_literal("the cursor of the page before, in quotes")?);
        }
        if self.take_word("settings") {
            query.settings = self.commas(Parser::setting)?;
        }
        Ok((query, depth))
    }

    fn sql_item(&mut self) -> Result<Select, QueryError> {
        if self.take_symbol("*") {
            return Ok(Select::Star(self.replacements()?));
        }
        let mut item = self.item()?;
        if item.alias.is_none() {
            item.alias = self.implicit_alias()?;
        }
        Ok(Select::Item(item))
    }

    fn implicit_alias(&mut self) -> Result<Option<String>, QueryError> {
        match self.peek() {
            Token::Word(word) if NO_ALIASES.iter().any(|never| word.eq_ignore_ascii_case(never)) => Ok(None),
            Token::Word(_) | Token::Name(_) | Token::Double(_) => self.name("an alias").map(Some),
            _ => Ok(None),
        }
    }

    fn sql_from(&mut self, named: &CommonTables) -> Result<(From, usize), QueryError> {
        let at = self.at();
        let (source, shape, depth) = if self.take_symbol("(") {
            // Seen before it is read: a text has room for more of them than there is stack.
            self.queries += 1;
            if self.queries > SUBQUERIES_MAX {
                return Err(self.error_at(at, too_many_within()));
            }
            let (query, depth) = self.select(named)?;
            self.queries -= 1;
            self.no_set_operation()?;
            self.expect_symbol(")")?;
            (Source::Query(Box::new(query)), None, depth + 1)
        } else {
            let (source, shape) = self.source()?;
            match &source {
                Source::Objects { name, args } if args.is_empty() && named.contains_key(name) => {
                    let (query, depth) = named[name].clone();
                    (Source::Query(Box::new(query)), None, depth + 1)
                }
                _ => (source, shape, 0),
            }
        };
        if depth > SUBQUERIES_MAX {
            return Err(self.error_at(at, too_many_within()));
        }
        let alias = if self.take_word("as") { Some(self.name("an alias")?) } else { self.implicit_alias()? };
        if self.is_any_word(&JOINS) {
            return Err(self.error("JOIN is not supported: a query has one source, which may be several objects"));
        }
        if self.is_symbol(",") {
            return Err(
                self.error("a query has one source; several objects of a kind stand in one: project_logs('a', 'b')")
            );
        }
        Ok((From { source, shape, alias }, depth))
    }

    /// Parses the clauses of the source.
    fn table_clauses(&mut self, query: &mut Query) -> Result<(), QueryError> {
        loop {
            if self.take_word("tablesample") {
                if query.sample.is_some() {
                    return Err(self.error("TABLESAMPLE stands here a second time"));
                }
                query.sample = Some(self.table_sample()?);
            } else if self.take_word("unpivot") {
                query.unpivot.push(self.sql_unpivot()?);
            } else if self.is_word("pivot") {
                self.sql_pivot(query)?;
            } else {
                return Ok(());
            }
        }
    }

    fn table_sample(&mut self) -> Result<Sample, QueryError> {
        let percent = self.take_word("bernoulli") || self.take_word("system");
        self.expect_symbol("(")?;
        let at = self.at();
        let number = match self.peek() {
            Token::Number(number) => *number,
            _ => return Err(self.expected("a number of percent or of rows")),
        };
        self.advance();
        let rows = !percent && self.take_word("rows");
        if !rows && !self.take_word("percent") && !percent {
            return Err(self.expected("PERCENT or ROWS"));
        }
        self.expect_symbol(")")?;
        let amount = match number {
            Number::Signed(count) if rows && count > 0 => Amount::Count(count.unsigned_abs()),
            _ if rows => return Err(self.error_at(at, "a sample has at least one row")),
            _ => self.rate(at, number, 100.0)?,
        };
        let mut seed = None;
        if self.take_word("repeatable") {
            self.expect_symbol("(")?;
            seed = Some(self.signed_number("a seed")?);
            self.expect_symbol(")")?;
        }
        Ok(Sample { amount, seed })
    }

    /// `(value FOR key IN (column))`; of elements only, `(element FOR _ IN (column))`.
    fn sql_unpivot(&mut self) -> Result<UnpivotClause, QueryError> {
        self.expect_symbol("(")?;
        let value = self.name("a name for each value")?;
        self.expect_word("for")?;
        let key = self.name("a name for each key, or _")?;
        self.expect_word("in")?;
        self.expect_symbol("(")?;
        let expr = self.expr()?;
        self.expect_symbol(")")?;
        self.expect_symbol(")")?;
        Ok(UnpivotClause { expr, key: Some(key).filter(|key| key != "_"), value })
    }

    fn sql_pivot(&mut self, query: &mut Query) -> Result<(), QueryError> {
        if query.pivot.is_some() {
            return Err(self.error("PIVOT stands here a second time"));
        }
        self.advance();
        self.expect_symbol("(")?;
        let measures = self.commas(|parser| -> Result<SelectItem, QueryError> {
            let mut item = parser.item()?;
            if item.alias.is_none() {
                item.alias = parser.implicit_alias()?;
            }
            Ok(item)
        })?;
        self.expect_word("for")?;
        let column = self.pivot_column()?;
        self.expect_word("in")?;
        self.expect_symbol("(")?;
        if !self.take_word("any") {
            return Err(self.expected("ANY: the columns of a PIVOT are those that the rows have"));
        }
        self.expect_symbol(")")?;
        self.expect_symbol(")")?;
        query.pivot = Some(PivotClause::For { measures, column });
        Ok(())
    }

    /// A path without operators: `IN` ends it.
    fn pivot_column(&mut self) -> Result<Path, QueryError> {
        let mut steps = vec![Step::Key(self.name("the column whose values become columns")?)];
        while self.take_symbol(".") {
            steps.push(Step::Key(self.name("a name behind the point")?));
        }
        Ok(Path { steps, quotes: Quotes::None })
    }

    fn setting(&mut self) -> Result<(String, Value), QueryError> {
        let name = self.name("the name of a setting")?;
        self.expect_symbol("=")?;
        let at = self.at();
        match self.expr()?.node {
            Node::Literal(value) => Ok((name, value)),
            // A word or what stands in double quotes.
            Node::Path(path) if path.steps.len() == 1 => match path.steps.into_iter().next() {
                Some(Step::Key(word)) => Ok((name, Value::String(word))),
                _ => Err(self.error_at(at, "a setting is a literal")),
            },
            _ => Err(self.error_at(at, "a setting is a literal")),
        }
    }

    fn no_set_operation(&self) -> Result<(), QueryError> {
        if self.is_any_word(&SET_OPERATIONS) {
            return Err(self.error("UNION, INTERSECT and EXCEPT are not supported"));
        }
        Ok(())
    }
}

fn too_many_within() -> String {
    format!("more than {SUBQUERIES_MAX} queries stand within each other here")
}
