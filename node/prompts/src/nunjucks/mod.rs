//! Nunjucks templates: the part of the language that Jinja2 shares, without escaping, and with JSON for objects (F-30).
//!
//! The engine counts what a template takes, but a template could still build values that are large without being counted.
//! `checks` refuses the expressions for that, `filters` replaces the filters, and `values` has the values of JSON.

mod checks;
mod filters;
mod values;

use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value as TemplateValue;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};
use serde_json::Value;

pub use checks::{ELIFS_MAX, NAMED_ADDITIONS_MAX, TAG_TOKENS_MAX};

use crate::error::TemplateError;
use crate::template::{RENDER_STEPS_MAX, RENDERED_BYTES_MAX, RenderBudget, TagPrinting};

/// Levels of recursive loops.
const RECURSION_MAX: usize = 50;
/// Name of a template in errors of the engine.
const NAME: &str = "template";
/// What a strict template may not print.
const MISSING: &str = "the value does not exist";

/// An engine with the variables of one prompt.
#[derive(Debug)]
pub(crate) struct NunjucksEngine {
    environment: Environment<'static>,
    variables: TemplateValue,
}

impl NunjucksEngine {
    pub fn new(variables: &Value, is_strict: bool, printing: TagPrinting) -> NunjucksEngine {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Chainable);
        environment.set_syntax(syntax());
        environment.set_recursion_limit(RECURSION_MAX);
        filters::install(&mut environment);
        environment.set_formatter(move |out, _, value| {
            if value.is_undefined() && is_strict {
                return Err(Error::new(ErrorKind::UndefinedError, MISSING));
            }
            let message = match printing {
                TagPrinting::Transcripts => values::json_of(value).map(|json| printing.text(&json)),
                TagPrinting::Plain => None,
            };
            let text = match message {
                Some(text) => text,
                None => values::text_of(value)?,
            };
            out.write_str(&text).map_err(Error::from)
        });
        NunjucksEngine { environment, variables: values::template_value(variables) }
    }

    /// Returns the text of a template.
    pub fn render(&mut self, template: &str, budget: &mut RenderBudget) -> Result<String, TemplateError> {
        checks::check(template).map_err(|why| described(&why))?;
        self.environment.set_fuel(Some(budget.steps as u64));
        let parsed = self.environment.template_from_named_str(NAME, template).map_err(|why| described(&why))?;
        let mut output = LimitedOutput { bytes: Vec::new(), max: budget.bytes, is_full: false };
        let rendered = parsed.render_captured_to(self.variables.clone(), &mut output);
        let consumed = rendered.as_ref().ok().and_then(|captured| captured.state().fuel_levels());
        let failed = rendered.err();
        if output.is_full {
            return Err(TemplateError::Limit { what: "bytes of text", max: RENDERED_BYTES_MAX });
        }
        if let Some(why) = failed {
            return Err(described(&why));
        }
        let consumed = consumed.map_or(0, |(consumed, _)| consumed);
        budget.take_steps(usize::try_from(consumed).unwrap_or(usize::MAX).min(budget.steps))?;
        budget.take_bytes(output.bytes.len())?;
        Ok(String::from_utf8(output.bytes).expect("the engine writes texts"))
    }
}

/// Returns the default syntax, but texts end as they are written.
fn syntax() -> SyntaxConfig {
    SyntaxConfig::builder().keep_trailing_newline(true).build().expect("the default delimiters differ from each other")
}

fn described(error: &Error) -> TemplateError {
    let mut why =
        error.detail().map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()));
    if error.kind() == ErrorKind::OutOfFuel {
        return TemplateError::Limit { what: "steps", max: RENDER_STEPS_MAX };
    }
    if error.kind() == ErrorKind::SyntaxError {
        why.push_str("; templates have the nunjucks syntax that Jinja2 shares");
    }
    TemplateError::Nunjucks { line: error.line().unwrap_or(1), why }
}

/// Output that refuses more bytes than fit.
struct LimitedOutput {
    bytes: Vec<u8>,
    max: usize,
    is_full: bool,
}

impl io::Write for LimitedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.max {
            self.is_full = true;
            return Err(io::Error::other("the text is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
