//! Write history (D-90): the engine reads it from a shard, the interpreter has each write as a row of its own. The
//! conversion of writes into such rows is here, and shares no code with the engine.

use std::collections::BTreeMap;
use std::rc::Rc;

use assay_node_btql::ast::{Amount, At, Expr, Logic, Node, Query, Source};
use assay_node_btql::bound::{Bound, Key, Order, Output};
use assay_node_btql::{Env, bind, parse_expression, parse_text};
use assay_node_engine::innermost;
use assay_storage_model::command::{Action, RowOp};
use assay_storage_model::event::parse_created;
use assay_storage_model::{PaginationKey, Xact};
use assay_test_btql::case::{self, same, same_answer};
use assay_test_btql::random::Dice;
use assay_test_btql::{Dataset, QueryAnswer, random, run};
use serde_json::{Map, Value as Json, json};

use crate::world::{ALL_KEPT, Storage, World};

const IDS: [&str; 4] = ["a", "b", "c", "d"];
const FIRST_XACT: u64 = 1_000_197_000_000_000_000;
const TRANSACTIONS: usize = 14;
/// Time of a delete, which has little content.
const DELETED_AT: &str = "2026-05-09T10:00:00.000Z";
/// Audit fields that a write may have.
const AUDITS: [&str; 3] =
    ["", r#"{"source":"app","metadata":{"by":"me"}}"#, r#"{"source":"external","metadata":null}"#];
/// Fields of a row that merges do not change.
const OF_ROW: [&str; 5] = ["id", "span_id", "root_span_id", "is_root", "created"];
const OF_OBJECT: [&str; 3] = ["log_id", "org_id", "project_id"];
const NOT_WRITTEN: [&str; 4] = ["_pagination_key", "_xact_id", "comments", "audit_data"];
/// One in so many of the seeds used elsewhere is tried here, and this percentage of them can be run on write histories.
const SEEDS_ONE_IN: u64 = 4;
const ASKED_PERCENT: u64 = 40;

struct Op {
    action: Action,
    row: Map<String, Json>,
    doc: String,
    audit: &'static str,
}

/// State of a row during the writes.
#[derive(Clone)]
struct Live {
    key: PaginationKey,
    row: Map<String, Json>,
}

/// Transactions, and what they come to.
struct History {
    transactions: Vec<(u64, Vec<Op>)>,
    /// Each with a key of its own, by which the interpreter has them in their order.
    writes: Dataset,
    /// The keys that the rows have, by those.
    keys: BTreeMap<String, String>,
}

fn history(seed: u64) -> History {
    let mut dice = Dice::of(seed ^ 0x4175_6469);
    let mut made = History { transactions: Vec::new(), writes: random::data(seed), keys: BTreeMap::new() };
    let rows = std::mem::take(&mut made.writes.objects[0].rows);
    let mut live: BTreeMap<&str, Live> = BTreeMap::new();
    for number in 0..TRANSACTIONS {
        let xact = FIRST_XACT + 3 * number as u64;
        let mut ops: Vec<Op> = Vec::new();
        let mut writes: Vec<(PaginationKey, Map<String, Json>)> = Vec::new();
        // Several merges of a row in one transaction stay several; or it is of several rows.
        let ids: Vec<&str> = if dice.happens(50) { vec![*dice.pick(&IDS); 3] } else { IDS.to_vec() };
        for (turn, id) in ids.iter().enumerate().filter(|_| dice.happens(60)).collect::<Vec<_>>() {
            let action = *dice.pick(&[Action::Upsert, Action::Merge, Action::Merge, Action::Delete]);
            let action = if turn > 0 && ids[0] == *id { Action::Merge } else { action };
            let row = (**dice.pick(&rows)).clone();
            let op = op(&mut dice, id, action, row);
            let new_key = PaginationKey::new(Xact(xact), ops.len() as u16);
            writes.extend(written(&mut live, id, &op, new_key));
            ops.push(op);
        }
        writes.sort_by_key(|(key, _)| *key);
        for (nth, (key, write)) in (0..).zip(writes) {
            let own = PaginationKey::new(Xact(xact), nth).to_string();
            made.keys.insert(own.clone(), key.to_string());
            made.writes.objects[0].rows.push(Rc::new(as_row(write, &own, xact)));
        }
        if !ops.is_empty() {
            made.transactions.push((xact, ops));
        }
    }
    made
}

fn op(dice: &mut Dice, id: &str, action: Action, mut row: Map<String, Json>) -> Op {
    row.insert("id".into(), id.into());
    let is_said = |name: &str, value: &Json, dice: &mut Dice| match action {
        Action::Delete => false,
        Action::Merge => !OF_ROW.contains(&name) && dice.happens(40),
        _ => !value.is_null(),
    };
    let mut doc = Map::new();
    for (name, value) in &row {
        let is_written = !OF_OBJECT.contains(&name.as_str()) && !NOT_WRITTEN.contains(&name.as_str());
        if is_written && is_said(name, value, dice) {
            doc.insert(name.clone(), value.clone());
        }
    }
    Op { action, row, doc: Json::Object(doc).to_string(), audit: dice.pick::<&'static str>(&AUDITS) }
}

/// The row's key, and the columns as this write had them; none where it did nothing.
fn written<'i>(
    live: &mut BTreeMap<&'i str, Live>,
    id: &'i str,
    op: &Op,
    new_key: PaginationKey,
) -> Option<(PaginationKey, Map<String, Json>)> {
    let before = live.get(id).cloned();
    let mut columns: Map<String, Json> = op.row.iter().map(|(name, _)| (name.clone(), Json::Null)).collect();
    for name in OF_OBJECT {
        columns[name] = op.row[name].clone();
    }
    let said: Map<String, Json> = serde_json::from_str(&op.doc).expect("a document");
    columns.extend(said);
    let mut audit: Map<String, Json> = serde_json::from_str(op.audit).unwrap_or_default();
    let action = match op.action {
        Action::Upsert => "upsert",
        Action::Merge => "merge",
        _ => "delete",
    };
    audit.insert("action".into(), action.into());
    columns.insert("audit_data".into(), audit.into());
    let row = match (op.action, &before) {
        (Action::Delete, None) => return None,
        (Action::Merge | Action::Delete, Some(before)) => before.row.clone(),
        _ => op.row.clone(),
    };
    for name in OF_ROW {
        columns[name] = row[name].clone();
    }
    let key = before.map_or(new_key, |before| before.key);
    if op.action == Action::Delete {
        columns["created"] = DELETED_AT.into();
        live.remove(id);
    } else {
        live.insert(id, Live { key, row });
    }
    Some((key, columns))
}

fn as_row(mut columns: Map<String, Json>, own_key: &str, xact: u64) -> Map<String, Json> {
    columns["_pagination_key"] = own_key.into();
    columns["_xact_id"] = xact.to_string().into();
    columns
}

impl Op {
    fn as_row_op(&self) -> RowOp<'_> {
        let text = |name: &str| self.row[name].as_str().expect("a text");
        let is_delete = self.action == Action::Delete;
        let created = if is_delete { DELETED_AT } else { text("created") };
        RowOp {
            id: text("id"),
            action: self.action,
            span_id: if is_delete { "" } else { text("span_id") },
            root_span_id: if is_delete { "" } else { text("root_span_id") },
            is_root: !is_delete && self.row["is_root"].as_bool().expect("a boolean"),
            created: parse_created(created).expect("a time"),
            doc: self.doc.as_bytes(),
            rules: b"",
            audit: self.audit.as_bytes(),
        }
    }
}

impl History {
    fn world(&self, kept: Storage) -> World {
        let world = World::empty(&self.writes, false);
        let transactions = self.transactions.iter();
        let transactions = transactions.map(|(xact, ops)| (*xact, ops.iter().map(Op::as_row_op).collect()));
        world.write(0, &transactions.collect::<Vec<_>>(), kept);
        world
    }

    /// Returns the rows with their keys.
    fn with_keys(&self, rows: Vec<Vec<Json>>) -> Vec<Vec<Json>> {
        rows.into_iter().map(|row| row.into_iter().map(|value| self.with_key(value)).collect()).collect()
    }

    fn with_key(&self, value: Json) -> Json {
        let known = value.as_str().and_then(|text| self.keys.get(text));
        known.map_or(value.clone(), |key| key.as_str().into())
    }
}

/// The same query of some of the ids, and of spans.
fn asked_of_ids(mut query: Query, dice: &mut Dice) -> Query {
    let mut inner = &mut query;
    while let Some(Source::Query(_)) = inner.from.as_ref().map(|from| &from.source) {
        match inner.from.as_mut().map(|from| &mut from.source) {
            Some(Source::Query(within)) => inner = within,
            _ => unreachable!("it has one"),
        }
    }
    if let Some(from) = &mut inner.from {
        from.shape = None;
    }
    let of_ids = *dice.pick(&["id = 'b'", "id IN ('a', 'c')", "id IN ('d', 'b', 'nobody', 'a', 'b', 'c')"]);
    let of_ids = parse_expression(of_ids).expect("it parses");
    let conditions = inner.filter.take().into_iter().chain([of_ids]);
    inner.filter = Some(Expr::new(At::default(), Node::logic(Logic::And, conditions)));
    query
}

/// Returns whether the results can be compared. The interpreter orders by the writes' own keys, which rows do not have,
/// and keys cannot be predicted; a sample of a fixed size consists of rows, but of writes in the interpreter.
fn is_comparable(bound: &Bound) -> bool {
    let bound = innermost(bound);
    let said = format!("{:?}", bound.output);
    let is_of_keys = match &bound.output {
        Output::Rows { order: Order::Key { by, .. }, .. } => *by == Key::Pagination,
        Output::Rows { .. } | Output::Groups(_) => said.contains(r#"SortKey { expr: Field(Column("_pagination_key")"#),
        Output::Infer(_) => said.contains(r#"Column("_pagination_key")"#),
    };
    !is_of_keys && !matches!(bound.sample, Some((Amount::Count(_), _)))
}

#[test]
fn what_was_written_is_answered_as_if_each_write_were_a_row() {
    let seeds = random::seeds() / SEEDS_ONE_IN;
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for seed in 0..seeds {
        let query = asked_of_ids(random::query(seed), &mut Dice::of(seed));
        let now = parse_created("2026-05-03T05:06:07Z").expect("a time");
        let Ok(bound) = bind(&query, &Env { now, audit_log: true, ..Env::default() }) else { continue };
        if !is_comparable(&bound) {
            continue;
        }
        asked += 1;
        let history = history(seed);
        let kept = ALL_KEPT[(seed % 4) as usize];
        let expected = run(&bound, &history.writes);
        let found = history.world(kept).answer(&bound);
        let alike = match (expected, &found) {
            (Ok(QueryAnswer { columns, rows, .. }), Ok(found)) => {
                let found = QueryAnswer { cursor: None, ..found.clone() };
                same_answer(&QueryAnswer { columns, rows: history.with_keys(rows), cursor: None }, &found)
            }
            (Err(_), Err(_)) => true,
            _ => false,
        };
        if !alike {
            let expected = run(&bound, &history.writes).map(|answer| history.with_keys(answer.rows));
            let said = case::forms(&query);
            wrong.push(format!("seed {seed} {kept:?} {:?}\n    {expected:?}\n    {found:?}", said.first()));
        }
        assert!(wrong.len() < 6, "{}", wrong.join("\n"));
    }
    assert!(wrong.is_empty(), "{} are answered otherwise:\n{}", wrong.len(), wrong.join("\n"));
    assert!(asked * 100 >= seeds * ASKED_PERCENT, "{asked} of {seeds} can be asked");
}

#[test]
fn pages_of_what_was_written_have_each_write_once() {
    for seed in 0..24 {
        let history = history(seed);
        let count = history.writes.objects[0].rows.len();
        for kept in ALL_KEPT {
            let world = history.world(kept);
            for sort in ["", " ORDER BY _xact_id", " ORDER BY _pagination_key", " ORDER BY _pagination_key DESC"] {
                let text =
                    format!("SELECT * FROM project_logs('{}') WHERE id IN ('a','b','c','d'){sort}", random::SOURCE);
                let query = parse_text(&text).expect("it parses");
                let bound = bind(&query, &Env { audit_log: true, ..Env::default() }).expect("it binds");
                let all = world.answer(&bound).expect("it is answered").rows;
                assert_eq!(all.len(), count, "seed {seed} {kept:?}{sort}");
                for size in [1, 3, 1000] {
                    let paged = world.pages(&bound, size).expect("it is answered");
                    assert!(same(&json!(paged), &json!(all)), "seed {seed} {kept:?}{sort}, {size} to a page");
                }
            }
        }
    }
}

#[test]
fn a_sample_of_what_was_written_has_all_that_was_written_to_some_rows() {
    let history = history(1);
    let rows = &history.writes.objects[0].rows;
    for kept in ALL_KEPT {
        let text = "select: id | from: project_logs('$') | filter: id in ('a', 'b', 'c', 'd') | sample: 2";
        let query = parse_text(&text.replace('$', random::SOURCE)).expect("it parses");
        let bound = bind(&query, &Env { audit_log: true, ..Env::default() }).expect("it binds");
        let found = history.world(kept).answer(&bound).expect("it is answered").rows;
        let ids: std::collections::BTreeSet<&str> = found.iter().filter_map(|row| row[0].as_str()).collect();
        assert_eq!(ids.len(), 2, "{kept:?}");
        let of_ids = rows.iter().filter(|row| row["id"].as_str().is_some_and(|id| ids.contains(id)));
        assert_eq!(found.len(), of_ids.count(), "{kept:?}");
    }
}
