//! Faithfulness: which statements of the output the context supports.

use serde_json::{Map, Value, json};

use super::{array, context, object, string, text, zero_or_one};
use crate::arguments::ScorerArguments;
use crate::error::ScorerError;
use crate::model_call::{
    ChatOptions, DefaultModels, ForcedTool, ModelCall, mean_verdict, tool_arguments, tool_list, tool_texts,
};
use crate::score::Score;
use crate::scorer_run::{RunState, StateStep};

const NAME: &str = "Faithfulness";

const EXTRACT_STATEMENTS: ForcedTool = ForcedTool {
    name: "extract_statements",
    description: "Reports the statements that an answer makes.",
    instructions: "Split the answer to the question into its single statements. \
        Write each as a sentence that is understood without the others. \
        Report none if the answer states nothing.",
    parameters: || object(&[("statements", array(string("One statement of the answer.")))]),
};

const JUDGE_STATEMENTS: ForcedTool = ForcedTool {
    name: "judge_statements",
    description: "Reports for each statement whether the context supports it.",
    instructions: "For each of the statements decide whether it follows from the context. \
        Judge by the context alone, not by what you know. \
        Report every statement once, in the given order.",
    parameters: || {
        let statement = string("The statement, word for word.");
        let verdict = zero_or_one("1 if the statement follows from the context, otherwise 0.");
        let reason = string("Why it follows, or does not.");
        let members = [("statement", statement), ("reason", reason), ("verdict", verdict)];
        object(&[("faithfulness", array(object(&members)))])
    },
};

/// Run that waits for the statements of the output.
#[derive(Debug)]
pub(crate) struct StatementsRun {
    chat: ChatOptions,
    context: String,
}

/// Run that waits for the verdicts on the statements.
#[derive(Debug)]
pub(crate) struct VerdictsRun {
    statements: Vec<String>,
}

impl StatementsRun {
    pub(crate) fn start(
        arguments: &ScorerArguments<'_>,
        models: &DefaultModels,
    ) -> Result<(ModelCall, StatementsRun), ScorerError> {
        let question = text(NAME, arguments, "input")?;
        let answer = text(NAME, arguments, "output")?;
        let context = context(NAME, arguments)?;
        let chat = ChatOptions::new(NAME, arguments, models)?;
        let call = chat.call(&EXTRACT_STATEMENTS, &[("question", &question), ("answer", &answer)]);
        Ok((call, StatementsRun { chat, context }))
    }

    pub(crate) fn resume(self, response: &Value) -> Result<StateStep, ScorerError> {
        let found = tool_arguments(NAME, &EXTRACT_STATEMENTS, response)?;
        let statements = tool_texts(NAME, &found, "statements")?;
        if statements.is_empty() {
            return Ok(StateStep::Finish(VerdictsRun { statements }.faithfulness(0.0, &[])));
        }
        let listed = json!(statements).to_string();
        let call = self.chat.call(&JUDGE_STATEMENTS, &[("context", &self.context), ("statements", &listed)]);
        Ok(StateStep::Call(call, RunState::Verdicts(VerdictsRun { statements })))
    }
}

impl VerdictsRun {
    pub(crate) fn score(&self, response: &Value) -> Result<Score, ScorerError> {
        let found = tool_arguments(NAME, &JUDGE_STATEMENTS, response)?;
        let verdicts = tool_list(NAME, &found, "faithfulness")?;
        Ok(self.faithfulness(mean_verdict(NAME, verdicts, "verdict")?, verdicts))
    }

    fn faithfulness(&self, score: f64, verdicts: &[Value]) -> Score {
        let mut metadata = Map::new();
        metadata.insert("statements".to_owned(), json!(self.statements));
        metadata.insert("faithfulness".to_owned(), json!(verdicts));
        Score::with_metadata(NAME, score, metadata)
    }
}
