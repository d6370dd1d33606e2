//! Pages of traces, newest first, among so many that a page is found without reading all of them: spans of many traces
//! are interleaved, roots come first, last or never.

use std::rc::Rc;

use assay_node_btql::{Env, bind, parse_text};
use assay_storage_model::{PaginationKey, Xact};
use assay_test_btql::random::{Dice, SOURCE, data, rows};
use assay_test_btql::{Dataset, Fields};
use serde_json::Value as Json;

use crate::compare;
use crate::world::{Storage, World};

const WORLDS: u64 = 3;
/// Rows at random so many times over, each time other traces.
const TIMES: u64 = 30;
/// Maximum distance of the spans of a trace.
const SPREAD: usize = 90;
const FIRST_XACT: u64 = 1_000_197_000_000_000_000;

fn many(seed: u64) -> Dataset {
    let mut dice = Dice::of(seed);
    let mut placed: Vec<(usize, Fields)> = Vec::new();
    for time in 0..TIMES {
        for (nth, row) in rows(seed * TIMES + time).into_iter().enumerate() {
            let mut row = (*row).clone();
            for name in ["id", "span_id", "root_span_id"] {
                let text = format!("{time}-{}", row[name].as_str().expect("a text"));
                row.insert(name.into(), text.into());
            }
            placed.push((time as usize * 20 + nth + dice.below(SPREAD), Rc::new(row)));
        }
    }
    placed.sort_by_key(|(place, _)| *place);
    let mut data = data(seed);
    data.objects[0].rows = placed.into_iter().enumerate().map(|(number, (_, row))| keyed(row, number)).collect();
    data
}

fn keyed(row: Fields, number: usize) -> Fields {
    let mut row = row;
    let fields = Rc::make_mut(&mut row);
    let key = PaginationKey::new(Xact(FIRST_XACT - 1), number as u16);
    fields.insert("_pagination_key".into(), Json::from(key.to_string()));
    fields.insert("_xact_id".into(), Json::from((FIRST_XACT + number as u64 / 4).to_string()));
    row
}

#[test]
fn a_page_of_the_newest_traces_is_that_of_all_traces() {
    let mut wrong = Vec::new();
    for seed in 0..WORLDS {
        let data = many(seed);
        let kept = [Storage::InMemory, Storage::Everywhere, Storage::Settled][(seed % 3) as usize];
        let worlds = [(format!("{kept:?}"), World::new(&data, kept, false))];
        for shape in ["traces", "summary"] {
            for condition in ["", "WHERE error IS NOT NULL", "WHERE is_root", "WHERE metrics.tokens > 550"] {
                for limit in [1, 2, 5, 30] {
                    let text = format!(
                        "SELECT id, root_span_id, metrics.tokens FROM project_logs('{SOURCE}', shape => '{shape}') {condition} LIMIT {limit}"
                    );
                    let bound = bind(&parse_text(&text).expect("a query"), &Env::default()).expect("it binds");
                    compare(&text, &bound, &data, &worlds, &mut wrong);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} are answered otherwise:\n{}", wrong.len(), wrong[..wrong.len().min(3)].join("\n"));
}

/// A leaf's read ends after the bytes of a page. The pages together still have all rows, for any number of leaves.
#[test]
fn pages_that_end_behind_some_bytes_are_all_rows() {
    const SECOND: &str = "second";
    let mut cut = 0;
    for (seed, kept) in [(0, Storage::InMemory), (1, Storage::Everywhere), (2, Storage::Settled)] {
        let mut data = many(seed);
        let mut second = data.objects[0].clone();
        second.names = vec![SECOND.to_owned()];
        let mut nth = 0;
        let mut one_in_three = || {
            nth += 1;
            nth % 3 == 0
        };
        (second.rows, data.objects[0].rows) = data.objects[0].rows.drain(..).partition(|_| one_in_three());
        data.objects.push(second);
        let world = World::new(&data, kept, true);
        for select in ["id", "*"] {
            for (order, condition) in [("", ""), ("ORDER BY _pagination_key", ""), ("", "WHERE metrics.tokens > 550")] {
                let from = format!("project_logs('{SOURCE}', '{SECOND}')");
                let text = format!("SELECT {select} FROM {from} {condition} {order} LIMIT 100000");
                let bound = bind(&parse_text(&text).expect("a query"), &Env::default()).expect("it binds");
                let (whole, whole_bytes) = world.pages_of_bytes(&bound, usize::MAX).expect("an answer");
                for bytes in [700, 10_000, 200_000] {
                    let (all, part_bytes) = world.pages_of_bytes(&bound, bytes).expect("an answer");
                    assert_eq!(all, whole, "{text} by {bytes} bytes, {kept:?}");
                    if whole_bytes > 20 * bytes {
                        assert!(part_bytes < whole_bytes, "{text}: all {whole_bytes} bytes for {bytes}, {kept:?}");
                        cut += 1;
                    }
                }
            }
        }
    }
    assert!(cut > 10, "only {cut} answers were long enough to be cut");
}

/// Number of rows, of which few are asked for. Then a path is read as JSON, whatever its values are.
const SPARSE_ROWS: usize = 400;

/// A leaf measures the numbers of a page as the JSON texts that it reads. Decoded, they are numbers without any text.
#[test]
fn pages_of_numbers_are_all_rows() {
    let mut data = many(0);
    let (row, rows) = (data.objects[0].rows[0].clone(), &mut data.objects[0].rows);
    *rows = (0..SPARSE_ROWS).map(|number| keyed(row.clone(), number)).collect();
    for (number, row) in rows.iter_mut().enumerate() {
        let fields = Rc::make_mut(row);
        fields.insert("id".into(), format!("{number}").into());
        let metadata = serde_json::json!({"n": 9_000_000_000_000_000_u64 - number as u64, "pick": number % 20 == 0});
        fields.insert("metadata".into(), metadata);
    }
    for kept in crate::world::ALL_KEPT {
        let world = World::new(&data, kept, false);
        let text = format!("SELECT metadata.n FROM project_logs('{SOURCE}') WHERE metadata.pick");
        let bound = bind(&parse_text(&text).expect("a query"), &Env::default()).expect("it binds");
        for bytes in [20, 100, 200] {
            let paged = world.paged(&bound, None, bytes).expect("an answer");
            assert_eq!(paged.len(), SPARSE_ROWS / 20, "{bytes} bytes, {kept:?}");
        }
    }
}
