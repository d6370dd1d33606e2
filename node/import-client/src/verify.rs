//! Comparison at the end of an import: all of its rows are read back and compared with the tally of the source.

use std::collections::HashSet;

use anyhow::ensure;
use assay_node_importers::{ImportState, ObjectTally, Planner, TargetObject, differences, row_hash};
use serde_json::{Map, Value};

use crate::target::{Say, Target};

/// Upper bound of the pages of one object that are read back.
const PAGES_MAX: usize = 1_000_000;

/// Returns the differences between the source and the target, as sentences.
pub(crate) async fn compare(
    state: &ImportState,
    planner: &Planner,
    target: &mut Target,
    say: Say<'_>,
) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let tally = &state.tally;
    let logs = std::iter::once((TargetObject::Logs, "logs".to_owned(), tally.logs));
    let experiments = tally
        .experiments
        .iter()
        .map(|(name, tally)| (TargetObject::Experiment(name.clone()), format!("experiment {name}"), *tally));
    let datasets = tally
        .datasets
        .iter()
        .map(|(name, tally)| (TargetObject::Dataset(name.clone()), format!("dataset {name}"), *tally));
    for (object, name, expected) in logs.chain(experiments).chain(datasets) {
        let there = read_back(&object, planner, target, say).await?;
        let orphans = there.orphans;
        found.extend(differences(&name, &expected, &there.tally));
        if orphans > 0 {
            target.notes.push(format!("{name}: {orphans} spans name a parent that the source does not have either"));
        }
    }
    if tally.prompt_versions > 0 && target.prompts(say).await? == 0 {
        found.push("the project has no prompts".to_owned());
    }
    Ok(found)
}

/// Rows of an object, as they were read back.
#[derive(Debug, Default)]
struct ReadBack {
    tally: ObjectTally,
    /// Spans whose parent is not in their trace.
    orphans: usize,
}

async fn read_back(
    object: &TargetObject,
    planner: &Planner,
    target: &mut Target,
    say: Say<'_>,
) -> anyhow::Result<ReadBack> {
    let (kind, id) = target.object(object, say).await?;
    let (mut seen, mut places, mut parents) = (HashSet::new(), HashSet::new(), HashSet::new());
    let (mut tally, mut cursor) = (ObjectTally::default(), None::<String>);
    for _ in 0..PAGES_MAX {
        let (rows, next) = target.read(kind, &id, cursor.as_deref(), say).await?;
        for row in &rows {
            let hash = row_hash(object, row.get("id").and_then(Value::as_str).unwrap_or_default());
            // The object may have rows of others, and a page may repeat rows of an earlier one.
            if !planner.knows(hash) || !seen.insert(hash) {
                continue;
            }
            if kind == "dataset" {
                tally.add_row(&Map::from_iter(row.get("id").map(|id| ("id".to_owned(), id.clone()))));
                continue;
            }
            tally.add_span(row);
            let place = |span: &str| row_hash(object, &format!("{} {span}", text(row, "root_span_id")));
            places.insert(place(text(row, "span_id")));
            let of = row.get("span_parents").and_then(Value::as_array).into_iter().flatten();
            parents.extend(of.filter_map(Value::as_str).map(place));
        }
        ensure!(next.is_none() || next != cursor, "the server returned a page twice");
        match next.filter(|_| !rows.is_empty()) {
            Some(next) => cursor = Some(next),
            None => return Ok(ReadBack { tally, orphans: parents.difference(&places).count() }),
        }
    }
    anyhow::bail!("an object has more than {PAGES_MAX} pages")
}

fn text<'r>(row: &'r Map<String, Value>, key: &str) -> &'r str {
    row.get(key).and_then(Value::as_str).unwrap_or_default()
}
