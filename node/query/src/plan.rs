//! Textual description of a query plan.

use std::collections::BTreeSet;
use std::fmt;

use assay_node_btql::ast::Shape;
use assay_node_btql::bound::{Bound, Bounds, Order, Output, Range, Rows};
use assay_storage_model::{NodeId, ShardId};

use crate::request::Bounded;

/// Node with the shards and objects that are requested from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeShards {
    /// Leader of the shards, if it is known.
    pub node: Option<NodeId>,
    pub shards: BTreeSet<ShardId>,
    pub objects: usize,
}

impl fmt::Display for NodeShards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node {
            Some(node) => write!(f, "node {node}: ")?,
            None => f.write_str("nobody is known to lead: ")?,
        }
        let shards: Vec<String> = self.shards.iter().map(ShardId::to_string).collect();
        write!(f, "shards {}, {} objects", shards.join(" "), self.objects)
    }
}

impl Bounded {
    /// Formats a plan: one line per step, the last step first, then the nodes and their shards.
    pub fn plan(&self, places: &[NodeShards]) -> String {
        let mut lines = Vec::new();
        steps(&self.bound, self.limit, &mut lines);
        let deepest = lines.len();
        let steps = lines.into_iter().enumerate();
        let places = places.iter().map(|place| (deepest, place.to_string()));
        let indented = steps.chain(places).map(|(depth, line)| format!("{}{line}", "  ".repeat(depth)));
        indented.collect::<Vec<_>>().join("\n")
    }
}

fn steps(bound: &Bound, limit: Option<u64>, lines: &mut Vec<String>) {
    if let Some(limit) = limit.or(bound.limit) {
        lines.push(format!("limit: {limit}"));
    }
    match &bound.output {
        Output::Rows { columns, order } => {
            lines.push(format!("columns: {} of the rows that are left", columns.len()));
            lines.push(match order {
                Order::Key { by, descending } => {
                    format!("order: by {by:?}, {}, units that cannot be first are not read", direction(*descending))
                }
                Order::Sorted(keys) => format!("order: by {} keys, of each shard no more than the limit", keys.len()),
            });
        }
        Output::Groups(groups) => {
            if groups.again.is_some() {
                lines.push("groups of groups: where the query was asked".into());
            }
            if groups.pivot.is_some() {
                lines.push("pivot: where the query was asked".into());
            }
            let (dimensions, aggregates) = (groups.dimensions.len(), groups.aggregates.len());
            lines.push(format!(
                "groups: {dimensions} dimensions, {aggregates} aggregates, states of each shard put together"
            ));
        }
        Output::Infer(infer) => lines.push(format!("infer: from {} rows", infer.budget)),
    }
    if !bound.unpivot.is_empty() {
        lines.push(format!("unpivot: {} times, row by row", bound.unpivot.len()));
    }
    if let Some((amount, seed)) = &bound.sample {
        lines.push(format!("sample: {amount:?} with seed {seed}"));
    }
    match &bound.rows {
        Rows::Query(inner) => {
            lines.push("over: another query".into());
            steps(inner, None, lines);
        }
        Rows::Objects { kind, names, shape, .. } => {
            if *shape != Shape::Spans {
                lines.push(format!("{}: selected by their spans, whole on their shards", shape.name()));
            }
            if bound.filter.is_some() || bound.traces.as_ref().is_some_and(|traces| traces.condition.is_some()) {
                lines.push("filter: the cheapest terms first, words by their index".into());
            }
            let what = if bound.audit_log { "writes: to" } else { "scan:" };
            lines.push(format!(
                "{what} {kind:?} of {} objects where they are led{}",
                names.len(),
                pruned(&bound.bounds)
            ));
        }
    }
}

fn direction(descending: bool) -> &'static str {
    if descending { "descending" } else { "ascending" }
}

/// Describes the bounds that exclude data from the scan.
fn pruned(bounds: &Bounds) -> String {
    let mut by = Vec::new();
    let mut range = |name: &str, has: bool| by.extend(has.then(|| name.to_owned()));
    range("created", bounds.created != Range::default());
    range("_xact_id", bounds.xact != Range::default());
    range("_pagination_key", bounds.pagination_key != Range::default());
    if let Some(ids) = &bounds.ids {
        by.push(format!("{} ids", ids.len()));
    }
    if let Some(roots) = &bounds.root_span_ids {
        by.push(format!("{} traces", roots.len()));
    }
    if by.is_empty() { String::new() } else { format!(", only {}", by.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::request::Question;

    fn plan(query: &str) -> String {
        let bounded = Question { query: json!(query), ..Question::default() }.read().expect("it is understood");
        let places = [
            NodeShards { node: Some(NodeId(1)), shards: [ShardId(0), ShardId(5)].into(), objects: 3 },
            NodeShards { node: None, shards: [ShardId(2)].into(), objects: 1 },
        ];
        bounded.plan(&places)
    }

    /// `plans.txt` has queries with their plans, separated by empty lines.
    #[test]
    fn plans_are_as_they_are_written_down() {
        let golden = include_str!("plans.txt");
        let queries = golden.split("\n\n").filter_map(|case| case.trim().split_once('\n'));
        let mut found = String::new();
        for (query, _) in queries {
            found += &format!("{query}\n{}\n\n", plan(query));
        }
        assert!(found.lines().count() > 60, "plans.txt is cut short");
        assert_eq!(found.trim(), golden.trim(), "found:\n{found}");
    }
}
