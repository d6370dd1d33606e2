//! EmbeddingSimilarity: requests for embeddings, and how similar two are.

use serde_json::{Value, json};

use crate::arguments::ScorerArguments;
use crate::error::ScorerError;
use crate::model_call::{DefaultModels, ModelCall, ModelOperation};
use crate::score::Score;
use crate::texts::{AutoevalsPackage, plain_text};

/// Numbers of one embedding.
pub const EMBEDDING_NUMBERS_MAX: usize = 65_536;
/// Length of an embedding in space; those of models are near 1.
const EMBEDDING_LENGTH_MAX: f64 = 1e100;
/// Similarity from which scores are above 0, unless the caller gives another.
pub(crate) const EXPECTED_MIN: f64 = 0.7;

/// Returns one request for the embeddings of several texts.
pub(crate) fn embeddings_call(model: &str, texts: &[String]) -> ModelCall {
    ModelCall { operation: ModelOperation::Embeddings, body: json!({"model": model, "input": texts}) }
}

/// Embedding, and its length in space.
#[derive(Debug)]
pub(crate) struct Embedding {
    numbers: Vec<f64>,
    length: f64,
}

/// Returns the embeddings of a response, in the order of the request.
pub(crate) fn embeddings(scorer: &'static str, response: &Value, count: usize) -> Result<Vec<Embedding>, ScorerError> {
    let listed = response["data"].as_array().filter(|listed| listed.len() == count);
    let listed =
        listed.ok_or_else(|| ScorerError::response(scorer, "data", "an array with each embedding asked for"))?;
    let mut found: Vec<Option<Embedding>> = Vec::new();
    found.resize_with(count, || None);
    for (position, entry) in listed.iter().enumerate() {
        let index = entry["index"].as_u64().map_or(position, |index| usize::try_from(index).unwrap_or(count));
        let slot = found.get_mut(index).filter(|slot| slot.is_none()).ok_or_else(|| {
            ScorerError::response(scorer, format!("data.{position}.index"), "the position of one text, each once")
        })?;
        *slot = Some(embedding(scorer, position, &entry["embedding"])?);
    }
    Ok(found.into_iter().flatten().collect())
}

fn embedding(scorer: &'static str, position: usize, found: &Value) -> Result<Embedding, ScorerError> {
    let listed = found.as_array().filter(|listed| (1..=EMBEDDING_NUMBERS_MAX).contains(&listed.len()));
    let numbers = listed.and_then(|listed| listed.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>());
    let numbers = numbers.ok_or_else(|| {
        ScorerError::response(scorer, format!("data.{position}.embedding"), "an array of 1 to 65536 numbers")
    })?;
    let length = numbers.iter().map(|number| number * number).sum::<f64>().sqrt();
    if length > EMBEDDING_LENGTH_MAX {
        return Err(ScorerError::response(scorer, format!("data.{position}.embedding"), "numbers of usual size"));
    }
    Ok(Embedding { numbers, length })
}

/// Returns the cosine of the angle between two embeddings; 0 where one has no length.
pub(crate) fn cosine(scorer: &'static str, left: &Embedding, right: &Embedding) -> Result<f64, ScorerError> {
    if left.numbers.len() != right.numbers.len() {
        return Err(ScorerError::response(scorer, "data", "embeddings of one length"));
    }
    let lengths = left.length * right.length;
    if lengths == 0.0 {
        return Ok(0.0);
    }
    let product: f64 = left.numbers.iter().zip(&right.numbers).map(|(left, right)| left * right).sum();
    Ok((product / lengths).min(1.0))
}

/// Returns a cosine as a score: 0 up to the floor, and in proportion above it.
pub(crate) fn scaled(cosine: f64, floor: f64) -> f64 {
    ((cosine - floor) / (1.0 - floor)).clamp(0.0, 1.0)
}

/// Run of EmbeddingSimilarity that waits for two embeddings.
#[derive(Debug)]
pub(crate) struct SimilarityRun {
    scorer: &'static str,
    floor: f64,
}

impl SimilarityRun {
    pub(crate) fn start(
        arguments: &ScorerArguments<'_>,
        models: &DefaultModels,
    ) -> Result<(ModelCall, SimilarityRun), ScorerError> {
        const NAME: &str = "EmbeddingSimilarity";
        let floor = arguments.number(NAME, "expected_min", EXPECTED_MIN)?;
        if !(-1.0..1.0).contains(&floor) {
            let value = arguments.or_null("expected_min");
            return Err(ScorerError::invalid(NAME, "expected_min", value, "a number from -1 to below 1"));
        }
        let model = arguments.text(NAME, "model")?.unwrap_or(&models.embedding);
        let prefix = arguments.text(NAME, "prefix")?.unwrap_or_default();
        SimilarityRun::of_texts(NAME, arguments, model, (floor, prefix))
    }

    /// Starts the similarity of `output` and `expected` under the name of another scorer.
    pub(crate) fn of_texts(
        scorer: &'static str,
        arguments: &ScorerArguments<'_>,
        model: &str,
        (floor, prefix): (f64, &str),
    ) -> Result<(ModelCall, SimilarityRun), ScorerError> {
        let expected = arguments.required(scorer, "expected")?;
        let text = |value| format!("{prefix}{}", plain_text(value, AutoevalsPackage::TypeScript));
        let texts = [text(arguments.or_null("output")), text(expected)];
        Ok((embeddings_call(model, &texts), SimilarityRun { scorer, floor }))
    }

    /// Returns how similar the two texts are, from 0 to 1.
    pub(crate) fn similarity(&self, response: &Value) -> Result<f64, ScorerError> {
        let found = embeddings(self.scorer, response, 2)?;
        Ok(scaled(cosine(self.scorer, &found[0], &found[1])?, self.floor))
    }

    pub(crate) fn score(&self, response: &Value) -> Result<Score, ScorerError> {
        Ok(Score::of_number(self.scorer, self.similarity(response)?))
    }
}
