//! Kernels agree with the scalar path, for every pair of types and constants that a call can meet.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use assay_node_btql::ast::{self, Interval, Step, Unit};
use assay_node_btql::bound::{BoundExpr, DatePart, Datum, Field, Function, ScalarFunction};
use assay_node_expressions::{Env, Program, Type};
use serde_json::json;

const ROWS: usize = 8;
const NOON: i64 = 1_777_636_800_000_000;
const KEY: u64 = 7_635_000_000_000_000_000;

/// A column of each type, with what is special to it.
fn columns() -> Vec<(Type, ArrayRef)> {
    let mut columns = numbers();
    let texts = |of: [&str; ROWS]| {
        // An empty place is null, and a pair of quotes an empty text.
        let of = of.into_iter().map(|text| (!text.is_empty()).then_some(text.trim_matches('\'')));
        Arc::new(of.collect::<StringArray>()) as ArrayRef
    };
    let times = [Some(NOON), None, Some(0), Some(-1), Some(NOON + 1), Some(i64::MAX), Some(i64::MIN), Some(NOON)];
    let times: ArrayRef = Arc::new(times.into_iter().collect::<TimestampMicrosecondArray>());
    let keys = [Some(KEY), None, Some(0), Some(1), Some(5), Some(u64::MAX), Some(KEY), Some(2)];
    let keys: ArrayRef = Arc::new(keys.into_iter().collect::<UInt64Array>());
    let intervals = ["7 day", "", "1 month", "0 day", "-2 hour", "1 year", "3 week", "odd"];
    let json = ["5", "", "\"a\"", "[1,\"a\"]", "{\"a\":\"prod\"}", "true", "0.5", "\"2026-05-01\""];
    let nested = [
        r#"{"a":1.0}"#,
        "",
        r#"{"a":"\u0061"}"#,
        r#"{"b":[1],"a":{"a":5}}"#,
        r#"{"a":null}"#,
        r#"{"a":-0,"b":["a"]}"#,
        r#"["\u0061"]"#,
        r#"{"a":["5",18446744073709551616]}"#,
    ];
    columns.extend([
        (Type::Text, texts(["''", "", "Prod-A b", "5", "Größe", "2026-05-01", "İK", "a"])),
        (Type::Created, Arc::clone(&times)),
        (Type::Time, times),
        (Type::Xact, Arc::clone(&keys)),
        (Type::Key, keys),
        (Type::Interval, texts(intervals)),
        (Type::Json, texts(json)),
        (Type::Json, texts(nested)),
        (Type::Text, words()),
    ]);
    columns
}

/// Texts that a dictionary says once each; one of its own places is empty too.
fn words() -> ArrayRef {
    let said = [Some("a"), Some("5"), None, Some("2026-05-01"), Some("Größe")];
    let places = [Some(0), None, Some(1), Some(2), Some(0), Some(3), Some(4), Some(1)];
    let said: StringArray = said.into_iter().collect();
    Arc::new(DictionaryArray::new(places.into_iter().collect::<Int32Array>(), Arc::new(said)))
}

fn numbers() -> Vec<(Type, ArrayRef)> {
    let big = (1_i64 << 53) + 1;
    let ints = [Some(0), None, Some(1), Some(-7), Some(big), Some(i64::MAX), Some(i64::MIN), Some(1_777_636_800)];
    let safe = [Some(0), None, Some(1), Some(-7), Some(3), Some(2), Some(100), Some(5)];
    let floats = [Some(0.0), None, Some(-0.0), Some(0.5), Some(1.0), Some(big as f64), Some(f64::NAN), Some(-1e300)];
    let small = [Some(0.25), None, Some(1.0), Some(-2.5), Some(3.0), Some(0.0), Some(7.0), Some(1e10)];
    let bools = [Some(true), None, Some(false), Some(true), Some(true), None, Some(false), Some(false)];
    let beyond = i128::from(u64::MAX);
    let wide = [Some(1_i128 << 63), None, Some(1 << 70), Some(-5), Some(0), Some(beyond), Some(3), Some(1)];
    let wide = wide.into_iter().collect::<Decimal128Array>().with_data_type(Type::Wide.data_type());
    vec![
        (Type::Bool, Arc::new(bools.into_iter().collect::<BooleanArray>())),
        (Type::Int, Arc::new(ints.into_iter().collect::<Int64Array>())),
        (Type::Int, Arc::new(safe.into_iter().collect::<Int64Array>())),
        (Type::Float, Arc::new(floats.into_iter().collect::<Float64Array>())),
        (Type::Float, Arc::new(small.into_iter().collect::<Float64Array>())),
        (Type::Wide, Arc::new(wide)),
    ]
}

fn constants() -> Vec<Datum> {
    let text = |text: &str| Datum::Text(text.to_owned());
    vec![
        Datum::Null,
        Datum::Boolean(true),
        Datum::Integer(0),
        Datum::Integer(1),
        Datum::Integer((1 << 53) + 1),
        Datum::Integer(i64::MIN),
        Datum::Unsigned(u64::MAX),
        Datum::Float(0.5),
        Datum::Float(1e300),
        text("a"),
        text("5"),
        text("%a%"),
        text("PROD%"),
        text("_"),
        text("2026-05-01"),
        text("p07635000000000000000"),
        text("7635000000000000000"),
        Datum::Time(NOON),
        Datum::Interval(Interval { value: 1, unit: Unit::Month }),
        Datum::Interval(Interval { value: i64::MAX, unit: Unit::Week }),
        Datum::Json(json!(["a", "5", null])),
        Datum::Json(json!([1, 0, 5, true])),
        Datum::Json(json!([0.5, "a", 1])),
        Datum::Json(json!({"a": 1})),
    ]
}

/// Functions of the table that take so many arguments.
fn scalars(count: usize) -> impl Iterator<Item = Function> {
    let takes = move |scalar: &ScalarFunction| scalar.row().arity().contains(&count);
    ScalarFunction::all().filter(takes).map(Function::Scalar)
}

fn functions_of_two() -> Vec<Function> {
    use Function as F;
    let any_case = [false, true];
    let mut all = vec![F::And, F::Or, F::Eq, F::Ne, F::Lt, F::Le, F::Gt, F::Ge, F::Same, F::NotSame, F::In];
    all.extend([F::Add, F::Sub, F::Mul, F::Div, F::Mod, F::Match, F::Includes, F::TagsInclude]);
    all.extend(any_case.map(|any_case| F::Like { any_case }));
    all.extend(any_case.map(|any_case| F::Regex { any_case }));
    all.extend(any_case.map(|skips_nulls| F::Concat { skips_nulls }));
    all.extend(scalars(2));
    all
}

fn functions_of_one() -> Vec<Function> {
    use Function as F;
    let mut all = vec![F::Not, F::IsNull, F::IsNotNull, F::Minus, F::ToInterval];
    all.extend(scalars(1));
    let to = [ast::Type::Text, ast::Type::Boolean, ast::Type::Integer, ast::Type::Number, ast::Type::Date];
    all.extend(to.into_iter().chain([ast::Type::Timestamp, ast::Type::Json]).map(F::Cast));
    for unit in [Unit::Year, Unit::Month, Unit::Week, Unit::Day, Unit::Hour, Unit::Minute, Unit::Second] {
        all.push(F::Truncate { unit, many: 1 });
        all.push(F::DatePart(DatePart::Unit(unit)));
    }
    all.push(F::Truncate { unit: Unit::Minute, many: 15 });
    all.extend([vec![Step::Key("a".into())], vec![Step::Key("b".into()), Step::Index(-1)]].map(F::Get));
    all.extend([DatePart::DayOfWeek, DatePart::DayOfYear, DatePart::Quarter, DatePart::Epoch].map(F::DatePart));
    all
}

fn field(number: usize) -> BoundExpr {
    BoundExpr::Field(Field::Inner(number), Vec::new())
}

fn check(expr: &BoundExpr, columns: &[(Type, ArrayRef)]) {
    let schema = |field: &Field, steps: &[Step]| match field {
        Field::Inner(number) if steps.is_empty() => Some((*number, columns[*number].0)),
        _ => None,
    };
    let arrays: Vec<ArrayRef> = columns.iter().map(|(_, array)| Arc::clone(array)).collect();
    let program = Program::compile(expr, &schema, &Env { tz_offset: -330, ..Env::default() }).expect("a program");
    let fast = program.run(&arrays, ROWS).expect("a column");
    let slow = program.run_one_by_one(&arrays, ROWS).expect("a column");
    assert_eq!(&fast, &slow, "{expr:?}");
    assert_eq!(*fast.data_type(), program.output().data_type(), "{expr:?}");
    let filter = program.run_filter(&arrays, ROWS).expect("a filter");
    assert_eq!((filter.len(), filter.null_count()), (ROWS, 0));
    if program.output() == Type::Bool {
        let is_true = fast.as_boolean().iter().map(|truth| Some(truth == Some(true)));
        assert!(filter.iter().eq(is_true), "{expr:?}");
    }
}

#[test]
fn calls_of_two_are_the_same_fast_and_slow() {
    let columns = columns();
    for function in functions_of_two() {
        for left in 0..columns.len() {
            for right in 0..columns.len() {
                check(&BoundExpr::Call(function.clone(), vec![field(left), field(right)]), &columns);
            }
            for constant in constants() {
                check(
                    &BoundExpr::Call(function.clone(), vec![field(left), BoundExpr::Const(constant.clone())]),
                    &columns,
                );
                check(&BoundExpr::Call(function.clone(), vec![BoundExpr::Const(constant), field(left)]), &columns);
            }
        }
    }
}

#[test]
fn calls_of_one_are_the_same_fast_and_slow() {
    let columns = columns();
    for function in functions_of_one() {
        for of in 0..columns.len() {
            check(&BoundExpr::Call(function.clone(), vec![field(of)]), &columns);
        }
    }
}

#[test]
fn choices_are_the_same_fast_and_slow() {
    let columns = columns();
    let others: Vec<BoundExpr> =
        (0..columns.len()).map(field).chain(constants().into_iter().map(BoundExpr::Const)).collect();
    for then in 0..columns.len() {
        for otherwise in &others {
            let cases = vec![(field(0), field(then)), (field(2), otherwise.clone())];
            check(&BoundExpr::If(cases, Box::new(otherwise.clone())), &columns);
            check(&BoundExpr::If(vec![(field(0), otherwise.clone())], Box::new(field(then))), &columns);
        }
    }
}
