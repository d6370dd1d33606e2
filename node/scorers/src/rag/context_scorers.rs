//! Scorers of a retrieved context that need one call: ContextRelevancy, ContextRecall, ContextPrecision.

use serde_json::{Map, Value, json};

use super::{array, context, object, string, text, zero_or_one};
use crate::arguments::ScorerArguments;
use crate::error::ScorerError;
use crate::model_call::{
    ChatOptions, DefaultModels, ForcedTool, ModelCall, mean_verdict, tool_arguments, tool_list, verdict,
};
use crate::score::Score;
use crate::texts::{AutoevalsPackage, text_length};

const RELEVANCY: &str = "ContextRelevancy";
const RECALL: &str = "ContextRecall";
const PRECISION: &str = "ContextPrecision";

const EXTRACT_SENTENCES: ForcedTool = ForcedTool {
    name: "extract_sentences",
    description: "Reports the sentences of the context that answer the question.",
    instructions: "Select from the context the sentences without which the question cannot be answered. \
        Copy each sentence exactly as it is written. \
        Report no sentence if the context does not help with the question.",
    parameters: || {
        let reasons = array(string("One step of the reasoning why the question needs this sentence."));
        let sentence = string("The sentence, exactly as in the context.");
        object(&[("sentences", array(object(&[("sentence", sentence), ("reasons", reasons)])))])
    },
};

const EXTRACT_STATEMENTS: ForcedTool = ForcedTool {
    name: "extract_statements",
    description: "Reports the statements of the answer, and which of them the context supports.",
    instructions: "Split the answer to the question into its single statements. \
        For each statement decide whether the context supports it. \
        Judge by the context alone, not by what you know.",
    parameters: || {
        let statement = string("One statement of the answer.");
        let attributed = zero_or_one("1 if the context supports the statement, otherwise 0.");
        let reason = string("Why the context supports the statement, or does not.");
        let members = [("statement", statement), ("attributed", attributed), ("reason", reason)];
        object(&[("statements", array(object(&members)))])
    },
};

const VERIFY: ForcedTool = ForcedTool {
    name: "verify",
    description: "Reports whether the context was useful for the answer.",
    instructions: "Decide whether the context was useful to arrive at this answer to the question. \
        Give the reason first, then the verdict.",
    parameters: || {
        let reason = string("Why the context was useful, or was not.");
        object(&[("reason", reason), ("verdict", zero_or_one("1 if the context was useful, otherwise 0."))])
    },
};

/// Run that waits for the one tool call.
#[derive(Debug)]
pub(crate) enum ContextRun {
    Relevancy { context_length: usize, package: AutoevalsPackage },
    Recall,
    Precision,
}

impl ContextRun {
    pub(crate) fn relevancy(
        arguments: &ScorerArguments<'_>,
        models: &DefaultModels,
        package: AutoevalsPackage,
    ) -> Result<(ModelCall, ContextRun), ScorerError> {
        let question = text(RELEVANCY, arguments, "input")?;
        let context = context(RELEVANCY, arguments)?;
        let context_length = text_length(&context, package);
        if context_length == 0 {
            let value = arguments.or_null("context");
            return Err(ScorerError::invalid(RELEVANCY, "context", value, "a context that is not empty"));
        }
        let chat = ChatOptions::new(RELEVANCY, arguments, models)?;
        let call = chat.call(&EXTRACT_SENTENCES, &[("question", &question), ("context", &context)]);
        Ok((call, ContextRun::Relevancy { context_length, package }))
    }

    pub(crate) fn recall(
        arguments: &ScorerArguments<'_>,
        models: &DefaultModels,
    ) -> Result<(ModelCall, ContextRun), ScorerError> {
        Ok((question_answer_context(RECALL, &EXTRACT_STATEMENTS, arguments, models)?, ContextRun::Recall))
    }

    pub(crate) fn precision(
        arguments: &ScorerArguments<'_>,
        models: &DefaultModels,
    ) -> Result<(ModelCall, ContextRun), ScorerError> {
        Ok((question_answer_context(PRECISION, &VERIFY, arguments, models)?, ContextRun::Precision))
    }

    pub(crate) fn score(&self, response: &Value) -> Result<Score, ScorerError> {
        let (name, score, metadata) = match self {
            ContextRun::Relevancy { context_length, package } => {
                let found = tool_arguments(RELEVANCY, &EXTRACT_SENTENCES, response)?;
                let sentences = tool_list(RELEVANCY, &found, "sentences")?;
                let lengths = sentences.iter().map(|one| Some(text_length(one["sentence"].as_str()?, *package)));
                let length: usize = lengths.sum::<Option<usize>>().ok_or_else(|| {
                    ScorerError::response(RELEVANCY, "sentences", "an array of objects with a string `sentence`")
                })?;
                // a model may repeat a sentence, or change it
                let score = (length as f64 / *context_length as f64).min(1.0);
                (RELEVANCY, score, ("relevant_sentences", json!(sentences)))
            }
            ContextRun::Recall => {
                let found = tool_arguments(RECALL, &EXTRACT_STATEMENTS, response)?;
                let statements = tool_list(RECALL, &found, "statements")?;
                (RECALL, mean_verdict(RECALL, statements, "attributed")?, ("statements", json!(statements)))
            }
            ContextRun::Precision => {
                let found = tool_arguments(PRECISION, &VERIFY, response)?;
                (PRECISION, verdict(PRECISION, &found, "verdict")?, ("precision", found))
            }
        };
        let metadata: Map<String, Value> = [(metadata.0.to_owned(), metadata.1)].into_iter().collect();
        Ok(Score::with_metadata(name, score, metadata))
    }
}

fn question_answer_context(
    scorer: &'static str,
    tool: &ForcedTool,
    arguments: &ScorerArguments<'_>,
    models: &DefaultModels,
) -> Result<ModelCall, ScorerError> {
    let question = text(scorer, arguments, "input")?;
    let answer = text(scorer, arguments, "expected")?;
    let context = context(scorer, arguments)?;
    let chat = ChatOptions::new(scorer, arguments, models)?;
    Ok(chat.call(tool, &[("question", &question), ("context", &context), ("answer", &answer)]))
}
