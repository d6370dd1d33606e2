//! Parser of BTQL: clauses in any order, each at most once, each of a keyword and a colon (btql.md, section 4.1).

use super::{Parser, no_shape};
use crate::ast::{
    Amount, Expr, From, InferClause, Node, Path, PivotClause, Query, Quotes, Sample, Select, SelectItem, Shape, Sort,
    UnpivotClause,
};
use crate::error::QueryError;
use crate::lex::{Number, Token};

const CLAUSES: [&str; 21] = [
    "select",
    "dimensions",
    "measures",
    "infer",
    "from",
    "filter",
    "span_filter",
    "trace_filter",
    "final_filter",
    "unpivot",
    "pivot",
    "final_dimensions",
    "final_measures",
    "sample",
    "sort",
    "limit",
    "cursor",
    "preview_length",
    "inference_budget",
    "comparison_key",
    "weighted_scores",
];
/// Clause of the JSON form, which the clause syntax has, too.
const CUSTOM_COLUMNS: &str = "custom_columns";
/// Another word for `filter` (D-26).
const WHERE: &str = "where";

pub(super) fn query(parser: &mut Parser<'_>) -> Result<Query, QueryError> {
    let mut query = Query::default();
    let mut seen: Vec<String> = Vec::new();
    loop {
        while parser.take_symbol("|") {}
        if *parser.peek() == Token::End {
            break;
        }
        if !parser.is_clause_start() {
            if seen.is_empty() {
                return Err(no_beginning(parser));
            }
            let known = CLAUSES.join(", ");
            return Err(parser.expected(&format!("`|`, or a clause and a colon: {known}, {CUSTOM_COLUMNS}")));
        }
        let said = parser.name("a clause")?.to_lowercase();
        let keyword = if said == WHERE { "filter" } else { said.as_str() };
        if seen.iter().any(|other| other == keyword) {
            let also = if keyword == "filter" { ": filter and where are one clause" } else { "" };
            return Err(parser.error(format!("`{said}:` stands here a second time{also}")));
        }
        parser.expect_symbol(":")?;
        parser.clause(keyword, &mut query)?;
        seen.push(keyword.to_owned());
    }
    if seen.is_empty() { Err(parser.error("the query is empty")) } else { Ok(query) }
}

/// Returns the error of a query without a known beginning, which may be mistyped SQL.
fn no_beginning(parser: &Parser<'_>) -> QueryError {
    const CHANGES: [&str; 9] =
        ["insert", "update", "delete", "create", "drop", "alter", "truncate", "merge", "replace"];
    let word = match parser.peek() {
        Token::Word(word) => word.as_str(),
        _ => "",
    };
    let why = match CHANGES.iter().any(|change| word.eq_ignore_ascii_case(change)) {
        true => format!("{} is no query: queries only read", word.to_uppercase()),
        false => "this is no query".to_owned(),
    };
    parser.error(format!(
        "{why}. SQL begins with SELECT or WITH, as in SELECT id FROM project_logs('my-project'). Clauses begin with a keyword and \
         a colon, as in select: id | from: project_logs('my-project')"
    ))
}

impl Parser<'_> {
    pub(super) fn is_clause_start(&self) -> bool {
        self.is_clause_start_at(0)
    }

    pub(super) fn is_clause_start_at(&self, ahead: usize) -> bool {
        let Token::Word(word) = self.peek_at(ahead) else { return false };
        self.dialect == super::Dialect::Clauses
            && self.open_ternaries == 0
            && matches!(self.peek_at(ahead + 1), Token::Symbol(":"))
            && CLAUSES.iter().chain([&CUSTOM_COLUMNS, &WHERE]).any(|clause| word.eq_ignore_ascii_case(clause))
    }

    fn clause(&mut self, keyword: &str, query: &mut Query) -> Result<(), QueryError> {
        match keyword {
            "select" => query.select = self.commas(Parser::select_item)?,
            "dimensions" => query.dimensions = self.commas(Parser::item)?,
            "measures" => query.measures = self.commas(Parser::item)?,
            "infer" => query.infer = self.commas(Parser::inferred)?,
            "from" => query.from = Some(self.source_and_shape()?),
            "filter" => query.filter = Some(self.expr()?),
            "span_filter" => query.span_filter = Some(self.expr()?),
            "trace_filter" => query.trace_filter = Some(self.expr()?),
            "final_filter" => query.final_filter = Some(self.expr()?),
            "unpivot" => query.unpivot = self.commas(Parser::unpivot)?,
            "pivot" => query.pivot = Some(PivotClause::Measures(self.commas(Parser::item)?)),
            "final_dimensions" => query.final_dimensions = self.commas(Parser::item)?,
            "final_measures" => query.final_measures = self.commas(Parser::item)?,
            "sample" => query.sample = Some(self.sample()?),
            "sort" => query.sort = self.commas(Parser::sort)?,
            "limit" => query.limit = Some(self.whole_number("a limit")?),
            "cursor" => query.cursor = Some(self.text_literal("a cursor in quotes")?),
            "preview_length" => query.preview_length = Some(self.signed_number("a preview length")?),
            "inference_budget" => query.inference_budget = Some(self.whole_number("an inference budget")?),
            "comparison_key" => query.comparison_key = Some(self.expr()?),
            "weighted_scores" => query.weighted_scores = self.commas(Parser::item)?,
            _ => query.custom_columns = self.commas(Parser::item)?,
        }
        Ok(())
    }

    pub(super) fn commas<T>(&mut self, one: impl Fn(&mut Self) -> Result<T, QueryError>) -> Result<Vec<T>, QueryError> {
        let mut all = vec![one(self)?];
        while self.take_symbol(",") {
            all.push(one(self)?);
        }
        Ok(all)
    }

    pub(super) fn item(&mut self) -> Result<SelectItem, QueryError> {
        let expr = self.expr()?;
        let alias = if self.take_word("as") { Some(self.name("an alias")?) } else { None };
        Ok(SelectItem { expr, alias })
    }

    fn select_item(&mut self) -> Result<Select, QueryError> {
        if self.take_symbol("*") {
            return Ok(Select::Star(self.replacements()?));
        }
        self.item().map(Select::Item)
    }

    /// `* REPLACE (expr AS column, ...)`.
    pub(super) fn replacements(&mut self) -> Result<Vec<(String, Expr)>, QueryError> {
        if !self.take_word("replace") {
            return Ok(Vec::new());
        }
        self.expect_symbol("(")?;
        let replaced = self.commas(|parser| {
            let expr = parser.expr()?;
            parser.expect_word("as")?;
            Ok((parser.name("the column that is replaced")?, expr))
        })?;
        self.expect_symbol(")")?;
        Ok(replaced)
    }

    fn inferred(&mut self) -> Result<InferClause, QueryError> {
        if self.take_symbol("*") {
            return Ok(InferClause::Star);
        }
        let path = self.path("a path, or *")?;
        Ok(InferClause::Path(path))
    }

    /// A path alone, where nothing else is legal: quotes are a name's.
    pub(super) fn path(&mut self, what: &str) -> Result<Path, QueryError> {
        let at = self.at();
        match self.expr()?.node {
            Node::Path(path) => {
                let quotes = if path.quotes == Quotes::None { Quotes::None } else { Quotes::Name };
                Ok(Path { quotes, ..path })
            }
            _ => Err(self.error_at(at, format!("expected {what}"))),
        }
    }

    fn source_and_shape(&mut self) -> Result<From, QueryError> {
        let (source, named_shape) = self.source()?;
        let at = self.at();
        let word = match self.peek() {
            Token::Word(word) if !self.is_clause_start() => Some(word.clone()),
            _ => None,
        };
        let Some(word) = word else { return Ok(From { source, shape: named_shape, alias: None }) };
        let shape = Shape::of(&word).ok_or_else(|| self.error(no_shape(&word)))?;
        self.advance();
        if named_shape.is_some_and(|named| named != shape) {
            return Err(self.error_at(at, "the source has two shapes"));
        }
        Ok(From { source, shape: Some(shape), alias: None })
    }

    fn unpivot(&mut self) -> Result<UnpivotClause, QueryError> {
        let expr = self.expr()?;
        self.expect_word("as")?;
        let in_parentheses = self.take_symbol("(");
        let first = self.name("a name for each element")?;
        let second =
            if in_parentheses && self.take_symbol(",") { Some(self.name("a name for each value")?) } else { None };
        if in_parentheses {
            self.expect_symbol(")")?;
        }
        let (key, value) = match second {
            Some(second) => (Some(first), second),
            None => (None, first),
        };
        Ok(UnpivotClause { expr, key, value })
    }

    fn sample(&mut self) -> Result<Sample, QueryError> {
        let at = self.at();
        let number = match self.peek() {
            Token::Number(number) => *number,
            _ => return Err(self.expected("a share such as 25%, or a number of rows")),
        };
        self.advance();
        let amount = if self.take_symbol("%") {
            self.rate(at, number, 100.0)?
        } else {
            match number {
                Number::Signed(count) if count > 0 => Amount::Count(count.unsigned_abs()),
                _ => return Err(self.error_at(at, "a sample has at least one row, or a share such as 25%")),
            }
        };
        let seed = if self.take_word("seed") { Some(self.signed_number("a seed")?) } else { None };
        Ok(Sample { amount, seed })
    }

    pub(super) fn rate(&self, at: crate::ast::At, number: Number, of: f64) -> Result<Amount, QueryError> {
        let number = match number {
            Number::Signed(number) => number as f64,
            Number::Unsigned(number) => number as f64,
            Number::Float(number) => number,
        };
        let rate = number / of;
        if (0.0..=1.0).contains(&rate) {
            Ok(Amount::Rate(rate))
        } else {
            Err(self.error_at(at, "a share is between 0 and 100 percent"))
        }
    }

    pub(super) fn sort(&mut self) -> Result<Sort, QueryError> {
        let expr = self.expr()?;
        let descending = self.take_word("desc");
        if !descending {
            self.take_word("asc");
        }
        let nulls_first = if self.take_word("nulls") {
            let first = self.take_word("first");
            if !first {
                self.expect_word("last")?;
            }
            Some(first)
        } else {
            None
        };
        Ok(Sort { expr, descending, nulls_first })
    }
}
