//! Rendering of the texts of one prompt in its template format, within one budget.

use serde_json::Value;

use crate::error::{PromptError, TemplateError};
use crate::mustache::{MustacheTemplate, value_of};
use crate::nunjucks::NunjucksEngine;
use crate::text::display_text;
use crate::transcript::message_text;

/// Bytes of one template.
pub const TEMPLATE_BYTES_MAX: usize = 1 << 20;
/// Bytes of all texts that the templates of a prompt are rendered to.
pub const RENDERED_BYTES_MAX: usize = 16 << 20;
/// Tags, texts and items of sections that are visited to render a prompt.
pub const RENDER_STEPS_MAX: usize = 4_000_000;

/// Language of the templates of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TemplateFormat {
    #[default]
    Mustache,
    Nunjucks,
    /// Texts are sent as they are.
    None,
}

impl TemplateFormat {
    /// Returns the format of this name. Null, unknown names and other values are mustache, as for clients.
    pub fn of(value: Option<&Value>) -> TemplateFormat {
        match value.and_then(Value::as_str) {
            Some("nunjucks") => TemplateFormat::Nunjucks,
            Some("none") => TemplateFormat::None,
            _ => TemplateFormat::Mustache,
        }
    }
}

/// What rendering may still take.
#[derive(Debug)]
pub(crate) struct RenderBudget {
    pub bytes: usize,
    pub steps: usize,
}

impl RenderBudget {
    pub fn take_bytes(&mut self, bytes: usize) -> Result<(), TemplateError> {
        let limit = TemplateError::Limit { what: "bytes of text", max: RENDERED_BYTES_MAX };
        self.bytes = self.bytes.checked_sub(bytes).ok_or(limit)?;
        Ok(())
    }

    pub fn take_steps(&mut self, steps: usize) -> Result<(), TemplateError> {
        let limit = TemplateError::Limit { what: "steps", max: RENDER_STEPS_MAX };
        self.steps = self.steps.checked_sub(steps).ok_or(limit)?;
        Ok(())
    }
}

impl Default for RenderBudget {
    fn default() -> RenderBudget {
        RenderBudget { bytes: RENDERED_BYTES_MAX, steps: RENDER_STEPS_MAX }
    }
}

/// How a value of a tag becomes text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagPrinting {
    Plain,
    /// Lists of messages are transcripts, which judges read more easily than JSON (F-28).
    Transcripts,
}

impl TagPrinting {
    pub fn text(self, value: &Value) -> String {
        let message = (self == TagPrinting::Transcripts).then(|| message_text(value)).flatten();
        message.unwrap_or_else(|| display_text(value))
    }
}

/// Renders the texts of one prompt.
#[derive(Debug)]
pub struct TextRenderer<'v> {
    format: TemplateFormat,
    is_strict: bool,
    printing: TagPrinting,
    variables: &'v Value,
    budget: RenderBudget,
    /// Made for the first text with tags.
    nunjucks: Option<NunjucksEngine>,
}

impl<'v> TextRenderer<'v> {
    /// `variables` is an object. A strict renderer refuses templates that mention variables that are not there.
    pub fn new(format: TemplateFormat, variables: &'v Value, is_strict: bool) -> TextRenderer<'v> {
        let (printing, budget) = (TagPrinting::Plain, RenderBudget::default());
        TextRenderer { format, is_strict, printing, variables, budget, nunjucks: None }
    }

    /// Prints lists of messages as transcripts (F-28).
    #[must_use]
    pub fn with_transcripts(self) -> TextRenderer<'v> {
        TextRenderer { printing: TagPrinting::Transcripts, ..self }
    }

    /// Returns the text of a template. `path` is where the template is, for errors.
    pub fn render(&mut self, path: &str, template: &str) -> Result<String, PromptError> {
        if template.len() > TEMPLATE_BYTES_MAX {
            return Err(PromptError::too_many(path, "bytes in a template", TEMPLATE_BYTES_MAX));
        }
        self.text_of(template).map_err(|why| why.at(path))
    }

    fn text_of(&mut self, template: &str) -> Result<String, TemplateError> {
        match self.format {
            TemplateFormat::None => {
                self.budget.take_bytes(template.len())?;
                Ok(template.to_owned())
            }
            TemplateFormat::Mustache => {
                let parsed = MustacheTemplate::parse(template)?;
                if self.is_strict {
                    parsed.check_strictly(self.variables)?;
                }
                let printing = self.printing;
                parsed.render(self.variables, &|value| printing.text(value), &mut self.budget)
            }
            TemplateFormat::Nunjucks => {
                let (variables, is_strict, printing) = (self.variables, self.is_strict, self.printing);
                let engine = self.nunjucks.get_or_insert_with(|| NunjucksEngine::new(variables, is_strict, printing));
                engine.render(template, &mut self.budget)
            }
        }
    }

    /// Returns the value of the only tag of a template that has nothing else, such as `{{images}}`.
    pub(crate) fn sole_value(&self, template: &str) -> Option<Value> {
        if self.format == TemplateFormat::None || template.len() > TEMPLATE_BYTES_MAX {
            return None;
        }
        // a path is written the same in both languages
        let parsed = MustacheTemplate::parse(template).ok()?;
        value_of(self.variables, parsed.sole_variable()?).map(|value| value.into_owned())
    }
}
