//! Handler of `POST /console/parse`, which converts query texts to trees and trees to texts.
//!
//! Pages and scripts therefore need no grammar of their own.

use assay_node_btql::ast::{Expr, Query};
use assay_node_btql::{
    ErrorLocation, Parsed, Position, QueryError, Unsayable, deep, expression, in_tree, parse, parse_expression,
};
use assay_node_http::requests::caller::Call;
use assay_node_http::requests::error_texts::kind_of;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::Payload;
use serde_json::{Map, Value, json};

const EXPRESSION: &str = "expression";
const TREE: &str = "tree";
const QUERY: &str = "query";

/// Input of a parse request.
#[derive(Clone, Debug, PartialEq)]
enum ParseRequest {
    /// Text of an expression.
    Expression(String),
    /// Tree of an expression.
    Tree(Value),
    /// Text of a query.
    Query(String),
}

/// Handles `POST /console/parse`.
///
/// A syntax error does not fail the request. The response contains the error and its position.
pub async fn parsed(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    let request = parse_request(body)?;
    json(&deep(|| response(&request)))
}

fn parse_request(mut body: Map<String, Value>) -> Result<ParseRequest, Refusal> {
    let mut given = [EXPRESSION, TREE, QUERY].into_iter().filter_map(|name| {
        let value = body.remove(name).filter(|value| !value.is_null())?;
        Some((name, value))
    });
    let (Some((name, value)), None) = (given.next(), given.next()) else {
        return Err(Refusal::bad("send exactly one of `expression`, `tree` and `query`"));
    };
    match (name, value) {
        (TREE, value) => Ok(ParseRequest::Tree(value)),
        (EXPRESSION, Value::String(text)) => Ok(ParseRequest::Expression(text)),
        (_, Value::String(text)) => Ok(ParseRequest::Query(text)),
        (name, other) => Err(Refusal::bad(format!("`{name}` is {}; it should be a string", kind_of(&other)))),
    }
}

fn response(request: &ParseRequest) -> Value {
    match request {
        ParseRequest::Expression(text) => match parse_expression(text) {
            Ok(expr) => of_expression(expr),
            Err(error) => failed(text, &error),
        },
        ParseRequest::Tree(tree) => match parse(&json!({"filter": tree})) {
            Ok(Parsed { query: Query { filter: Some(expr), .. }, .. }) => of_expression(expr),
            Ok(_) => json!({"error": {"message": "the tree has no expression"}}),
            Err(error) => failed("", &error),
        },
        ParseRequest::Query(text) => match parse(&Value::from(text.as_str())) {
            Ok(parsed) => said(in_tree(&parsed.query).map(|tree| json!({"tree": tree}))),
            Err(error) => failed(text, &error),
        },
    }
}

fn of_expression(expr: Expr) -> Value {
    let text = expression(&expr);
    let query = Query { filter: Some(expr), ..Query::default() };
    said(in_tree(&query).map(|tree| json!({"expression": text, "tree": tree["filter"]})))
}

fn said(done: Result<Value, Unsayable>) -> Value {
    done.unwrap_or_else(|error| json!({"error": {"message": error.to_string()}}))
}

/// Describes an error by its message and its position in the text.
fn failed(text: &str, error: &QueryError) -> Value {
    let mut described = json!({"message": error.to_string()});
    if let Some(ErrorLocation::Text(Position { line, column })) = error.place {
        described["line"] = line.into();
        described["column"] = column.into();
        described["offset"] = offset_of(text, line, column).into();
    }
    json!({"error": described})
}

/// Returns the byte offset of a line and column in a text.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let begin: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let rest = &text[begin..];
    begin + rest.char_indices().nth(column - 1).map_or(rest.len(), |(offset, _)| offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(body: Value) -> Result<Value, String> {
        let Value::Object(body) = body else { panic!("an object") };
        parse_request(body).map(|request| response(&request)).map_err(|refusal| refusal.message)
    }

    #[test]
    fn an_expression_becomes_a_tree_and_the_tree_the_expression() {
        let there = parsed(json!({"expression": "metadata.model='gpt-4o'   and error is not null"})).expect("it reads");
        let back = parsed(json!({"tree": there["tree"]})).expect("it reads");
        assert_eq!(there, back);
        assert_eq!(there["expression"], "metadata.model = 'gpt-4o' AND error IS NOT NULL");
        assert_eq!(there["tree"]["op"], "and");
    }

    #[test]
    fn a_query_becomes_a_tree() {
        let found = parsed(json!({"query": "select: id | from: project_logs('p') | limit: 3"})).expect("it reads");
        assert_eq!(found["tree"]["limit"], 3);
        assert_eq!(found["tree"]["from"]["name"]["name"][0], "project_logs");
    }

    #[test]
    fn an_error_has_its_position() {
        let found = parsed(json!({"expression": "größe = 1\nand and"})).expect("it reads");
        let error = &found["error"];
        assert_eq!((&error["line"], &error["column"]), (&json!(2), &json!(5)), "{error}");
        assert_eq!(error["offset"], "größe = 1\nand ".len());
        assert!(error["message"].as_str().is_some_and(|text| text.starts_with("line 2, column 5: ")), "{error}");
    }

    #[test]
    fn offsets_count_bytes() {
        for (text, line, column, offset) in [("", 1, 1, 0), ("äb", 1, 2, 2), ("a\nb", 2, 1, 2), ("ab", 1, 9, 2)] {
            assert_eq!(offset_of(text, line, column), offset, "{text:?}");
        }
    }

    #[test]
    fn one_text_or_tree_is_sent() {
        for body in [json!({}), json!({"expression": "a", "query": "b"}), json!({"tree": null})] {
            assert!(parsed(body).expect_err("it is wrong").contains("exactly one of"));
        }
        assert!(parsed(json!({"expression": 3})).expect_err("it is wrong").contains("`expression` is a number"));
    }
}
