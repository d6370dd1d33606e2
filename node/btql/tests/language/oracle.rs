//! Where SQL is all that is spoken, sqlparser and we must hear the same: its tree, with every pair of parentheses written
//! out, is ours.

use assay_node_btql::ast::{Binary, Expr, Logic, Node, Step, Unary};
use assay_node_btql::{expression, parse_expression};
use proptest::prelude::*;
use sqlparser::ast::{BinaryOperator as Op, Expr as Sql, UnaryOperator, Value as SqlValue};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

const CASES: u32 = 2_000;

/// Ours, of what both know; none of anything else.
fn ours(expr: &Expr) -> Option<String> {
    Some(match &expr.node {
        Node::Literal(value) if value.is_null() || value.is_boolean() || value.is_u64() => value.to_string(),
        Node::Path(path) => match path.steps.as_slice() {
            [Step::Key(name)] => name.clone(),
            _ => return None,
        },
        Node::Unary(Unary::Not, of) => format!("(not {})", ours(of)?),
        Node::Unary(Unary::Minus, of) => format!("(- {})", ours(of)?),
        Node::Unary(Unary::IsNull, of) => format!("({} is null)", ours(of)?),
        Node::Unary(Unary::IsNotNull, of) => format!("({} is not null)", ours(of)?),
        Node::Binary(binary, left, right) => {
            let plain = !matches!(
                binary,
                Binary::Match
                    | Binary::Includes
                    | Binary::In
                    | Binary::Like
                    | Binary::ILike
                    | Binary::NotSame
                    | Binary::Same
            );
            let plain = plain
                && !matches!(binary, Binary::Regex | Binary::NotRegex | Binary::RegexAnyCase | Binary::NotRegexAnyCase);
            if !plain {
                return None;
            }
            format!("({} {} {})", ours(left)?, binary.symbol(), ours(right)?)
        }
        Node::Logic(logic, of) => {
            let word = if *logic == Logic::And { "and" } else { "or" };
            let mut of = of.iter().map(ours);
            let first = of.next()??;
            of.try_fold(first, |left, right| Some(format!("({left} {word} {})", right?)))?
        }
        Node::Between(of) => format!("({} between {} and {})", ours(&of[0])?, ours(&of[1])?, ours(&of[2])?),
        _ => return None,
    })
}

fn theirs(expr: &Sql) -> Option<String> {
    let two = |left: &Sql, word: &str, right: &Sql| Some(format!("({} {word} {})", theirs(left)?, theirs(right)?));
    Some(match expr {
        Sql::Nested(of) => theirs(of)?,
        Sql::Identifier(name) => name.value.clone(),
        Sql::Value(value) => match &value.value {
            SqlValue::Number(number, _) => number.clone(),
            SqlValue::Boolean(value) => value.to_string(),
            SqlValue::Null => "null".into(),
            _ => return None,
        },
        Sql::UnaryOp { op: UnaryOperator::Not, expr } => format!("(not {})", theirs(expr)?),
        Sql::UnaryOp { op: UnaryOperator::Minus, expr } => format!("(- {})", theirs(expr)?),
        Sql::IsNull(of) => format!("({} is null)", theirs(of)?),
        Sql::IsNotNull(of) => format!("({} is not null)", theirs(of)?),
        Sql::Between { expr, negated: false, low, high } => {
            format!("({} between {} and {})", theirs(expr)?, theirs(low)?, theirs(high)?)
        }
        Sql::BinaryOp { left, op, right } => match op {
            Op::And => two(left, "and", right)?,
            Op::Or => two(left, "or", right)?,
            Op::NotEq => two(left, "!=", right)?,
            Op::Eq
            | Op::Lt
            | Op::LtEq
            | Op::Gt
            | Op::GtEq
            | Op::Plus
            | Op::Minus
            | Op::Multiply
            | Op::Divide
            | Op::Modulo => two(left, &op.to_string(), right)?,
            _ => return None,
        },
        _ => return None,
    })
}

/// Operators without any parentheses, so that only precedence says what belongs together.
fn chain() -> impl Strategy<Value = String> {
    let operand = prop_oneof![
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just("7".to_owned()),
        Just("null".to_owned()),
        Just("- c".to_owned()),
        Just("(a + b)".to_owned()),
        Just("(a = 1)".to_owned()),
    ];
    let operator =
        prop::sample::select(vec![" + ", " - ", " * ", " / ", " % ", " and ", " or ", " and not ", " or not "]);
    let compared = prop::sample::select(vec![" = ", " != ", " < ", " >= "]);
    let sum = (operand.clone(), proptest::collection::vec((operator, operand.clone()), 0..4))
        .prop_map(|(first, more)| more.into_iter().fold(first, |text, (operator, operand)| text + operator + &operand));
    // One comparison at most between two conjunctions: we refuse chains of them.
    (sum, proptest::option::of((compared, operand)), any::<bool>()).prop_map(|(sum, compared, negated)| {
        let text = match compared {
            Some((operator, operand)) => sum + operator + &operand,
            None => sum,
        };
        if negated { format!("not {text}") } else { text }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn what_belongs_together_is_what_sql_says(text in chain()) {
        let our = parse_expression(&text);
        let their = Parser::new(&GenericDialect).try_with_sql(&text).and_then(|mut parser| parser.parse_expr());
        let (Ok(our), Ok(their)) = (our, their) else { return Err(TestCaseError::fail(format!("{text} is refused"))) };
        prop_assert_eq!(ours(&our), theirs(&their), "{}", text);
    }

    #[test]
    fn what_we_print_is_what_sql_reads(expr in crate::generated::expression()) {
        let Some(our) = ours(&expr) else { return Ok(()) };
        let text = expression(&expr);
        // Names in backquotes are not SQL's.
        let Ok(their) = Parser::new(&GenericDialect).try_with_sql(&text).and_then(|mut parser| parser.parse_expr()) else {
            return Ok(());
        };
        if let Some(their) = theirs(&their) {
            prop_assert_eq!(our, their, "{}", text);
        }
    }
}
