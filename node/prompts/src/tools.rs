//! Tools that the server runs: their names and definitions for the model, and the way back from a name.

use serde_json::{Value, json};

use crate::assembly::TOOLS_MAX;
use crate::error::PromptError;

/// Characters of the name of a tool, as providers limit it.
pub const TOOL_NAME_CHARS_MAX: usize = 64;
/// Stands for a name without any valid character.
const UNNAMED: &str = "tool";

/// A function that is offered as a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolSource {
    pub slug: String,
    pub description: Option<String>,
    pub parameters: ToolParameters,
}

/// What a tool takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ToolParameters {
    /// Any object: the function has no schema.
    #[default]
    Unknown,
    /// JSON schema of the function's parameters.
    Schema(Value),
    /// A text, as prompts take it.
    PromptInput,
}

/// Tools of one request, by the names that the model knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCatalog<F> {
    tools: Vec<(String, ToolSource, F)>,
}

impl<F> ToolCatalog<F> {
    /// Names the tools. `raw_tools` are those that the prompt itself defines: their names are taken.
    pub fn new(raw_tools: &[Value], functions: Vec<(ToolSource, F)>) -> Result<ToolCatalog<F>, PromptError> {
        if functions.len() > TOOLS_MAX {
            return Err(PromptError::too_many("prompt_data.tool_functions", "tools", TOOLS_MAX));
        }
        let raw_names = raw_tools.iter().filter_map(|tool| tool.pointer("/function/name").and_then(Value::as_str));
        let mut taken: Vec<String> = raw_names.map(str::to_owned).collect();
        let mut tools = Vec::new();
        for (source, function) in functions {
            let name = free_name(&source.slug, &taken);
            taken.push(name.clone());
            tools.push((name, source, function));
        }
        Ok(ToolCatalog { tools })
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns the definitions for the model.
    pub fn definitions(&self) -> impl Iterator<Item = Value> {
        self.tools.iter().map(|(name, source, _)| {
            let parameters = match &source.parameters {
                ToolParameters::Schema(schema) => schema.clone(),
                ToolParameters::Unknown => json!({"type": "object", "properties": {}}),
                ToolParameters::PromptInput => {
                    json!({"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]})
                }
            };
            let mut function = json!({"name": name});
            if let Some(description) = source.description.as_ref().filter(|text| !text.is_empty()) {
                function["description"] = description.clone().into();
            }
            function["parameters"] = parameters;
            json!({"type": "function", "function": function})
        })
    }

    /// Returns the function that the model knows by this name.
    pub fn function(&self, name: &str) -> Option<&F> {
        self.tools.iter().find(|(known, _, _)| known == name).map(|(_, _, function)| function)
    }
}

/// Returns the name of a tool: the slug if it is valid, else cleaned; and a number behind it if it is taken.
fn free_name(slug: &str, taken: &[String]) -> String {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let clean: String = slug.chars().map(|c| if is_valid(c) { c } else { '_' }).take(TOOL_NAME_CHARS_MAX).collect();
    let clean = if clean.is_empty() { UNNAMED.to_owned() } else { clean };
    let numbered = (2..=taken.len() + 2).map(|number| {
        let suffix = format!("_{number}");
        // all characters are ASCII by now
        format!("{}{suffix}", &clean[..clean.len().min(TOOL_NAME_CHARS_MAX - suffix.len())])
    });
    let mut names = std::iter::once(clean.clone()).chain(numbered);
    names.find(|name| !taken.contains(name)).expect("there are more names than are taken")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_and_unique_and_lead_back() {
        let long = "a".repeat(70);
        let slugs = ["get-weather", "get weather", "get.weather", "raw", "", &long, &long, "ü"];
        let sources = slugs
            .iter()
            .enumerate()
            .map(|(number, slug)| (ToolSource { slug: (*slug).to_owned(), ..ToolSource::default() }, number));
        let raw = json!([{"type": "function", "function": {"name": "raw"}}]);
        let catalog = ToolCatalog::new(raw.as_array().expect("a list"), sources.collect()).expect("few tools");
        let names: Vec<String> =
            catalog.definitions().map(|tool| tool["function"]["name"].as_str().expect("a name").to_owned()).collect();
        let (cut, second) = ("a".repeat(64), format!("{}_2", "a".repeat(62)));
        assert_eq!(names, ["get-weather", "get_weather", "get_weather_2", "raw_2", "tool", &cut, &second, "_"]);
        for (number, name) in names.iter().enumerate() {
            assert_eq!(catalog.function(name), Some(&number));
        }
        assert_eq!(catalog.function("raw"), None);
    }

    #[test]
    fn definitions_have_the_schema_of_the_function() {
        let source = |parameters| ToolSource { slug: "f".into(), description: Some("d".into()), parameters };
        let schema = json!({"type": "object", "properties": {"b": {}, "a": {}}});
        let cases = [
            (ToolParameters::Unknown, json!({"type": "object", "properties": {}})),
            (ToolParameters::Schema(schema.clone()), schema),
            (
                ToolParameters::PromptInput,
                json!({"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}),
            ),
        ];
        for (parameters, expected) in cases {
            let catalog = ToolCatalog::new(&[], vec![(source(parameters), ())]).expect("one tool");
            let expected =
                json!({"type": "function", "function": {"name": "f", "description": "d", "parameters": expected}});
            assert_eq!(catalog.definitions().collect::<Vec<_>>(), [expected]);
        }
    }
}
