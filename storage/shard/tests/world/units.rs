//! Comparison of scan results with whole rows.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use assay_storage_model::merge::Step;
use assay_storage_model::{ObjectKey, Xact};
use assay_storage_segments::{Form, Kind, Kinds, Want};
use assay_storage_shard::{ColumnCache, Row, Sought, Unit, View};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

/// Paths that are read, each alone.
const PATHS: [&[&str]; 5] =
    [&["metadata", "f0"], &["metadata", "f1"], &["metadata", "f2"], &["metadata"], &["nothing"]];

fn steps(path: &[&str]) -> Vec<Step> {
    path.iter().map(|key| Step::Key((*key).to_owned())).collect()
}

fn at_path<'v>(doc: &'v Value, path: &[&str]) -> &'v Value {
    path.iter().try_fold(doc, |value, key| value.as_object()?.get(*key)).unwrap_or(&Value::Null)
}

/// Checks that the units of this version hold exactly the rows that readers of whole rows see.
pub fn check(random: &mut ChaCha8Rng, cache: &ColumnCache, view: &View, object: &ObjectKey, v: Xact, all: &[Row]) {
    let units = view.units(object, v, &Sought::default()).expect("units");
    let forms: Vec<Option<Form>> = PATHS.iter().map(|path| agreed(cache, &units, &steps(path))).collect();
    let mut wants = vec![Want::Key, Want::Xact, Want::Id, Want::SpanId, Want::RootSpanId, Want::Created, Want::IsRoot];
    wants.extend([Want::Doc, Want::Field("metadata".into())]);
    wants.extend(PATHS.iter().zip(&forms).map(|(path, form)| Want::Path(steps(path), form.unwrap_or(Form::Json))));
    let expected: BTreeMap<u64, &Row> = all.iter().map(|row| (row.key.0, row)).collect();
    let mut found = 0;
    for unit in &units {
        let visible = unit.visible().expect("bits");
        assert_eq!(visible.len(), unit.rows());
        let (start, end) = part(random, unit.rows());
        for range in [0..start, start..end, end..unit.rows()] {
            let bits = visible.slice(range.start, range.len());
            let columns = unit.read(cache, range, Some(&bits), &wants).expect("reads");
            assert!(columns.iter().all(|column| column.len() == bits.count_set_bits()));
            for nth in 0..bits.count_set_bits() {
                let key = columns[0].as_primitive::<UInt64Type>().value(nth);
                let row = expected.get(&key).unwrap_or_else(|| panic!("{key} is not visible at {v:?}"));
                assert_same(row, &columns, nth, &forms);
                let bounds = unit.bounds().expect("known");
                assert!((bounds.key.0..=bounds.key.1).contains(&key));
                found += 1;
            }
        }
    }
    assert_eq!(found, all.len(), "each row once, at {v:?}");
    check_sought(random, cache, view, object, v, all);
}

fn part(random: &mut ChaCha8Rng, rows: usize) -> (usize, usize) {
    let start = random.random_range(0..=rows);
    (start, random.random_range(start..=rows))
}

fn agreed(cache: &ColumnCache, units: &[Unit], path: &[Step]) -> Option<Form> {
    let kinds = units.iter().map(|unit| unit.kinds(cache, path).expect("kinds"));
    kinds.fold(Kinds::NONE, Kinds::and).form()
}

/// Returns the texts of a dictionary, or any other column unchanged.
fn plain(column: &ArrayRef) -> ArrayRef {
    let Some(dictionary) = column.as_dictionary_opt::<Int32Type>() else { return ArrayRef::clone(column) };
    arrow_select::take::take(dictionary.values(), dictionary.keys(), None).expect("places within it")
}

fn assert_same(row: &Row, columns: &[ArrayRef], nth: usize, forms: &[Option<Form>]) {
    let roots = plain(&columns[4]);
    let text = |column: usize| {
        let texts = if column == 4 { &roots } else { &columns[column] }.as_string::<i32>();
        texts.is_valid(nth).then(|| texts.value(nth))
    };
    assert_eq!(columns[1].as_primitive::<UInt64Type>().value(nth), row.xact.0);
    assert_eq!([text(2), text(3), text(4)], [&row.id, &row.span_id, &row.root_span_id].map(|text| Some(text.as_str())));
    assert_eq!(columns[6].as_boolean().value(nth), row.is_root);
    assert_eq!(text(7).map(str::as_bytes), Some(&row.doc[..]));
    let doc: Value = serde_json::from_slice(&row.doc).expect("a document");
    let json = |text: Option<&str>| text.map_or(Value::Null, |text| serde_json::from_str(text).expect("JSON"));
    assert_eq!(json(text(8)), *at_path(&doc, &["metadata"]));
    for (which, path) in PATHS.iter().enumerate() {
        let (column, value) = (&plain(&columns[9 + which]), at_path(&doc, path));
        let found = match forms[which] {
            _ if column.is_null(nth) => Value::Null,
            None => panic!("{path:?} has a value though nothing has any"),
            Some(Form::Json) => json(Some(column.as_string::<i32>().value(nth))),
            Some(Form::Typed(Kind::Bool)) => column.as_boolean().value(nth).into(),
            Some(Form::Typed(Kind::Int)) => column.as_primitive::<Int64Type>().value(nth).into(),
            Some(Form::Typed(Kind::Float)) => column.as_primitive::<Float64Type>().value(nth).into(),
            Some(Form::Typed(Kind::Text)) => column.as_string::<i32>().value(nth).into(),
        };
        let same = if value.is_number() { found.as_f64() == value.as_f64() } else { found == *value };
        assert!(same, "{path:?} of {}: {found} for {value}", row.id);
    }
}

/// Checks that matching rows are among those found.
fn check_sought(random: &mut ChaCha8Rng, cache: &ColumnCache, view: &View, object: &ObjectKey, v: Xact, all: &[Row]) {
    let Some(one) = (!all.is_empty()).then(|| &all[random.random_range(0..all.len())]) else { return };
    let soughts = [
        Sought { ids: Some(vec![one.id.to_string(), "nobody".into()]), ..Sought::default() },
        Sought { root_span_ids: Some(vec![one.root_span_id.to_string()]), ..Sought::default() },
        Sought { key: Some((one.key.0, one.key.0)), ..Sought::default() },
        Sought { xact: Some((one.xact.0, u64::MAX)), created: Some((one.created, one.created)), ..Sought::default() },
    ];
    for (which, sought) in soughts.iter().enumerate() {
        let mut found = Vec::new();
        for unit in view.units(object, v, sought).expect("units") {
            let visible = unit.visible().expect("bits");
            let columns = unit.read(cache, 0..unit.rows(), Some(&visible), &[Want::Id]).expect("reads");
            found.extend(columns[0].as_string::<i32>().iter().map(|id| id.expect("an id").to_owned()));
        }
        let expected = all.iter().filter(|row| match which {
            0 => row.id == one.id,
            1 => row.root_span_id == one.root_span_id,
            2 => row.key == one.key,
            _ => row.xact >= one.xact && row.created == one.created,
        });
        for row in expected.clone() {
            assert!(found.contains(&row.id.to_string()), "{sought:?} misses {}", row.id);
        }
        if which < 2 {
            assert_eq!(found.len(), expected.count(), "{sought:?}");
        }
    }
}
