//! Comparisons of columns, held against the comparison kernels of arrow.

use arrow::array::{Datum, Scalar};
use arrow::compute::kernels::cmp;
use arrow::error::ArrowError;
use proptest::prelude::*;

use super::*;

const OPS: [Op; 6] = [Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge];
const ROWS_MAX: usize = 200;

fn arrow_kernel(op: Op) -> fn(&dyn Datum, &dyn Datum) -> Result<BooleanArray, ArrowError> {
    match op {
        Op::Eq => cmp::eq,
        Op::Ne => cmp::neq,
        Op::Lt => cmp::lt,
        Op::Le => cmp::lt_eq,
        Op::Gt => cmp::gt,
        Op::Ge => cmp::gt_eq,
    }
}

/// Integers of which some are equal and some are the largest there are.
fn integers() -> impl Strategy<Value = i64> {
    prop_oneof![-3..3_i64, any::<i64>(), Just(i64::MIN), Just(i64::MAX)]
}

fn floats() -> impl Strategy<Value = f64> {
    prop_oneof![(-3..3_i8).prop_map(f64::from), any::<f64>(), Just(0.0), Just(-0.0), Just(f64::NAN)]
}

/// Rows of two columns; each value may be missing.
fn rows<T: std::fmt::Debug>(
    values: impl Fn() -> BoxedStrategy<T>,
) -> impl Strategy<Value = Vec<(Option<T>, Option<T>)>> {
    let value = || proptest::option::of(values());
    proptest::collection::vec((value(), value()), 1..ROWS_MAX)
}

/// Compares rows, and a part of them that begins in the middle of a word, in both ways.
fn agrees<A: Array + Clone>(
    left: &A,
    right: &A,
    ours: impl Fn(Op, &A, &A) -> BooleanArray,
    part: impl Fn(&A, usize, usize) -> A,
) {
    for op in OPS {
        let kernel = arrow_kernel(op);
        assert_eq!(ours(op, left, right), kernel(left, right).expect("columns of one type"), "{op:?}");
        let from = left.len() / 3;
        let (left, right) = (part(left, from, left.len() - from), part(right, from, right.len() - from));
        assert_eq!(ours(op, &left, &right), kernel(&left, &right).expect("columns of one type"), "{op:?}");
    }
}

/// Compares rows with a constant.
fn agrees_with_constant<A: Array>(array: &A, constant: A, ours: impl Fn(Op, &A) -> BooleanArray) {
    let constant = Scalar::new(constant);
    for op in OPS {
        let wanted = arrow_kernel(op)(array, &constant).expect("a constant of the type");
        assert_eq!(ours(op, array), wanted, "{op:?}");
    }
}

proptest! {
    #[test]
    fn integers_compare_as_those_of_arrow(rows in rows(|| integers().boxed()), constant in integers()) {
        let left: Int64Array = rows.iter().map(|(left, _)| *left).collect();
        let right: Int64Array = rows.iter().map(|(_, right)| *right).collect();
        agrees(&left, &right, |op, left, right| op.of_numbers(left, right), |array, at, rows| array.slice(at, rows));
        agrees_with_constant(&left, Int64Array::from(vec![constant]), |op, array| op.with_number(array, constant));
    }

    #[test]
    fn floats_compare_as_those_of_arrow(rows in rows(|| floats().boxed()), constant in floats()) {
        let left: Float64Array = rows.iter().map(|(left, _)| *left).collect();
        let right: Float64Array = rows.iter().map(|(_, right)| *right).collect();
        agrees(&left, &right, |op, left, right| op.of_numbers(left, right), |array, at, rows| array.slice(at, rows));
        agrees_with_constant(&left, Float64Array::from(vec![constant]), |op, array| op.with_number(array, constant));
    }

    #[test]
    fn texts_compare_as_those_of_arrow(rows in rows(|| "[a-cé]{0,3}".boxed()), constant in "[a-cé]{0,3}") {
        let left: StringArray = rows.iter().map(|(left, _)| left.as_deref()).collect();
        let right: StringArray = rows.iter().map(|(_, right)| right.as_deref()).collect();
        agrees(&left, &right, |op, left, right| op.of_texts(left, right), |array, at, rows| array.slice(at, rows));
        let alone = StringArray::from(vec![constant.as_str()]);
        agrees_with_constant(&left, alone, |op, array| op.with_text(array, &constant));
    }

    #[test]
    fn truths_compare_as_those_of_arrow(rows in rows(|| any::<bool>().boxed())) {
        let left: BooleanArray = rows.iter().map(|(left, _)| *left).collect();
        let right: BooleanArray = rows.iter().map(|(_, right)| *right).collect();
        agrees(&left, &right, |op, left, right| op.of_booleans(left, right), |array, at, rows| array.slice(at, rows));
    }
}
