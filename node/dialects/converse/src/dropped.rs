//! Names of parameters that are not sent.

use std::collections::BTreeSet;

use assay_node_dialects::form::Extra;

/// Names, each once, in the order of their discovery.
#[derive(Debug, Default)]
pub(super) struct ConverseDropped {
    names: Vec<String>,
    known: BTreeSet<String>,
}

impl ConverseDropped {
    pub(super) fn add(&mut self, name: &str) {
        if self.known.insert(name.to_owned()) {
            self.names.push(name.to_owned());
        }
    }

    pub(super) fn add_if(&mut self, name: &str, is_there: bool) {
        if is_there {
            self.add(name);
        }
    }

    /// Adds unknown fields, which came from the dialect of a client.
    pub(super) fn add_extra(&mut self, extra: &Extra) {
        let fields = extra.dialect().and_then(|dialect| extra.for_dialect(dialect));
        fields.into_iter().flat_map(|fields| fields.keys()).for_each(|name| self.add(name));
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}
