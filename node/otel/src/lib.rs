//! Conversion of OpenTelemetry exports to rows: bytes in, rows out. Depends on no HTTP, storage or clock.
//!
//! | step | what it does |
//! |---|---|
//! | [`decode`] | bytes of either encoding to messages, within [`Limits`] |
//! | [`Export::rows`] | each span to a row and where the row goes; spans that cannot be rows, with why |
//! | [`encode_response`] | the answer, which says what was not taken |
//!
//! A span is always sent whole, so its row replaces what was there: a span that is sent again adds nothing. Where several
//! conventions name one thing, `conventions` says who wins. What became a field of the row and may be large (messages,
//! answers, lists of tools) is not kept in `metadata` as well, because it would be stored twice; small values are, so
//! that they are found by the names they came with. `braintrust.otel.preserve_attributes` keeps all.

mod answer;
mod attributes;
mod conventions;
mod decode;
mod draft;
mod error;
mod events;
mod json;
mod parent;
pub mod proto;
mod slug;
mod span;
mod value;
mod wire;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

pub use answer::{
    REASONS_TOLD_MAX, Rejected, encode_not_stored, encode_response, encode_retry, encode_status, rpc_code,
};
pub use attributes::ATTRIBUTE_NAME_BYTES_MAX;
pub use decode::{
    ATTRIBUTES_MAX, EVENTS_MAX, Encoding, Export, GROUPS_MAX, LINKS_MAX, Limits, MESSAGES_MAX, SPANS_MAX, Signal,
    VALUE_DEPTH_MAX, count, decode,
};
pub use error::OtelError;
pub use parent::{Parent, ParentObject};
pub use slug::{ObjectType, SLUG_BYTES_MAX, Slug, SlugObject, SpanIds};

use span::Around;

/// A span as a row, without the ids of the object it is of: those are its parent's.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// The place of the span among those of the export.
    pub index: usize,
    /// Parent of the span, or else of the request. Spans of one parent share it.
    pub parent: Option<Arc<Parent>>,
    pub row: Value,
}

/// Result of an export.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    pub taken: Vec<Mapped>,
    pub rejected: Vec<Rejected>,
}

impl Export {
    /// The rows of all spans. `request` is the parent that the request names, if it names one.
    pub fn rows(self, request: Option<Parent>) -> Rows {
        let Export { request: export, limits } = self;
        let mut parents = Parents { request: request.map(Arc::new), named: HashMap::new() };
        let (mut rows, mut index) = (Rows::default(), 0);
        for resource in export.resource_spans {
            let attributes = resource.resource.unwrap_or_default().attributes;
            let mut around = Around::of_resource(attributes, &limits);
            for scope in resource.scope_spans {
                if let Ok(around) = &mut around {
                    let said = scope.scope.unwrap_or_default();
                    (around.scope_name, around.scope_version) = (said.name, said.version);
                }
                for span in scope.spans {
                    let row = around.as_ref().map_err(Clone::clone).and_then(|around| {
                        let checked = span::check(span, &limits)?;
                        let parent = parents.of(checked.parent.as_deref())?;
                        let row = span::row(checked, parent.as_ref(), around, &limits)?;
                        Ok(Mapped { index, parent, row })
                    });
                    match row {
                        Ok(mapped) => rows.taken.push(mapped),
                        Err(why) => rows.rejected.push(Rejected { index, why }),
                    }
                    index += 1;
                }
            }
        }
        rows
    }
}

/// Parents that spans name, each read once.
struct Parents {
    request: Option<Arc<Parent>>,
    named: HashMap<String, Result<Arc<Parent>, String>>,
}

impl Parents {
    fn of(&mut self, name: Option<&str>) -> Result<Option<Arc<Parent>>, String> {
        let Some(name) = name else { return Ok(self.request.clone()) };
        if let Some(known) = self.named.get(name) {
            return known.clone().map(Some);
        }
        let parent = Parent::parse(name).map(Arc::new).map_err(|why| why.to_string());
        self.named.insert(name.to_owned(), parent.clone());
        parent.map(Some)
    }
}
