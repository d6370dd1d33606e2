//! Conversion of OpenTelemetry exports to rows. It depends on no HTTP, storage or clock.
//!
//! | step | task |
//! |---|---|
//! | [`decode`] | decodes the bytes of either encoding to messages, within [`Limits`] |
//! | [`Export::rows`] | converts each span to a row with its destination, and returns reasons for other spans |
//! | [`encode_response`] | encodes the response, which names the rejected spans |
//!
//! A span is always sent completely, so its row replaces an earlier one. A repeated span thus adds nothing.
//! `conventions` defines the precedence of conventions.
//!
//! A large value that becomes a field of the row is not kept in `metadata`, because it would be stored twice. Examples
//! are messages, answers and lists of tools. Small values stay in `metadata`, so that they are found by their original
//! names. `braintrust.otel.preserve_attributes` keeps all attributes.

mod answer;
mod attributes;
mod conventions;
mod decode;
mod draft;
mod error;
mod events;
mod json;
mod parent;
mod phoenix;
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
pub use conventions::{total_cost, usage_metrics};
pub use decode::{
    ATTRIBUTES_MAX, EVENTS_MAX, Encoding, Export, GROUPS_MAX, LINKS_MAX, Limits, MESSAGES_MAX, SPANS_MAX, Signal,
    VALUE_DEPTH_MAX, count, decode,
};
pub use error::OtelError;
pub use parent::{Parent, ParentObject};
pub use phoenix::PHOENIX_PROJECT;
pub use slug::{ObjectType, SLUG_BYTES_MAX, Slug, SlugObject, SpanIds};

use span::Around;

/// Upper bound of the bytes of resource attributes that all rows of an export repeat.
const COPIED_BYTES_MAX: usize = 64 << 20;

/// Span as a row, without the ids of its object, which belong to its parent.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// Position of the span in the export.
    pub index: usize,
    /// Parent of the span, or else of the request. Spans with the same parent share it.
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
    /// Converts all spans to rows. `request` is the parent that the request names.
    pub fn rows(self, request: Option<Parent>) -> Rows {
        let Export { request: export, limits } = self;
        let mut parents = Parents { request: request.map(Arc::new), named: HashMap::new() };
        let (mut rows, mut index, mut copied) = (Rows::default(), 0, 0_usize);
        for resource in export.resource_spans {
            let attributes = resource.resource.unwrap_or_default().attributes;
            let spans: usize = resource.scope_spans.iter().map(|scope| scope.spans.len()).sum();
            let mut around = Around::of_resource(attributes, &limits).and_then(|around| {
                copied = around.repeated_bytes().saturating_mul(spans).saturating_add(copied);
                let said = || format!("{spans} spans would repeat the attributes of their resource, which is too much");
                if copied > COPIED_BYTES_MAX { Err(said()) } else { Ok(around) }
            });
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

/// Parents that spans name, each parsed once.
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
