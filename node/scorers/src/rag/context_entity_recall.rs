//! ContextEntityRecall: which entities of the expected answer the context has.

use serde_json::{Map, Value, json};

use super::{array, context, object, string, text};
use crate::arguments::ScorerArguments;
use crate::embeddings::{EXPECTED_MIN, cosine, embeddings, embeddings_call, scaled};
use crate::error::ScorerError;
use crate::model_call::{ChatOptions, DefaultModels, ForcedTool, ModelCall, tool_arguments, tool_texts};
use crate::native::{LIST_ITEMS_MAX, contained};
use crate::score::Score;
use crate::scorer_run::{RunState, StateStep};

const NAME: &str = "ContextEntityRecall";

const EXTRACT_ENTITIES: ForcedTool = ForcedTool {
    name: "extract_entities",
    description: "Reports the entities that a text mentions.",
    instructions: "List the entities that the text mentions: people, places, organizations, dates, amounts and names. \
        List an entity once, even if the text mentions it in several forms.",
    parameters: || object(&[("entities", array(string("One entity, as the text names it.")))]),
};

/// Run that waits for the entities of the expected answer and of the context.
#[derive(Debug)]
pub(crate) struct EntitiesRun {
    embedding_model: String,
}

/// Run that waits for the embeddings of all entities.
#[derive(Debug)]
pub(crate) struct EntityRecallRun {
    context_entities: Vec<String>,
    expected_entities: Vec<String>,
}

impl EntitiesRun {
    pub(crate) fn start(
        arguments: &ScorerArguments<'_>,
        models: &DefaultModels,
    ) -> Result<(Vec<ModelCall>, EntitiesRun), ScorerError> {
        let expected = text(NAME, arguments, "expected")?;
        let context = context(NAME, arguments)?;
        let chat = ChatOptions::new(NAME, arguments, models)?;
        let calls = [expected, context].map(|text| chat.call(&EXTRACT_ENTITIES, &[("text", &text)]));
        let embedding_model = arguments.text(NAME, "embedding_model")?.unwrap_or(&models.embedding).to_owned();
        Ok((calls.into(), EntitiesRun { embedding_model }))
    }

    pub(crate) fn resume(self, responses: &[Value]) -> Result<StateStep, ScorerError> {
        let [expected_entities, context_entities] = [&responses[0], &responses[1]].map(entities);
        let run = EntityRecallRun { context_entities: context_entities?, expected_entities: expected_entities? };
        if run.context_entities.is_empty() || run.expected_entities.is_empty() {
            return Ok(StateStep::Finish(run.recall(&[])));
        }
        let texts: Vec<String> = run.context_entities.iter().chain(&run.expected_entities).cloned().collect();
        let call = embeddings_call(&self.embedding_model, &texts);
        Ok(StateStep::Call(call, RunState::EntityRecall(run)))
    }
}

fn entities(response: &Value) -> Result<Vec<String>, ScorerError> {
    let found = tool_texts(NAME, &tool_arguments(NAME, &EXTRACT_ENTITIES, response)?, "entities")?;
    if found.len() > LIST_ITEMS_MAX {
        let max = LIST_ITEMS_MAX as u64;
        return Err(ScorerError::LimitExceeded { scorer: NAME, subject: "the number of entities", max });
    }
    Ok(found)
}

impl EntityRecallRun {
    pub(crate) fn score(&self, response: &Value) -> Result<Score, ScorerError> {
        let count = self.context_entities.len() + self.expected_entities.len();
        let found = embeddings(NAME, response, count)?;
        let (context, expected) = found.split_at(self.context_entities.len());
        let mut gains = Vec::with_capacity(context.len());
        for entity in context {
            let row = expected.iter().map(|other| Ok(scaled(cosine(NAME, entity, other)?, EXPECTED_MIN)));
            gains.push(row.collect::<Result<Vec<f64>, ScorerError>>()?);
        }
        Ok(self.recall(&gains))
    }

    fn recall(&self, gains: &[Vec<f64>]) -> Score {
        let values = |entities: &[String]| entities.iter().map(|entity| json!(entity)).collect::<Vec<_>>();
        let (context, expected) = (values(&self.context_entities), values(&self.expected_entities));
        let score = contained(NAME, &context, &expected, gains, true).score;
        let mut metadata = Map::new();
        metadata.insert("context_entities".to_owned(), json!(context));
        metadata.insert("expected_entities".to_owned(), json!(expected));
        Score { name: NAME.to_owned(), score, metadata: Some(metadata) }
    }
}
