//! Items of responses to which clients of the Responses API refer in later requests (G-31).
//!
//! Unless `store` is false, clients such as the AI SDK send the id of an earlier item instead of the item. Servers of
//! that API store the items. For responses of other servers, the response cache keeps them.

use std::collections::{BTreeMap, HashMap};

use assay_node_dialects::form::ModelResponse;
use assay_node_dialects_responses as responses;
use assay_node_response_cache::{CacheKey, CacheableResponse, CachedResponse, MaxAge, ResponseCache};
use assay_storage_model::OrgId;
use bytes::Bytes;
use futures::future::join_all;
use serde_json::Value;

use crate::call::{CallOwner, ModelCall};
use crate::endpoint::ClientEndpoint;
use crate::gateway::now_ms;

/// Upper bound of the kept items of one response.
const ITEMS_MAX: usize = 128;
/// Upper bound of the distinct references in one request. A request with more is sent unmodified.
const REFERENCES_MAX: usize = 512;
/// Upper bound of the bytes of restored items in one request. Items beyond it remain references.
const RESTORED_BYTES_MAX: usize = 16 << 20;
/// Time for which an item is kept.
const LIFE_S: u32 = 24 * 3600;

/// Number of bytes of items that may still be restored in a request.
#[derive(Debug)]
struct RestoreBudget(usize);

impl RestoreBudget {
    /// Returns whether an item fits, and counts its bytes once for each reference.
    fn takes(&mut self, bytes: usize, times: usize) -> bool {
        let left = bytes.checked_mul(times).and_then(|bytes| self.0.checked_sub(bytes));
        if let Some(left) = left {
            self.0 = left;
        }
        left.is_some()
    }
}

/// Returns whether the client may refer to items of the response later.
pub(crate) fn may_be_named(call: &ModelCall) -> bool {
    call.endpoint == ClientEndpoint::Responses && call.body.json()["store"] != false
}

/// Replaces references in a request by kept items. Items that are not kept remain references.
pub(crate) async fn restore(cache: &ResponseCache, call: &mut ModelCall) {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for name in input(call.body.json()).iter().filter_map(named) {
        *names.entry(name).or_default() += 1;
    }
    if names.is_empty() || names.len() > REFERENCES_MAX {
        return;
    }
    let (mut kept, mut budget) = (HashMap::new(), RestoreBudget(RESTORED_BYTES_MAX));
    for (name, times) in names {
        let Some(entry) = cache.get(&key(&call.owner, name), MaxAge::Any).await else { continue };
        if !budget.takes(entry.body.len(), times) {
            break;
        }
        if let Ok(item) = serde_json::from_slice::<Value>(&entry.body) {
            kept.insert(name.to_owned(), item);
        }
    }
    if kept.is_empty() {
        return;
    }
    let mut body = call.body.json().clone();
    for item in body["input"].as_array_mut().into_iter().flatten() {
        if let Some(whole) = named(item).and_then(|name| kept.get(name)) {
            *item = whole.clone();
        }
    }
    // A JSON body accepts every JSON value.
    drop(call.body.set_texts(body));
}

/// Stores the items of a response. Failures are ignored.
pub(crate) async fn keep(cache: ResponseCache, owner: CallOwner, response: Box<ModelResponse>) {
    let written = responses::write_response(&response);
    let items = written["output"].as_array().map(Vec::as_slice).unwrap_or_default();
    let puts = items.iter().take(ITEMS_MAX).filter_map(|item| {
        let key = key(&owner, item["id"].as_str()?);
        let entry = CacheableResponse {
            status: 200,
            content_type: "application/json".to_owned(),
            is_stream: false,
            body: Bytes::from(item.to_string()),
            note: Value::Null,
        };
        let entry = CachedResponse::new(entry, now_ms(), LIFE_S);
        let cache = &cache;
        Some(async move { cache.put(&key, entry).await })
    });
    join_all(puts).await;
}

fn key(owner: &CallOwner, item: &str) -> CacheKey {
    CacheKey::of_item(OrgId(owner.organization), owner.principal, item)
}

fn input(body: &Value) -> &[Value] {
    body["input"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the id of a reference, or `None` for a whole item.
fn named(item: &Value) -> Option<&str> {
    (item["type"] == "item_reference").then(|| item["id"].as_str()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_counts_as_often_as_it_is_named() {
        let mut budget = RestoreBudget(10);
        assert!(!budget.takes(4, 3), "12 bytes");
        assert!(budget.takes(4, 2), "8 bytes: what did not fit is not counted");
        assert!(!budget.takes(3, 1));
        assert!(budget.takes(2, 1) && budget.takes(0, 9));
        assert!(!budget.takes(usize::MAX, 2));
    }
}
