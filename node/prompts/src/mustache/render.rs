//! Renderer of mustache templates, within a budget of text and steps.

use std::borrow::Cow;

use serde_json::Value;

use super::lookup::{Contexts, is_there, lookup};
use super::parse::{MustacheTemplate, TemplateNode};
use crate::error::TemplateError;
use crate::template::RenderBudget;

impl MustacheTemplate<'_> {
    /// Returns the text. `print` writes the value of a tag.
    pub(crate) fn render(
        &self,
        variables: &Value,
        print: &dyn Fn(&Value) -> String,
        budget: &mut RenderBudget,
    ) -> Result<String, TemplateError> {
        let mut rendering = Rendering { contexts: vec![Cow::Borrowed(variables)], text: String::new(), print, budget };
        rendering.nodes(&self.nodes)?;
        Ok(rendering.text)
    }

    /// Checks that the variables of tags outside of sections exist.
    pub(crate) fn check_strictly(&self, variables: &Value) -> Result<(), TemplateError> {
        for node in &self.nodes {
            if let TemplateNode::Variable(name) = node
                && !is_there(variables, name)
            {
                return Err(TemplateError::MissingVariable((*name).to_owned()));
            }
        }
        Ok(())
    }

    /// Returns the name of the only tag of a template that has nothing else.
    pub(crate) fn sole_variable(&self) -> Option<&str> {
        match self.nodes.as_slice() {
            [TemplateNode::Variable(name)] => Some(name),
            _ => None,
        }
    }
}

/// Returns the value of a name in the variables.
pub(crate) fn value_of<'v>(variables: &'v Value, name: &str) -> Option<Cow<'v, Value>> {
    lookup(&[Cow::Borrowed(variables)], name, &mut 0)
}

/// Bytes of a text that are counted for the price of a step.
const SCANNED_BYTES_PER_STEP: usize = 64;

struct Rendering<'v, 'b> {
    contexts: Contexts<'v>,
    text: String,
    print: &'b dyn Fn(&Value) -> String,
    budget: &'b mut RenderBudget,
}

impl Rendering<'_, '_> {
    /// Sections nest at most as deep as the parser lets them.
    fn nodes(&mut self, nodes: &[TemplateNode<'_>]) -> Result<(), TemplateError> {
        for node in nodes {
            self.budget.take_steps(1)?;
            match node {
                TemplateNode::Text(text) => self.write(text)?,
                TemplateNode::Variable(name) => {
                    if let Some(value) = self.lookup(name)? {
                        let text = (self.print)(&value);
                        self.write(&text)?;
                    }
                }
                TemplateNode::Section { name, inverted, nodes } => self.section(name, *inverted, nodes)?,
            }
        }
        Ok(())
    }

    fn section(&mut self, name: &str, inverted: bool, nodes: &[TemplateNode<'_>]) -> Result<(), TemplateError> {
        let value = self.lookup(name)?.filter(|value| is_truthy(value));
        match (value, inverted) {
            (None, true) => self.nodes(nodes),
            (None, false) | (Some(_), true) => Ok(()),
            (Some(Cow::Borrowed(Value::Array(items))), false) => {
                items.iter().try_for_each(|item| self.within(Cow::Borrowed(item), nodes))
            }
            // mustache.js pushes everything but `true`
            (Some(value), false) if value.is_boolean() => self.nodes(nodes),
            (Some(value), false) => self.within(value, nodes),
        }
    }
}

impl<'v> Rendering<'v, '_> {
    fn lookup(&mut self, name: &str) -> Result<Option<Cow<'v, Value>>, TemplateError> {
        let mut scanned = 0;
        let found = lookup(&self.contexts, name, &mut scanned);
        self.budget.take_steps(scanned / SCANNED_BYTES_PER_STEP)?;
        Ok(found)
    }

    fn within(&mut self, context: Cow<'v, Value>, nodes: &[TemplateNode<'_>]) -> Result<(), TemplateError> {
        self.budget.take_steps(1)?;
        self.contexts.push(context);
        let rendered = self.nodes(nodes);
        self.contexts.pop();
        rendered
    }

    fn write(&mut self, text: &str) -> Result<(), TemplateError> {
        self.budget.take_bytes(text.len())?;
        self.text.push_str(text);
        Ok(())
    }
}

/// An empty array is not truthy here, which makes no difference but to inverted sections.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(_) => true,
    }
}
