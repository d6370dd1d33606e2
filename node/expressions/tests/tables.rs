//! Results of functions and operators, written by hand: each row of a table is an expression and its value in three rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use assay_node_btql::ast::Step;
use assay_node_btql::bound::{BoundExpr, Datum, Derived, Field, Function, Output, ScalarFunction};
use assay_node_btql::functions::{ArgumentKind, NullRule};
use assay_node_btql::{Env as Asked, bind, parse_text};
use assay_node_expressions::{Env, Error, Program, Schema, Type};
use assay_storage_model::event::parse_created;

const ROWS: usize = 3;

fn bound(expr: &str) -> BoundExpr {
    let query = parse_text(&format!("select: {expr} as x | from: project_logs('P')")).expect("a query");
    let bound = bind(&query, &Asked::default()).unwrap_or_else(|error| panic!("{expr}: {error}"));
    match bound.output {
        Output::Rows { mut columns, .. } => columns.remove(0).1,
        other => panic!("{other:?}"),
    }
}

fn arrays() -> Vec<ArrayRef> {
    let time = |text: &str| parse_created(text);
    let created = [time("2026-05-04T23:30:00.250Z"), time("2024-01-31T00:00:00Z"), None];
    let metadata = [
        Some(r#"{"v":1,"s":"Prod-A","l":[1,"a",null],"o":{"x":{"y":2.50}}}"#),
        Some(r#"{"v":"1","n":9007199254740993}"#),
        None,
    ];
    vec![
        Arc::new(created.into_iter().collect::<TimestampMicrosecondArray>()),
        Arc::new(metadata.into_iter().collect::<StringArray>()),
        Arc::new([Some(i64::MAX), Some(2), None].into_iter().collect::<Int64Array>()),
        Arc::new([Some(0.5), Some(2.0), None].into_iter().collect::<Float64Array>()),
        Arc::new([Some("chat"), Some("50% off"), None].into_iter().collect::<StringArray>()),
        Arc::new([Some(1_000_u64), Some(1 << 60), None].into_iter().collect::<UInt64Array>()),
        Arc::new([Some(7_u64), Some(8), None].into_iter().collect::<UInt64Array>()),
    ]
}

fn schema(field: &Field, steps: &[Step]) -> Option<(usize, Type)> {
    let Field::Column(name) = field else { return None };
    let key = match steps {
        [] => "",
        [Step::Key(key)] => key,
        _ => return None,
    };
    Some(match (*name, key) {
        ("created", "") => (0, Type::Created),
        ("metadata", "") => (1, Type::Json),
        ("metrics", "tokens") => (2, Type::Int),
        ("scores", "a") => (3, Type::Float),
        ("id", "") => (4, Type::Text),
        ("_xact_id", "") => (5, Type::Xact),
        ("_pagination_key", "") => (6, Type::Key),
        _ => return None,
    })
}

/// Each value as the text of it that JSON has.
fn shown(expr: &str, tz_offset: i32) -> Vec<String> {
    // As JSON everything is shown, whatever its type is.
    let whole = BoundExpr::Call(Function::Array, vec![bound(expr)]);
    let program = Program::compile(&whole, &schema, &Env { tz_offset, ..Env::default() })
        .unwrap_or_else(|error| panic!("{expr}: {error}"));
    let fast = program.run(&arrays(), ROWS).expect("a column");
    assert_eq!(&fast, &program.run_one_by_one(&arrays(), ROWS).expect("a column"), "{expr}");
    let of = fast.as_string::<i32>();
    (0..ROWS).map(|row| of.value(row).trim_start_matches('[').trim_end_matches(']').to_owned()).collect()
}

fn check(table: &[(&str, [&str; ROWS])]) {
    for (expr, expected) in table {
        assert_eq!(shown(expr, 0), expected, "{expr}");
    }
}

#[test]
fn comparisons_are_of_kinds_that_have_an_order() {
    check(&[
        ("metrics.tokens > 9223372036854775806", ["true", "false", "null"]),
        ("metrics.tokens = 9223372036854775807.0", ["false", "false", "null"]),
        ("metadata.v = 1", ["true", "true", "null"]),
        ("metadata.v < 'a'", ["null", "true", "null"]),
        ("metadata.v != true", ["true", "true", "null"]),
        ("metadata.n = 9007199254740992", ["null", "false", "null"]),
        ("metadata.v <=> null", ["false", "false", "true"]),
        ("metadata.nowhere IS NULL", ["true", "true", "true"]),
        ("_xact_id = '1000'", ["true", "false", "null"]),
        ("_xact_id > 1000.5", ["false", "true", "null"]),
        ("_pagination_key >= 'p00000000000000000008'", ["false", "true", "null"]),
        ("_pagination_key > 'p'", ["true", "true", "null"]),
        ("created < '2025-01-01'", ["false", "true", "null"]),
        ("id IN ('chat', null)", ["true", "null", "null"]),
        ("metrics.tokens IN (2, 3)", ["false", "true", "null"]),
        ("metadata.l IN ('a')", ["true", "null", "null"]),
    ]);
}

#[test]
fn logic_has_three_values() {
    check(&[
        ("id = 'chat' AND metadata.nowhere", ["null", "false", "null"]),
        ("id = 'chat' OR metadata.nowhere", ["true", "null", "null"]),
        ("NOT scores.a", ["false", "false", "null"]),
        ("metadata.v AND true", ["true", "null", "null"]),
        ("CASE WHEN scores.a > 1 THEN 'high' WHEN id IS NULL THEN 'none' END", ["null", "\"high\"", "\"none\""]),
    ]);
}

#[test]
fn numbers_stay_whole_as_long_as_they_can() {
    check(&[
        ("metrics.tokens + 1", ["9223372036854775808", "3", "null"]),
        ("metrics.tokens * 4", ["3.6893488147419103e+19", "8", "null"]),
        ("metrics.tokens * 2 + 1", ["18446744073709551615", "5", "null"]),
        ("metrics.tokens - 0.5", ["9.223372036854776e+18", "1.5", "null"]),
        ("metrics.tokens / 0", ["null", "null", "null"]),
        ("4 / metrics.tokens", ["4.336808689942018e-19", "2", "null"]),
        ("scores.a * 2", ["1", "4", "null"]),
        ("metrics.tokens % 2", ["1", "0", "null"]),
        ("metrics.tokens % (metrics.tokens * length(id))", ["9.223372036854776e+18", "2", "null"]),
        ("scores.a % 0", ["null", "null", "null"]),
        ("metadata.n + 1", ["null", "9007199254740994", "null"]),
        ("round(scores.a)", ["1", "2", "null"]),
        ("true + metrics.tokens", ["9223372036854775808", "3", "null"]),
        ("coalesce(scores.a, 0)", ["0.5", "2", "0"]),
        ("to_integer(scores.a)", ["0", "2", "null"]),
        ("to_number(metadata.v)", ["1", "1", "null"]),
        ("scores.a::string", ["\"0.5\"", "\"2\"", "null"]),
    ]);
}

#[test]
fn texts_are_of_whatever_there_is() {
    check(&[
        ("id LIKE '%50\\% o%'", ["false", "true", "null"]),
        ("metadata.s ILIKE 'prod%'", ["true", "null", "null"]),
        ("metadata LIKE '%\"y\":2.50%'", ["true", "false", "null"]),
        ("metadata MATCH 'prod a'", ["true", "false", "null"]),
        ("id ~ '^[a-z]+$'", ["true", "false", "null"]),
        ("upper(id)", ["\"CHAT\"", "\"50% OFF\"", "null"]),
        ("id || metrics.tokens", ["\"chat9223372036854775807\"", "\"50% off2\"", "null"]),
        ("concat(id, '-', scores.a)", ["\"chat-0.5\"", "\"50% off-2\"", "\"-\""]),
        ("length(id)", ["4", "7", "null"]),
        ("length(metadata.l)", ["3", "null", "null"]),
        ("metadata.o.x.y", ["2.5", "null", "null"]),
        ("metadata.l INCLUDES '1'", ["true", "null", "null"]),
        ("substring(id, 2, 2)", ["\"ha\"", "\"0%\"", "null"]),
        ("_pagination_key || ''", ["\"p00000000000000000007\"", "\"p00000000000000000008\"", "null"]),
        ("_xact_id || ''", ["\"1000\"", "\"1152921504606846976\"", "null"]),
    ]);
}

#[test]
fn times_are_shown_as_they_were_stored_and_computed_ones_to_the_second() {
    check(&[
        ("created", ["\"2026-05-04T23:30:00.250Z\"", "\"2024-01-31T00:00:00.000Z\"", "null"]),
        ("created + interval 1 month", ["\"2026-06-04T23:30:00.250Z\"", "\"2024-02-29T00:00:00Z\"", "null"]),
        ("hour(created)", ["\"2026-05-04T23:00:00Z\"", "\"2024-01-31T00:00:00Z\"", "null"]),
        ("created - created", ["0", "0", "null"]),
        ("to_unixtime(created)", ["1777937400.25", "1706659200", "null"]),
        ("date_part('month', created)", ["5", "1", "null"]),
        ("created IN ('2024-01-31')", ["false", "true", "null"]),
        ("'2026-05-04T23:59:00-05:00'::timestamp", ["\"2026-05-05T04:59:00Z\""; ROWS]),
    ]);
    let local = |expr: &str| shown(expr, 480);
    assert_eq!(local("day(created)"), ["\"2026-05-04T08:00:00Z\"", "\"2024-01-30T08:00:00Z\"", "null"]);
    assert_eq!(local("date_part('hour', created)"), ["15", "16", "null"]);
    assert_eq!(local("to_date(id || '')"), ["null"; ROWS]);
}

#[test]
fn types_are_known_before_there_are_rows() {
    for (expr, ty) in [
        ("metrics.tokens", Type::Int),
        ("metrics.tokens + 1", Type::Wide),
        ("length(id) + 1", Type::Int),
        ("metrics.tokens % 2", Type::Int),
        ("metrics.tokens % (metrics.tokens * length(id))", Type::Wide),
        ("metrics.tokens / 2", Type::Float),
        ("scores.a + 1", Type::Float),
        ("coalesce(scores.a, 0)", Type::Float),
        ("coalesce(metrics.tokens, 0.5)", Type::Json),
        ("id = 'a'", Type::Bool),
        ("created", Type::Created),
        ("day(created)", Type::Time),
        ("coalesce(created, day(created))", Type::Time),
        ("_xact_id", Type::Xact),
        ("metadata.v", Type::Json),
        ("1 + 1", Type::Int),
        ("null", Type::Null),
    ] {
        let program = Program::compile(&bound(expr), &schema, &Env::default()).expect("a program");
        assert_eq!(program.output(), ty, "{expr}");
    }
}

#[test]
fn what_is_derived_is_a_column_where_there_is_one_and_computed_where_there_is_none() {
    let costs = |field: &Field, steps: &[Step]| match (field, steps) {
        (Field::Derived(Derived::EstimatedCost), []) => Some((3, Type::Float)),
        _ => schema(field, steps),
    };
    let compiled = |expr: &str, schema: Schema<'_>| Program::compile(&bound(expr), schema, &Env::default());
    let program = compiled("metrics.estimated_cost > 1", &costs).expect("a program");
    let found = program.run(&arrays(), ROWS).expect("a column");
    assert_eq!(found.as_boolean(), &BooleanArray::from(vec![Some(false), Some(true), None]));
    let missing = compiled("metrics.estimated_cost", &schema);
    assert!(matches!(missing, Err(Error::NoColumn(Field::Derived(Derived::EstimatedCost)))));
}

#[test]
fn texts_of_a_dictionary_are_texts() {
    let program = Program::compile(&bound("id"), &schema, &Env::default()).expect("a program");
    let mut arrays = arrays();
    let said: StringArray = [Some("chat"), Some("50% off")].into_iter().collect();
    let places = [Some(1), None, Some(0)].into_iter().collect::<Int32Array>();
    arrays[4] = Arc::new(DictionaryArray::new(places, Arc::new(said)));
    let found = program.run(&arrays, ROWS).expect("a column");
    assert_eq!(found.as_string::<i32>(), &StringArray::from(vec![Some("50% off"), None, Some("chat")]));
    for (expr, expected) in [
        ("id = 'chat'", [Some(false), None, Some(true)]),
        ("id IN ('chat', 'other')", [Some(false), None, Some(true)]),
        ("upper(id) LIKE 'CH%'", [Some(false), None, Some(true)]),
        ("id IS NULL", [Some(false), Some(true), Some(false)]),
        ("coalesce(id, 'none') = 'none'", [Some(false), Some(true), Some(false)]),
    ] {
        let program = Program::compile(&bound(expr), &schema, &Env::default()).expect("a program");
        let found = program.run(&arrays, ROWS).expect("a column");
        assert_eq!(found.as_boolean(), &BooleanArray::from(expected.to_vec()), "{expr}");
    }
}

#[test]
fn columns_that_are_not_as_they_were_said_to_be_are_errors() {
    let program = Program::compile(&bound("metrics.tokens + 1"), &schema, &Env::default()).expect("a program");
    assert!(matches!(program.run(&[], ROWS), Err(Error::NoInput(2))));
    assert!(matches!(program.run(&arrays(), 2), Err(Error::OtherLength { wanted: 2, found: 3 })));
    let mut other = arrays();
    other[2] = Arc::clone(&other[3]);
    assert!(matches!(program.run(&other, ROWS), Err(Error::OtherType { wanted: Type::Int, .. })));
    let missing = Program::compile(&bound("input"), &schema, &Env::default());
    assert!(matches!(missing, Err(Error::NoColumn(Field::Column("input")))));
}

fn sample(kind: ArgumentKind) -> Datum {
    match kind {
        ArgumentKind::Any | ArgumentKind::Text => Datum::Text("a".into()),
        ArgumentKind::Number | ArgumentKind::Integer => Datum::Integer(1),
        ArgumentKind::Boolean => Datum::Boolean(true),
        ArgumentKind::Time => Datum::Time(0),
        ArgumentKind::Constant | ArgumentKind::Unit => Datum::Text("day".into()),
        ArgumentKind::Pattern => Datum::Text("(a)".into()),
        ArgumentKind::Json => Datum::Json(serde_json::json!({"a": 1})),
    }
}

#[test]
fn nulls_are_treated_as_the_rows_say() {
    for function in ScalarFunction::all() {
        let row = function.row();
        for count in row.arity().take(3) {
            for nulls in 0..1_u32 << count {
                let is_null = |number: usize| nulls & 1 << number != 0;
                let arg = |number| if is_null(number) { Datum::Null } else { sample(row.argument_kind(number)) };
                let args = (0..count).map(|number| BoundExpr::Const(arg(number))).collect();
                let call = BoundExpr::Call(Function::Scalar(function), args);
                let program = Program::compile(&call, &schema, &Env::default()).expect("a program");
                let expected = match row.nulls {
                    NullRule::NullIfAny => nulls != 0,
                    NullRule::NullIfFirst => is_null(0),
                    NullRule::NullIfAll => (0..count).all(is_null),
                    NullRule::Skipped | NullRule::Never => false,
                    NullRule::Other(_) => continue,
                };
                // Two equal values make NULLIF null as well.
                let found = program.constant().expect("a constant").is_null();
                assert!(found == expected || row.name() == "nullif" && nulls == 0, "{call:?}");
            }
        }
    }
}
