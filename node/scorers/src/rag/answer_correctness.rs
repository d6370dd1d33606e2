//! AnswerCorrectness: which statements the output shares with the expected answer, and how similar both are.

use serde_json::{Map, Value, json};

use super::{array, object, string, text};
use crate::arguments::ScorerArguments;
use crate::embeddings::SimilarityRun;
use crate::error::ScorerError;
use crate::model_call::{ChatOptions, DefaultModels, ForcedTool, ModelCall, tool_arguments, tool_list};
use crate::score::Score;

const NAME: &str = "AnswerCorrectness";
/// Weights where the caller says nothing.
const FACTUALITY_WEIGHT: f64 = 0.75;
const SIMILARITY_WEIGHT: f64 = 0.25;

const CLASSIFY_STATEMENTS: ForcedTool = ForcedTool {
    name: "classify_statements",
    description: "Reports the statements of both answers in three classes.",
    instructions: "Compare the statements of the answer with those of the ground truth. \
        Put each statement into exactly one class. \
        TP: it is in both the answer and the ground truth. \
        FP: it is in the answer, but not in the ground truth. \
        FN: it is in the ground truth, but the answer lacks it. \
        Compare what is stated, and do not judge whether it is true.",
    parameters: || {
        let class = |description| array(string(description));
        object(&[
            ("TP", class("A statement of both.")),
            ("FP", class("A statement of the answer alone.")),
            ("FN", class("A statement of the ground truth alone.")),
        ])
    },
};

/// Run that waits for the classes of statements, and for embeddings unless their weight is 0.
#[derive(Debug)]
pub(crate) struct CorrectnessRun {
    factuality_weight: f64,
    similarity_weight: f64,
    similarity: Option<SimilarityRun>,
}

impl CorrectnessRun {
    pub(crate) fn start(
        arguments: &ScorerArguments<'_>,
        models: &DefaultModels,
    ) -> Result<(Vec<ModelCall>, CorrectnessRun), ScorerError> {
        let factuality_weight = weight(arguments, "factuality_weight", FACTUALITY_WEIGHT)?;
        let similarity_weight = weight(arguments, "answer_similarity_weight", SIMILARITY_WEIGHT)?;
        if factuality_weight + similarity_weight == 0.0 {
            let value = arguments.or_null("factuality_weight");
            return Err(ScorerError::invalid(NAME, "factuality_weight", value, "above 0 if the other weight is 0"));
        }
        let question = text(NAME, arguments, "input")?;
        let answer = text(NAME, arguments, "output")?;
        let truth = text(NAME, arguments, "expected")?;
        let chat = ChatOptions::new(NAME, arguments, models)?;
        let data = [("question", question.as_str()), ("answer", &answer), ("ground_truth", &truth)];
        let mut calls = vec![chat.call(&CLASSIFY_STATEMENTS, &data)];
        let mut similarity = None;
        if similarity_weight > 0.0 {
            let model = arguments.text(NAME, "embedding_model")?.unwrap_or(&models.embedding);
            let (call, run) = SimilarityRun::of_texts(NAME, arguments, model, (0.0, ""))?;
            calls.push(call);
            similarity = Some(run);
        }
        Ok((calls, CorrectnessRun { factuality_weight, similarity_weight, similarity }))
    }

    pub(crate) fn score(&self, responses: &[Value]) -> Result<Score, ScorerError> {
        let factuality = tool_arguments(NAME, &CLASSIFY_STATEMENTS, &responses[0])?;
        let factuality_score = f1_score(&factuality)?;
        let similarity = self.similarity.as_ref().map(|run| run.similarity(&responses[1])).transpose()?;
        let similarity_score = similarity.unwrap_or(0.0);
        let sum = self.factuality_weight * factuality_score + self.similarity_weight * similarity_score;
        let score = (sum / (self.factuality_weight + self.similarity_weight)).clamp(0.0, 1.0);
        let mut metadata = Map::new();
        metadata.insert("factuality".to_owned(), factuality);
        metadata.insert("factuality_score".to_owned(), json!(factuality_score));
        metadata.insert("answer_similarity_score".to_owned(), json!(similarity_score));
        Ok(Score::with_metadata(NAME, score, metadata))
    }
}

fn weight(arguments: &ScorerArguments<'_>, name: &'static str, default: f64) -> Result<f64, ScorerError> {
    let weight = arguments.number(NAME, name, default)?;
    if weight < 0.0 {
        return Err(ScorerError::invalid(NAME, name, arguments.or_null(name), "a number that is not negative"));
    }
    Ok(weight)
}

/// Returns the harmonic mean of precision and recall; 0 where there are no statements at all.
fn f1_score(factuality: &Value) -> Result<f64, ScorerError> {
    let count = |class| tool_list(NAME, factuality, class).map(|listed| listed.len() as f64);
    let (both, answer, truth) = (count("TP")?, count("FP")?, count("FN")?);
    let size = both + 0.5 * (answer + truth);
    Ok(if size == 0.0 { 0.0 } else { both / size })
}
