//! Events of a streamed eval, and their encoding as server-sent events (functions.md 8.1).

use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// Event of a streamed eval.
#[derive(Clone, Debug, PartialEq)]
pub enum EvalStreamEvent {
    Start(EvalStreamStart),
    Progress(EvalTaskProgress),
    /// The answer of an eval that is not streamed: an [`EvalSummary`](crate::EvalSummary), and its statistics.
    Summary(Value),
    /// Failure of the whole eval. No summary follows.
    Error(String),
    /// End of the stream.
    Done,
}

/// Names and addresses of the created experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvalStreamStart {
    pub project_name: String,
    pub project_id: Uuid,
    pub experiment_name: String,
    pub experiment_id: Uuid,
    pub project_url: String,
    pub experiment_url: String,
}

/// End of the task of one case, in the form of the progress events of invocations.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalTaskProgress {
    /// Id of the root row of the case.
    pub row_id: Uuid,
    /// Name of the eval.
    pub name: String,
    /// Output of the task, or why it has none.
    pub result: Result<Value, String>,
}

impl EvalStreamEvent {
    pub fn name(&self) -> &'static str {
        match self {
            EvalStreamEvent::Start(_) => "start",
            EvalStreamEvent::Progress(_) => "progress",
            EvalStreamEvent::Summary(_) => "summary",
            EvalStreamEvent::Error(_) => "error",
            EvalStreamEvent::Done => "done",
        }
    }

    /// Returns the data of the event, which is one line.
    pub fn data(&self) -> String {
        match self {
            EvalStreamEvent::Start(start) => json!(start).to_string(),
            EvalStreamEvent::Progress(progress) => progress.json().to_string(),
            EvalStreamEvent::Summary(summary) => summary.to_string(),
            // Clients parse the data of an error as a JSON string.
            EvalStreamEvent::Error(text) => Value::from(text.as_str()).to_string(),
            // Clients refuse an end with data.
            EvalStreamEvent::Done => String::new(),
        }
    }

    /// Encodes the event as three lines: its name, its data, and an empty line.
    pub fn encode(&self) -> String {
        format!("event: {}\ndata: {}\n\n", self.name(), self.data())
    }
}

impl EvalTaskProgress {
    /// Returns the data of the event. Clients refuse other words than these in the first four members.
    fn json(&self) -> Value {
        let (event, data) = match &self.result {
            Ok(output) => ("json_delta", output.to_string()),
            Err(error) => ("error", Value::from(error.as_str()).to_string()),
        };
        json!({"id": self.row_id, "object_type": "task", "format": "code", "output_type": "any", "name": self.name,
            "event": event, "data": data})
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::summary::{EvalMetricEntry, EvalScoreEntry, EvalSummary};

    fn summary() -> EvalSummary {
        let score = EvalScoreEntry { name: "s".into(), score: 0.5, diff: None, improvements: 0, regressions: 0 };
        let metric = EvalMetricEntry {
            name: "duration".into(),
            metric: 1.5,
            unit: "s".into(),
            diff: Some(-0.5),
            improvements: 2,
            regressions: 1,
        };
        EvalSummary {
            project_name: "p".into(),
            experiment_name: "e".into(),
            project_url: "https://a/p".into(),
            experiment_url: "https://a/p/e".into(),
            comparison_experiment_name: None,
            scores: Some(BTreeMap::from([("s".to_owned(), score)])),
            metrics: Some(BTreeMap::from([("duration".to_owned(), metric)])),
        }
    }

    #[test]
    fn events_have_the_text_of_the_contract() {
        let start = EvalStreamStart {
            project_name: "p".into(),
            project_id: Uuid::nil(),
            experiment_name: "e\n".into(),
            experiment_id: Uuid::nil(),
            project_url: "u".into(),
            experiment_url: "v".into(),
        };
        let nil = Uuid::nil();
        let head = format!(
            "event: start\ndata: {{\"project_name\":\"p\",\"project_id\":\"{nil}\",\"experiment_name\":\"e\\n\",\
             \"experiment_id\":\"{nil}\",\"project_url\":\"u\",\"experiment_url\":\"v\"}}\n\n"
        );
        let progress =
            |result| EvalStreamEvent::Progress(EvalTaskProgress { row_id: nil, name: "my eval".into(), result });
        let about = format!(
            "\"id\":\"{nil}\",\"object_type\":\"task\",\"format\":\"code\",\"output_type\":\"any\",\"name\":\"my eval\""
        );
        let cases = [
            (EvalStreamEvent::Start(start), head),
            (
                progress(Ok(json!({"a": "x\ny"}))),
                format!(
                    "event: progress\ndata: {{{about},\"event\":\"json_delta\",\"data\":\"{{\\\"a\\\":\\\"x\\\\ny\\\"}}\"}}\n\n"
                ),
            ),
            (
                progress(Err("no".into())),
                format!("event: progress\ndata: {{{about},\"event\":\"error\",\"data\":\"\\\"no\\\"\"}}\n\n"),
            ),
            (EvalStreamEvent::Error("a \"b\"\nc".into()), "event: error\ndata: \"a \\\"b\\\"\\nc\"\n\n".to_owned()),
            (EvalStreamEvent::Done, "event: done\ndata: \n\n".to_owned()),
        ];
        for (event, text) in cases {
            assert_eq!(event.encode(), text);
            assert_eq!(event.encode().lines().count(), 3);
        }
    }

    #[test]
    fn a_summary_has_exactly_the_members_that_clients_accept() {
        let data: Value = serde_json::from_str(&EvalStreamEvent::Summary(json!(summary())).data()).expect("JSON");
        let expected = json!({
            "project_name": "p", "experiment_name": "e", "project_url": "https://a/p", "experiment_url": "https://a/p/e",
            "comparison_experiment_name": null,
            "scores": {"s": {"name": "s", "score": 0.5, "improvements": 0, "regressions": 0}},
            "metrics": {"duration": {"name": "duration", "metric": 1.5, "unit": "s", "diff": -0.5, "improvements": 2,
                "regressions": 1}},
        });
        assert_eq!(data, expected);
        assert_eq!(serde_json::from_value::<EvalSummary>(data).expect("a summary"), summary());
    }
}
