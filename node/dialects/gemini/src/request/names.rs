//! Names of parameters that a written request lacks.

use assay_node_dialects::Dialect;
use assay_node_dialects::form::Extra;

/// Upper bound of names that are told; further ones are left out.
const NAMES_MAX: usize = 256;

/// Names of parameters that were left out, each once.
#[derive(Debug, Default)]
pub(crate) struct UnsentNames(Vec<String>);

impl UnsentNames {
    pub fn add(&mut self, name: &str) {
        if self.0.len() < NAMES_MAX && !self.0.iter().any(|known| known == name) {
            self.0.push(name.to_owned());
        }
    }

    pub fn add_if(&mut self, is_dropped: bool, name: &str) {
        if is_dropped {
            self.add(name);
        }
    }

    /// Adds unknown fields of other dialects.
    pub fn add_extra(&mut self, extra: &Extra) {
        extra.dropped_by(Dialect::Gemini).for_each(|name| self.add(name));
    }

    pub fn into_names(self) -> Vec<String> {
        self.0
    }
}
