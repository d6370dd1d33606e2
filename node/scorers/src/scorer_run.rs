//! Runs of scorers that call models, step by step: the caller makes the calls.

use serde_json::{Map, Value};

use crate::arguments::{ScorerArguments, camel_case};
use crate::embeddings::SimilarityRun;
use crate::error::ScorerError;
use crate::model_call::{DefaultModels, ModelCall};
use crate::moderation::ModerationRun;
use crate::native::native_score;
use crate::rag::answer_correctness::CorrectnessRun;
use crate::rag::answer_relevancy::{QuestionsRun, RelevancyRun};
use crate::rag::context_entity_recall::{EntitiesRun, EntityRecallRun};
use crate::rag::context_scorers::ContextRun;
use crate::rag::faithfulness::{StatementsRun, VerdictsRun};
use crate::score::Score;
use crate::texts::AutoevalsPackage;

/// Steps of one run at the most: a call, a call from its response, and the score.
pub const RUN_STEPS_MAX: usize = 3;

/// What comes next in a run.
#[derive(Debug)]
pub enum ScorerStep {
    /// Calls to make, in any order or at once, before the run goes on.
    Call { calls: Vec<ModelCall>, run: ScorerRun },
    /// Result of the run.
    Finish(Score),
}

/// Run that waits for responses of models.
#[derive(Debug)]
pub struct ScorerRun {
    state: RunState,
    calls: usize,
    package: AutoevalsPackage,
}

/// State between two steps: the scorer, and what it needs of the steps before.
#[derive(Debug)]
pub(crate) enum RunState {
    Similarity(SimilarityRun),
    Moderation(ModerationRun),
    Context(ContextRun),
    Entities(EntitiesRun),
    EntityRecall(EntityRecallRun),
    Statements(StatementsRun),
    Verdicts(VerdictsRun),
    Questions(QuestionsRun),
    Relevancy(RelevancyRun),
    Correctness(CorrectnessRun),
}

/// Starts a scorer. One without a model finishes at once; judges are prompts, see [`crate::judge_prompt`].
pub fn start_scorer(
    name: &str,
    arguments: &ScorerArguments<'_>,
    package: AutoevalsPackage,
    models: &DefaultModels,
) -> Result<ScorerStep, ScorerError> {
    let (calls, state) = match name {
        "EmbeddingSimilarity" => one(SimilarityRun::start(arguments, models)?, RunState::Similarity),
        "Moderation" => one(ModerationRun::start(arguments)?, RunState::Moderation),
        "ContextRelevancy" => one(ContextRun::relevancy(arguments, models, package)?, RunState::Context),
        "ContextRecall" => one(ContextRun::recall(arguments, models)?, RunState::Context),
        "ContextPrecision" => one(ContextRun::precision(arguments, models)?, RunState::Context),
        "ContextEntityRecall" => several(EntitiesRun::start(arguments, models)?, RunState::Entities),
        "Faithfulness" => one(StatementsRun::start(arguments, models)?, RunState::Statements),
        "AnswerRelevancy" => several(QuestionsRun::start(arguments, models)?, RunState::Questions),
        "AnswerSimilarity" => {
            let model = arguments.text("AnswerSimilarity", "embedding_model")?;
            let model = model.or(arguments.text("AnswerSimilarity", "model")?).unwrap_or(&models.embedding);
            arguments.required("AnswerSimilarity", "output")?;
            one(SimilarityRun::of_texts("AnswerSimilarity", arguments, model, (0.0, ""))?, RunState::Similarity)
        }
        "AnswerCorrectness" => several(CorrectnessRun::start(arguments, models)?, RunState::Correctness),
        other => return native_score(other, arguments, package).map(ScorerStep::Finish),
    };
    let calls_expected = calls.len();
    Ok(ScorerStep::Call { calls, run: ScorerRun { state, calls: calls_expected, package } })
}

fn one<R>((call, run): (ModelCall, R), state: fn(R) -> RunState) -> (Vec<ModelCall>, RunState) {
    (vec![call], state(run))
}

fn several<R>((calls, run): (Vec<ModelCall>, R), state: fn(R) -> RunState) -> (Vec<ModelCall>, RunState) {
    (calls, state(run))
}

/// Step of a scorer itself, before it is part of a run.
#[derive(Debug)]
pub(crate) enum StateStep {
    Call(ModelCall, RunState),
    Finish(Score),
}

impl ScorerRun {
    /// Goes on with the responses to the calls, in their order.
    pub fn resume(self, responses: &[Value]) -> Result<ScorerStep, ScorerError> {
        if responses.len() != self.calls {
            return Err(ScorerError::response("scorer", "responses", "as many as calls"));
        }
        let first = &responses[0];
        let step = match self.state {
            // members of a moderation are named alike in both packages
            RunState::Moderation(run) => return run.score(first).map(ScorerStep::Finish),
            RunState::Similarity(run) => StateStep::Finish(run.score(first)?),
            RunState::Context(run) => StateStep::Finish(run.score(first)?),
            RunState::Entities(run) => run.resume(responses)?,
            RunState::EntityRecall(run) => StateStep::Finish(run.score(first)?),
            RunState::Statements(run) => run.resume(first)?,
            RunState::Verdicts(run) => StateStep::Finish(run.score(first)?),
            RunState::Questions(run) => run.resume(responses)?,
            RunState::Relevancy(run) => StateStep::Finish(run.score(first)?),
            RunState::Correctness(run) => StateStep::Finish(run.score(responses)?),
        };
        Ok(match step {
            StateStep::Call(call, state) => {
                ScorerStep::Call { calls: vec![call], run: ScorerRun { state, calls: 1, package: self.package } }
            }
            StateStep::Finish(score) => ScorerStep::Finish(with_names_of(self.package, score)),
        })
    }
}

/// Returns a score whose metadata is named as in the package: in camel case for TypeScript.
fn with_names_of(package: AutoevalsPackage, mut score: Score) -> Score {
    if package == AutoevalsPackage::TypeScript {
        let named = |metadata: Map<String, Value>| {
            metadata.into_iter().map(|(name, value)| (camel_case(&name), value)).collect::<Map<_, _>>()
        };
        score.metadata = score.metadata.map(named);
    }
    score
}
