//! Global functions that every organization has: their names, types and parameters.

use serde_json::{Map, Value, json};
use thiserror::Error;

/// Bytes of a name that a similar one is looked for.
const SIMILAR_NAME_BYTES_MAX: usize = 100;
/// Similarity from which a name is suggested.
const SIMILARITY_MIN: f64 = 0.7;

/// Function type of global functions (functions.md 1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobalFunctionType {
    Scorer,
    Facet,
    Preprocessor,
}

impl GlobalFunctionType {
    pub fn name(self) -> &'static str {
        match self {
            GlobalFunctionType::Scorer => "scorer",
            GlobalFunctionType::Facet => "facet",
            GlobalFunctionType::Preprocessor => "preprocessor",
        }
    }
}

/// How a global function is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobalFunctionKind {
    /// Without a model: [`crate::native_score`].
    Native,
    /// With calls of models: [`crate::start_scorer`].
    Stepwise,
    /// As a prompt: [`crate::judge_prompt`].
    Judge,
    /// As the facet of this name.
    Facet,
    /// As the preprocessor of this name.
    Preprocessor,
}

/// Form of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterForm {
    Any,
    Text,
    Number,
    Boolean,
    List,
    TextOrList,
    Object,
}

impl ParameterForm {
    fn schema(self) -> Value {
        match self {
            ParameterForm::Any => json!({}),
            ParameterForm::Text => json!({"type": "string"}),
            ParameterForm::Number => json!({"type": "number"}),
            ParameterForm::Boolean => json!({"type": "boolean"}),
            ParameterForm::List => json!({"type": "array"}),
            ParameterForm::TextOrList => json!({"type": ["string", "array"]}),
            ParameterForm::Object => json!({"type": "object"}),
        }
    }
}

/// Parameter of a global function, in snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalFunctionParameter {
    pub name: &'static str,
    pub form: ParameterForm,
    pub is_required: bool,
}

/// Global function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalFunction {
    pub name: &'static str,
    /// Another name of it.
    pub alias: Option<&'static str>,
    pub function_type: GlobalFunctionType,
    pub kind: GlobalFunctionKind,
    pub parameters: &'static [GlobalFunctionParameter],
    /// One sentence for users.
    pub help: &'static str,
}

impl GlobalFunction {
    /// Returns the JSON Schema of its arguments.
    pub fn parameters_schema(&self) -> Value {
        let properties: Map<_, _> =
            self.parameters.iter().map(|one| (one.name.to_owned(), one.form.schema())).collect();
        let required: Vec<_> = self.parameters.iter().filter(|one| one.is_required).map(|one| one.name).collect();
        json!({"type": "object", "properties": properties, "required": required})
    }
}

/// Name that no global function has. Clients get it with the status 404.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownGlobalFunction {
    #[error("there is no global {function_type} `{name}`; did you mean `{nearest}`?")]
    Similar { function_type: &'static str, name: String, nearest: &'static str },
    #[error("there is no global {function_type} `{name}`; valid are {valid}")]
    Other { function_type: &'static str, name: String, valid: String },
}

/// Returns the global function of this type and name. Names are case-sensitive.
pub fn global_function(
    function_type: GlobalFunctionType,
    name: &str,
) -> Result<&'static GlobalFunction, UnknownGlobalFunction> {
    let of_type = || GLOBAL_FUNCTIONS.iter().filter(move |function| function.function_type == function_type);
    if let Some(found) = of_type().find(|function| function.name == name || function.alias == Some(name)) {
        return Ok(found);
    }
    let shown: String = name.chars().take(SIMILAR_NAME_BYTES_MAX).collect();
    let lower = shown.to_lowercase();
    let likeness = |function: &GlobalFunction| strsim::jaro_winkler(&function.name.to_lowercase(), &lower);
    let nearest = of_type().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    let function_type = function_type.name();
    match nearest.filter(|nearest| likeness(nearest) >= SIMILARITY_MIN) {
        Some(nearest) => Err(UnknownGlobalFunction::Similar { function_type, name: shown, nearest: nearest.name }),
        None => {
            let valid = of_type().map(|function| function.name).collect::<Vec<_>>().join(", ");
            Err(UnknownGlobalFunction::Other { function_type, name: shown, valid })
        }
    }
}

const fn needed(name: &'static str, form: ParameterForm) -> GlobalFunctionParameter {
    GlobalFunctionParameter { name, form, is_required: true }
}

const fn optional(name: &'static str, form: ParameterForm) -> GlobalFunctionParameter {
    GlobalFunctionParameter { name, form, is_required: false }
}

const fn scorer(
    name: &'static str,
    kind: GlobalFunctionKind,
    parameters: &'static [GlobalFunctionParameter],
    help: &'static str,
) -> GlobalFunction {
    let alias = None;
    GlobalFunction { name, alias, function_type: GlobalFunctionType::Scorer, kind, parameters, help }
}

const fn facet(name: &'static str, help: &'static str) -> GlobalFunction {
    let (function_type, kind) = (GlobalFunctionType::Facet, GlobalFunctionKind::Facet);
    GlobalFunction { name, alias: None, function_type, kind, parameters: &[], help }
}

const fn preprocessor(name: &'static str, help: &'static str) -> GlobalFunction {
    let (function_type, kind) = (GlobalFunctionType::Preprocessor, GlobalFunctionKind::Preprocessor);
    GlobalFunction { name, alias: None, function_type, kind, parameters: &[], help }
}

use GlobalFunctionKind::{Judge, Native, Stepwise};
use ParameterForm::{Any, Boolean, List, Number, Object, Text, TextOrList};

const OUTPUT: GlobalFunctionParameter = needed("output", Any);
const EXPECTED: GlobalFunctionParameter = needed("expected", Any);
const INPUT: GlobalFunctionParameter = needed("input", Any);
const CONTEXT: GlobalFunctionParameter = needed("context", TextOrList);
const MODEL: GlobalFunctionParameter = optional("model", Text);
const EMBEDDING_MODEL: GlobalFunctionParameter = optional("embedding_model", Text);
const USE_COT: GlobalFunctionParameter = optional("use_cot", Boolean);

/// All global functions, scorers first.
pub const GLOBAL_FUNCTIONS: &[GlobalFunction] = &[
    GlobalFunction {
        name: "Levenshtein",
        alias: Some("LevenshteinScorer"),
        function_type: GlobalFunctionType::Scorer,
        kind: Native,
        parameters: &[OUTPUT, EXPECTED],
        help: "Edit distance between two texts, in proportion to the longer one.",
    },
    scorer("ExactMatch", Native, &[OUTPUT, optional("expected", Any)], "Equality of two values as texts."),
    scorer(
        "NumericDiff",
        Native,
        &[needed("output", Number), needed("expected", Number)],
        "Difference of two numbers, in proportion to their sizes.",
    ),
    scorer(
        "JSONDiff",
        Native,
        &[
            OUTPUT,
            optional("expected", Any),
            optional("string_scorer", Text),
            optional("number_scorer", Text),
            optional("preserve_strings", Boolean),
        ],
        "Similarity of two JSON values, member by member.",
    ),
    scorer("ValidJSON", Native, &[OUTPUT, optional("schema", Object)], "Validity of JSON, also by a JSON Schema."),
    scorer(
        "ListContains",
        Native,
        &[
            needed("output", List),
            needed("expected", List),
            optional("pairwise_scorer", Text),
            optional("allow_extra_entities", Boolean),
        ],
        "Similarity of two lists, with their items matched one to one.",
    ),
    scorer(
        "EmbeddingSimilarity",
        Stepwise,
        &[OUTPUT, EXPECTED, optional("prefix", Text), MODEL, optional("expected_min", Number)],
        "Similarity of two texts by their embeddings.",
    ),
    scorer(
        "Moderation",
        Stepwise,
        &[OUTPUT, optional("threshold", Number), MODEL],
        "Result of a moderation of the output.",
    ),
    scorer(
        "Factuality",
        Judge,
        &[INPUT, OUTPUT, EXPECTED, MODEL, USE_COT],
        "Agreement of the output's facts with an expert's answer.",
    ),
    scorer(
        "Battle",
        Judge,
        &[needed("instructions", Any), OUTPUT, EXPECTED, MODEL, USE_COT],
        "Whether the output follows instructions better than the expected one.",
    ),
    scorer(
        "ClosedQA",
        Judge,
        &[INPUT, OUTPUT, needed("criteria", Any), MODEL, USE_COT],
        "Whether the output meets a criterion.",
    ),
    scorer("Humor", Judge, &[OUTPUT, MODEL, USE_COT], "Whether the output is funny."),
    scorer("Possible", Judge, &[INPUT, OUTPUT, MODEL, USE_COT], "Whether the output solves the task at all."),
    scorer("Security", Judge, &[OUTPUT, MODEL, USE_COT], "Whether the output is harmless."),
    scorer(
        "Sql",
        Judge,
        &[INPUT, OUTPUT, EXPECTED, MODEL, USE_COT],
        "Whether a SQL query means the same as an expert's query.",
    ),
    scorer(
        "Summary",
        Judge,
        &[INPUT, OUTPUT, EXPECTED, MODEL, USE_COT],
        "Whether the output summarizes a text better than the expected summary.",
    ),
    scorer(
        "Translation",
        Judge,
        &[INPUT, OUTPUT, EXPECTED, needed("language", Text), MODEL, USE_COT],
        "Whether a translation into English means the same as an expert's.",
    ),
    scorer(
        "ContextEntityRecall",
        Stepwise,
        &[EXPECTED, CONTEXT, MODEL, EMBEDDING_MODEL],
        "Part of the expected answer's entities that the context has.",
    ),
    scorer("ContextRelevancy", Stepwise, &[INPUT, CONTEXT, MODEL], "Part of the context that answers the question."),
    scorer(
        "ContextRecall",
        Stepwise,
        &[INPUT, EXPECTED, CONTEXT, MODEL],
        "Part of the expected answer's statements that the context supports.",
    ),
    scorer(
        "ContextPrecision",
        Stepwise,
        &[INPUT, EXPECTED, CONTEXT, MODEL],
        "Whether the context was useful for the expected answer.",
    ),
    scorer(
        "Faithfulness",
        Stepwise,
        &[INPUT, OUTPUT, CONTEXT, MODEL],
        "Part of the output's statements that the context supports.",
    ),
    scorer(
        "AnswerRelevancy",
        Stepwise,
        &[INPUT, OUTPUT, CONTEXT, optional("strictness", Number), MODEL, EMBEDDING_MODEL],
        "Similarity of the question to questions that the output answers.",
    ),
    scorer(
        "AnswerSimilarity",
        Stepwise,
        &[OUTPUT, EXPECTED, MODEL, EMBEDDING_MODEL],
        "Similarity of output and expected answer by their embeddings.",
    ),
    scorer(
        "AnswerCorrectness",
        Stepwise,
        &[
            INPUT,
            OUTPUT,
            EXPECTED,
            optional("factuality_weight", Number),
            optional("answer_similarity_weight", Number),
            MODEL,
            EMBEDDING_MODEL,
        ],
        "Statements that output and expected answer share, and their similarity.",
    ),
    facet("Task", "What the user of a trace wants to have done."),
    facet("Sentiment", "Mood of the user of a trace."),
    facet("Issues", "What went wrong in a trace."),
    preprocessor("thread", "Messages of a trace, in their order."),
    preprocessor("project_default", "Preprocessor that the project of a trace names, or `thread`."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judges::JUDGES;

    #[test]
    fn names_are_unique_and_judges_are_the_prompts() {
        let mut names: Vec<_> = GLOBAL_FUNCTIONS.iter().map(|one| (one.function_type.name(), one.name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), GLOBAL_FUNCTIONS.len());
        let judges: Vec<_> = GLOBAL_FUNCTIONS.iter().filter(|one| one.kind == Judge).map(|one| one.name).collect();
        assert_eq!(judges, JUDGES.iter().map(|judge| judge.name).collect::<Vec<_>>());
    }

    #[test]
    fn an_unknown_name_leads_to_the_nearest() {
        let text = |name| global_function(GlobalFunctionType::Scorer, name).expect_err("unknown").to_string();
        assert_eq!(text("levenshtein"), "there is no global scorer `levenshtein`; did you mean `Levenshtein`?");
        assert_eq!(text("JsonDiff"), "there is no global scorer `JsonDiff`; did you mean `JSONDiff`?");
        assert_eq!(
            text("ContextRelevance"),
            "there is no global scorer `ContextRelevance`; did you mean `ContextRelevancy`?"
        );
        assert!(text("zzz").starts_with("there is no global scorer `zzz`; valid are Levenshtein, ExactMatch,"));
        let text = global_function(GlobalFunctionType::Facet, "thread").expect_err("a preprocessor").to_string();
        assert_eq!(text, "there is no global facet `thread`; valid are Task, Sentiment, Issues");
    }

    #[test]
    fn an_alias_is_another_name() {
        let found = global_function(GlobalFunctionType::Scorer, "LevenshteinScorer").expect("an alias");
        assert_eq!(found.name, "Levenshtein");
        let schema = found.parameters_schema();
        assert_eq!(schema["required"], json!(["output", "expected"]));
    }
}
