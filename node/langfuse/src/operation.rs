//! Operations of Langfuse's public API by method and path.

use crate::fields::decoded_segment;

/// Operation of a request. Texts are decoded segments of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
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
pub fn operation_of(method: &str, path: &str) -> Option<Operation> {
    let path = path.trim_end_matches('/');
    let segments: Vec<String> = path.split('/').map(decoded_segment).collect::<Option<_>>()?;
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let found = by_method(method, &parts);
    if found.is_some() {
        return found;
    }
    let others = ["GET", "POST", "PATCH", "DELETE"].into_iter().filter(|other| *other != method);
    match others.into_iter().any(|other| by_method(other, &parts).is_some()) {
        true if method == "OPTIONS" || method == "HEAD" || method == "PUT" => Some(Operation::OtherMethod),
        true if !is_unsupported(&parts) => Some(Operation::OtherMethod),
        _ => is_unsupported(&parts).then_some(Operation::Unsupported),
    }
}

fn is_unsupported(parts: &[&str]) -> bool {
    parts.first().is_some_and(|first| UNSUPPORTED.contains(first)) || parts == ["traces"]
}

fn by_method(method: &str, parts: &[&str]) -> Option<Operation> {
    let own = |text: &str| text.to_owned();
    Some(match (method, parts) {
        ("GET", ["health"]) => Operation::Health,
        ("GET", ["projects"]) => Operation::Projects,
        ("POST", ["otel", "v1", "traces"]) => Operation::Export,
        ("POST", ["ingestion"]) => Operation::Ingest,
        ("POST", ["scores"]) => Operation::CreateScore,
        ("DELETE", ["scores", id]) => Operation::DeleteScore(own(id)),
        ("GET", ["scores"] | ["v2", "scores"]) => Operation::Scores,
        ("GET", ["v3", "scores"]) => Operation::ScoresV3,
        ("GET", ["scores", id] | ["v2", "scores", id]) => Operation::Score(own(id)),
        ("GET", ["traces"]) => Operation::Traces,
        ("GET", ["traces", id]) => Operation::Trace(own(id)),
        ("DELETE", ["traces", id]) => Operation::DeleteTrace(own(id)),
        ("GET", ["observations"]) => Operation::Observations,
        ("GET", ["v2", "observations"]) => Operation::ObservationsV2,
        ("GET", ["observations", id]) => Operation::Observation(own(id)),
        ("GET", ["sessions", id]) => Operation::Session(own(id)),
        ("GET", ["v2", "prompts"]) => Operation::Prompts,
        ("POST", ["v2", "prompts"]) => Operation::CreatePrompt,
        ("GET", ["v2", "prompts", name]) => Operation::Prompt(own(name)),
        ("DELETE", ["v2", "prompts", name]) => Operation::DeletePrompt(own(name)),
        ("PATCH", ["v2", "prompts", name, "versions", version]) => {
            Operation::PromptLabels { name: own(name), version: own(version) }
        }
        ("GET", ["v2", "datasets"] | ["datasets"]) => Operation::Datasets,
        ("POST", ["v2", "datasets"] | ["datasets"]) => Operation::CreateDataset,
        ("GET", ["v2", "datasets", name] | ["datasets", name]) => Operation::Dataset(own(name)),
        ("GET", ["dataset-items"]) => Operation::DatasetItems,
        ("POST", ["dataset-items"]) => Operation::CreateDatasetItem,
        ("GET", ["dataset-items", id]) => Operation::DatasetItem(own(id)),
        ("DELETE", ["dataset-items", id]) => Operation::DeleteDatasetItem(own(id)),
        ("POST", ["dataset-run-items"]) => Operation::CreateRunItem,
        ("GET", ["dataset-run-items"]) => Operation::RunItems,
        ("GET", ["datasets", dataset, "runs"]) => Operation::Runs(own(dataset)),
        ("GET", ["datasets", dataset, "runs", run]) => Operation::Run { dataset: own(dataset), run: own(run) },
        ("DELETE", ["datasets", dataset, "runs", run]) => Operation::DeleteRun { dataset: own(dataset), run: own(run) },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_an_operation_with_decoded_names() {
        for (method, path, operation) in [
            ("GET", "health", Operation::Health),
            ("POST", "otel/v1/traces", Operation::Export),
            ("GET", "v2/prompts/a%2Fb%20c", Operation::Prompt("a/b c".into())),
            ("PATCH", "v2/prompts/a/versions/3", Operation::PromptLabels { name: "a".into(), version: "3".into() }),
            ("GET", "datasets/d/runs/r%25", Operation::Run { dataset: "d".into(), run: "r%".into() }),
            ("GET", "traces/", Operation::Traces),
        ] {
            assert_eq!(operation_of(method, path), Some(operation), "{method} {path}");
        }
    }

    #[test]
    fn what_is_not_served_is_told_apart() {
        for (method, path, operation) in [
            ("POST", "media", Some(Operation::Unsupported)),
            ("GET", "v2/metrics", Some(Operation::Unsupported)),
            ("GET", "sessions", Some(Operation::Unsupported)),
            ("DELETE", "traces", Some(Operation::Unsupported)),
            ("POST", "projects", Some(Operation::Unsupported)),
            ("PUT", "dataset-items", Some(Operation::OtherMethod)),
            ("DELETE", "ingestion", Some(Operation::OtherMethod)),
            ("GET", "nothing", None),
            ("GET", "traces/%zz", None),
            ("GET", "", None),
        ] {
            assert_eq!(operation_of(method, path), operation, "{method} {path}");
        }
    }
}
