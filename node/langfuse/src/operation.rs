//! Operations of Langfuse's public API by method and path.

use crate::fields::decoded_segment;

/// Operation of a request. Texts are decoded segments of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireOperation {
    Health,
    Projects,
    Export,
    Ingest,
    CreateScore,
    DeleteScore(String),
    /// List of scores in the form of version 2.
    Scores,
    ScoresV3,
    Score(String),
    Traces,
    Trace(String),
    DeleteTrace(String),
    Observations,
    ObservationsV2,
    Observation(String),
    Session(String),
    Prompts,
    CreatePrompt,
    Prompt(String),
    DeletePrompt(String),
    PromptLabels {
        name: String,
        version: String,
    },
    Datasets,
    CreateDataset,
    Dataset(String),
    DatasetItems,
    CreateDatasetItem,
    DatasetItem(String),
    DeleteDatasetItem(String),
    CreateRunItem,
    RunItems,
    Runs(String),
    Run {
        dataset: String,
        run: String,
    },
    DeleteRun {
        dataset: String,
        run: String,
    },
    /// Operation of Langfuse without an equivalent here.
    Unsupported,
    /// Path with another method, for the error.
    OtherMethod,
}

/// First segments of operations without an equivalent. Their requests are refused as not implemented.
const UNSUPPORTED: [&str; 17] = [
    "annotation-queues",
    "comments",
    "experiment-items",
    "experiments",
    "feedback",
    "integrations",
    "llm-connections",
    "media",
    "metrics",
    "models",
    "organizations",
    "projects",
    "scim",
    "score-configs",
    "sessions",
    "unstable",
    "v2",
];

/// Returns the operation of a method and of the raw path below `/api/public/`, or `None` for an unknown path.
pub fn operation_of(method: &str, path: &str) -> Option<WireOperation> {
    let path = path.trim_end_matches('/');
    let segments: Vec<String> = path.split('/').map(decoded_segment).collect::<Option<_>>()?;
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let found = by_method(method, &parts);
    if found.is_some() {
        return found;
    }
    let others = ["GET", "POST", "PATCH", "DELETE"].into_iter().filter(|other| *other != method);
    match others.into_iter().any(|other| by_method(other, &parts).is_some()) {
        true if method == "OPTIONS" || method == "HEAD" || method == "PUT" => Some(WireOperation::OtherMethod),
        true if !is_unsupported(&parts) => Some(WireOperation::OtherMethod),
        _ => is_unsupported(&parts).then_some(WireOperation::Unsupported),
    }
}

fn is_unsupported(parts: &[&str]) -> bool {
    parts.first().is_some_and(|first| UNSUPPORTED.contains(first)) || parts == ["traces"]
}

fn by_method(method: &str, parts: &[&str]) -> Option<WireOperation> {
    let own = |text: &str| text.to_owned();
    Some(match (method, parts) {
        ("GET", ["health"]) => WireOperation::Health,
        ("GET", ["projects"]) => WireOperation::Projects,
        ("POST", ["otel", "v1", "traces"]) => WireOperation::Export,
        ("POST", ["ingestion"]) => WireOperation::Ingest,
        ("POST", ["scores"]) => WireOperation::CreateScore,
        ("DELETE", ["scores", id]) => WireOperation::DeleteScore(own(id)),
        ("GET", ["scores"] | ["v2", "scores"]) => WireOperation::Scores,
        ("GET", ["v3", "scores"]) => WireOperation::ScoresV3,
        ("GET", ["scores", id] | ["v2", "scores", id]) => WireOperation::Score(own(id)),
        ("GET", ["traces"]) => WireOperation::Traces,
        ("GET", ["traces", id]) => WireOperation::Trace(own(id)),
        ("DELETE", ["traces", id]) => WireOperation::DeleteTrace(own(id)),
        ("GET", ["observations"]) => WireOperation::Observations,
        ("GET", ["v2", "observations"]) => WireOperation::ObservationsV2,
        ("GET", ["observations", id]) => WireOperation::Observation(own(id)),
        ("GET", ["sessions", id]) => WireOperation::Session(own(id)),
        ("GET", ["v2", "prompts"]) => WireOperation::Prompts,
        ("POST", ["v2", "prompts"]) => WireOperation::CreatePrompt,
        ("GET", ["v2", "prompts", name]) => WireOperation::Prompt(own(name)),
        ("DELETE", ["v2", "prompts", name]) => WireOperation::DeletePrompt(own(name)),
        ("PATCH", ["v2", "prompts", name, "versions", version]) => {
            WireOperation::PromptLabels { name: own(name), version: own(version) }
        }
        ("GET", ["v2", "datasets"] | ["datasets"]) => WireOperation::Datasets,
        ("POST", ["v2", "datasets"] | ["datasets"]) => WireOperation::CreateDataset,
        ("GET", ["v2", "datasets", name] | ["datasets", name]) => WireOperation::Dataset(own(name)),
        ("GET", ["dataset-items"]) => WireOperation::DatasetItems,
        ("POST", ["dataset-items"]) => WireOperation::CreateDatasetItem,
        ("GET", ["dataset-items", id]) => WireOperation::DatasetItem(own(id)),
        ("DELETE", ["dataset-items", id]) => WireOperation::DeleteDatasetItem(own(id)),
        ("POST", ["dataset-run-items"]) => WireOperation::CreateRunItem,
        ("GET", ["dataset-run-items"]) => WireOperation::RunItems,
        ("GET", ["datasets", dataset, "runs"]) => WireOperation::Runs(own(dataset)),
        ("GET", ["datasets", dataset, "runs", run]) => WireOperation::Run { dataset: own(dataset), run: own(run) },
        ("DELETE", ["datasets", dataset, "runs", run]) => {
            WireOperation::DeleteRun { dataset: own(dataset), run: own(run) }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_an_operation_with_decoded_names() {
        for (method, path, operation) in [
            ("GET", "health", WireOperation::Health),
            ("POST", "otel/v1/traces", WireOperation::Export),
            ("GET", "v2/prompts/a%2Fb%20c", WireOperation::Prompt("a/b c".into())),
            ("PATCH", "v2/prompts/a/versions/3", WireOperation::PromptLabels { name: "a".into(), version: "3".into() }),
            ("GET", "datasets/d/runs/r%25", WireOperation::Run { dataset: "d".into(), run: "r%".into() }),
            ("GET", "traces/", WireOperation::Traces),
        ] {
            assert_eq!(operation_of(method, path), Some(operation), "{method} {path}");
        }
    }

    #[test]
    fn what_is_not_served_is_told_apart() {
        for (method, path, operation) in [
            ("POST", "media", Some(WireOperation::Unsupported)),
            ("GET", "v2/metrics", Some(WireOperation::Unsupported)),
            ("GET", "sessions", Some(WireOperation::Unsupported)),
            ("DELETE", "traces", Some(WireOperation::Unsupported)),
            ("POST", "projects", Some(WireOperation::Unsupported)),
            ("PUT", "dataset-items", Some(WireOperation::OtherMethod)),
            ("DELETE", "ingestion", Some(WireOperation::OtherMethod)),
            ("GET", "nothing", None),
            ("GET", "traces/%zz", None),
            ("GET", "", None),
        ] {
            assert_eq!(operation_of(method, path), operation, "{method} {path}");
        }
    }
}
