//! Imports that are killed at any moment and resumed have the result of one that ran through.

use std::collections::{BTreeMap, HashSet};

use assay_node_importers::{
    ImportSource, ImportState, ImportWindow, ItemHome, LangfuseSource, Planner, SourceAnswer, SourceRequest,
    StateHeader, TargetStep,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const PAGE: usize = 100;

/// Content of a fake server.
#[derive(Clone, Debug)]
struct Content {
    traces: Vec<Value>,
    observations: Vec<Value>,
    scores: Vec<Value>,
}

impl Content {
    /// Returns traces with so many observations each.
    fn new(sizes: &[usize]) -> Content {
        let mut content = Content { traces: Vec::new(), observations: Vec::new(), scores: Vec::new() };
        for (number, size) in sizes.iter().enumerate() {
            let trace = format!("t{number}");
            content.traces.push(json!({"id": trace, "name": "chat", "timestamp": "2026-01-01T00:00:00Z",
                "input": {"question": number}, "userId": "u", "tags": ["a"]}));
            for index in 0..*size {
                let id = format!("{trace}-{index}");
                let parent = (index > 0).then(|| format!("{trace}-{}", index / 2));
                content.observations.push(json!({"id": id, "traceId": trace, "type": "GENERATION",
                    "parentObservationId": parent, "startTime": "2026-01-01T00:00:01Z",
                    "costDetails": {"total": 0.1}}));
                content.scores.push(json!({"id": format!("s-{id}"), "traceId": trace, "observationId": id,
                    "name": format!("score{}", index % 2), "value": 0.25, "dataType": "NUMERIC"}));
            }
            content.scores.push(json!({"id": format!("s-{trace}"), "traceId": trace, "name": "good", "value": 7,
                "dataType": "NUMERIC"}));
        }
        content
    }

    fn answer(&self, request: &SourceRequest) -> SourceAnswer {
        let SourceRequest::Get(path) = request else { panic!("the API has only paths") };
        let place = path.strip_prefix("/api/public/").expect("a path of the API");
        let (place, query) = place.split_once('?').unwrap_or((place, ""));
        let page = query.split('&').find_map(|pair| pair.strip_prefix("page=")).and_then(|page| page.parse().ok());
        let page: usize = page.unwrap_or(1);
        let all: &[Value] = match place {
            "health" => return SourceAnswer::of_json(&json!({"status": "OK", "version": "3.150.0"})),
            "traces" => &self.traces,
            "observations" => &self.observations,
            "v2/scores" => &self.scores,
            _ => &[],
        };
        let data: Vec<&Value> = all.iter().skip((page - 1) * PAGE).take(PAGE).collect();
        let pages = all.len().div_ceil(PAGE);
        SourceAnswer::of_json(
            &json!({"data": data, "meta": {"page": page, "totalPages": pages, "totalItems": all.len()}}),
        )
    }
}

/// Rows of a target by object and id.
type Target = BTreeMap<(ItemHome, String), Map<String, Value>>;

fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(inner)), Value::Object(more)) => merge(inner, more),
            _ => drop(into.insert(key.clone(), value.clone())),
        }
    }
}

fn carry_out(step: &TargetStep, target: &mut Target) {
    let TargetStep::Rows { object, rows } = step else { return };
    for row in rows {
        let mut row = row.clone();
        let id = row["id"].as_str().expect("an id").to_owned();
        let place = target.entry((object.clone(), id));
        if row.remove("_is_merge").is_some() {
            merge(place.or_default(), &row);
        } else {
            place.insert_entry(row);
        }
    }
}

/// What is on disk.
#[derive(Default)]
struct Disk {
    state: Option<Vec<u8>>,
    known: Vec<u64>,
}

/// Moment at which a process dies.
#[derive(Clone, Copy, Debug)]
enum Death {
    Never,
    /// After so many steps of the target.
    AfterSteps(usize),
}

/// Runs until the end or the death. Returns the state of a finished import.
fn run(content: &Content, target: &mut Target, disk: &mut Disk, death: Death) -> Option<ImportState> {
    let window = ImportWindow { since: None, until: "2026-12-01T00:00:00Z".into() };
    let source = LangfuseSource { url: "http://l".into(), public_key: "pk".into(), window: window.clone(), api: None };
    let header = StateHeader::new(&source, "http://a", "p", window);
    let mut state = match &disk.state {
        Some(saved) => ImportState::resumed(saved, &header).expect("a state"),
        None => ImportState::new(header, source.first_tasks()),
    };
    disk.known.truncate(usize::try_from(state.known).expect("a length"));
    let known: HashSet<u64> = disk.known.iter().copied().collect();
    let mut planner = Planner::new(source.name(), &source.identity(), known);
    let mut steps = 0;
    while let Some(task) = state.next().cloned() {
        let answer = content.answer(&source.request(&task));
        let (page, next) = planner.plan(source.page(&task, &answer).expect("a page"), &state.tally).expect("a plan");
        for step in &page.steps {
            if matches!(death, Death::AfterSteps(most) if steps == most) {
                return None;
            }
            carry_out(step, target);
            steps += 1;
        }
        planner.acknowledge(&page);
        state.acknowledge(&page, next).expect("few tasks");
        // The hashes are written first. A death in between leaves more of them than the state names.
        disk.known.extend(&page.known);
        if matches!(death, Death::AfterSteps(most) if steps == most) {
            return None;
        }
        disk.state = Some(serde_json::to_vec(&state).expect("JSON"));
    }
    Some(state)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn deaths_change_nothing(
        sizes in prop::collection::vec(0_usize..6, 1..140),
        deaths in prop::collection::vec(0_usize..4, 0..12),
    ) {
        let content = Content::new(&sizes);
        let mut whole = Target::new();
        let expected = run(&content, &mut whole, &mut Disk::default(), Death::Never).expect("it ends");
        let (mut target, mut disk) = (Target::new(), Disk::default());
        for steps in deaths {
            run(&content, &mut target, &mut disk, Death::AfterSteps(steps));
        }
        let state = run(&content, &mut target, &mut disk, Death::Never).expect("it ends");
        prop_assert_eq!(&target, &whole);
        prop_assert_eq!(&state.tally, &expected.tally);
        prop_assert_eq!(&state.unmapped, &expected.unmapped);
        let spans = content.traces.len() + content.observations.len();
        prop_assert_eq!(state.tally.logs.rows, spans as u64);
        prop_assert_eq!(state.tally.traces, content.traces.len() as u64);
        prop_assert_eq!(state.tally.logs.scores, content.observations.len() as u64);
        prop_assert_eq!(state.tally.scores_in_metadata, content.traces.len() as u64);
        prop_assert_eq!(state.tally.logs.cost_units, content.observations.len() as i64 * 100_000_000);
        // A second import from the start writes the same rows.
        run(&content, &mut target, &mut Disk::default(), Death::Never).expect("it ends");
        prop_assert_eq!(&target, &whole);
    }
}
