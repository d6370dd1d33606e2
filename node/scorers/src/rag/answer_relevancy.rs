//! AnswerRelevancy: whether questions that the output answers are the question that was asked.

use serde_json::{Map, Value, json};

use super::{context, object, string, text, zero_or_one};
use crate::arguments::ScorerArguments;
use crate::embeddings::{EXPECTED_MIN, cosine, embeddings, embeddings_call, scaled};
use crate::error::ScorerError;
use crate::model_call::{ChatOptions, DefaultModels, ForcedTool, ModelCall, tool_arguments, verdict};
use crate::score::Score;
use crate::scorer_run::{RunState, StateStep};

/// Questions that one run may generate.
pub const STRICTNESS_MAX: u64 = 16;
/// Questions where the caller says nothing.
const STRICTNESS: u64 = 3;

const NAME: &str = "AnswerRelevancy";

const GENERATE_QUESTION: ForcedTool = ForcedTool {
    name: "generate_question",
    description: "Reports a question that the answer answers, and whether the answer avoids to commit itself.",
    instructions: "Write the question that this answer most likely answers, given the context. \
        Also decide whether the answer is noncommittal: evasive, vague, or a statement that it does not know.",
    parameters: || {
        let question = string("The question that the answer answers.");
        object(&[
            ("question", question),
            ("noncommittal", zero_or_one("1 if the answer is noncommittal, otherwise 0.")),
        ])
    },
};

/// Run that waits for generated questions.
#[derive(Debug)]
pub(crate) struct QuestionsRun {
    asked: String,
    embedding_model: String,
}

/// Run that waits for the embeddings of the questions, and of the one that was asked.
#[derive(Debug)]
pub(crate) struct RelevancyRun {
    questions: Vec<Value>,
}

impl QuestionsRun {
    pub(crate) fn start(
        arguments: &ScorerArguments<'_>,
        models: &DefaultModels,
    ) -> Result<(Vec<ModelCall>, QuestionsRun), ScorerError> {
        let asked = text(NAME, arguments, "input")?;
        let answer = text(NAME, arguments, "output")?;
        let context = context(NAME, arguments)?;
        let count = match arguments.get("strictness") {
            None => STRICTNESS,
            Some(given) => given
                .as_u64()
                .filter(|count| (1..=STRICTNESS_MAX).contains(count))
                .ok_or_else(|| ScorerError::invalid(NAME, "strictness", given, "a whole number from 1 to 16"))?,
        };
        let chat = ChatOptions::new(NAME, arguments, models)?;
        let call = chat.call(&GENERATE_QUESTION, &[("answer", &answer), ("context", &context)]);
        let embedding_model = arguments.text(NAME, "embedding_model")?.unwrap_or(&models.embedding).to_owned();
        Ok((vec![call; count as usize], QuestionsRun { asked, embedding_model }))
    }

    pub(crate) fn resume(self, responses: &[Value]) -> Result<StateStep, ScorerError> {
        let (mut questions, mut texts, mut is_noncommittal) = (Vec::new(), Vec::new(), false);
        for response in responses {
            let found = tool_arguments(NAME, &GENERATE_QUESTION, response)?;
            let question = found["question"].as_str();
            let question = question.ok_or_else(|| ScorerError::response(NAME, "question", "a string"))?;
            texts.push(question.to_owned());
            is_noncommittal |= verdict(NAME, &found, "noncommittal")? != 0.0;
            questions.push(found);
        }
        let run = RelevancyRun { questions };
        if is_noncommittal {
            return Ok(StateStep::Finish(run.relevancy(0.0, &[])));
        }
        texts.push(self.asked);
        let call = embeddings_call(&self.embedding_model, &texts);
        Ok(StateStep::Call(call, RunState::Relevancy(run)))
    }
}

impl RelevancyRun {
    pub(crate) fn score(&self, response: &Value) -> Result<Score, ScorerError> {
        let found = embeddings(NAME, response, self.questions.len() + 1)?;
        let (asked, questions) = found.split_last().expect("the embedding of the question that was asked");
        let similarities = questions.iter().map(|one| Ok(scaled(cosine(NAME, one, asked)?, EXPECTED_MIN)));
        let similarities: Vec<f64> = similarities.collect::<Result<_, ScorerError>>()?;
        let score = similarities.iter().sum::<f64>() / similarities.len() as f64;
        Ok(self.relevancy(score, &similarities))
    }

    fn relevancy(&self, score: f64, similarities: &[f64]) -> Score {
        let pairs = self.questions.iter().zip(similarities);
        let similarity: Vec<_> =
            pairs.map(|(found, score)| json!({"question": found["question"], "score": score})).collect();
        let mut metadata = Map::new();
        metadata.insert("questions".to_owned(), json!(self.questions));
        metadata.insert("similarity".to_owned(), json!(similarity));
        Score::with_metadata(NAME, score, metadata)
    }
}
