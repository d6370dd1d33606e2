//! Attachments of spans, which hold the media of logged calls.

use std::collections::HashMap;

use assay_node_gateway::span_media::{LoggedMedia, data_urls, replace_data_urls};
use assay_node_http::requests::caller::Caller;
use serde_json::{Map, Value};

use assay_node_rows_http::files::store;

/// Stores the media of a row as attachments of the caller, and replaces them with references.
///
/// Media that cannot be stored remain in the row.
pub async fn store_media(caller: &Caller, row: &mut Map<String, Value>) {
    let urls: Vec<String> = data_urls(row).into_iter().map(str::to_owned).collect();
    let mut references = HashMap::new();
    for url in urls {
        let Some(media) = LoggedMedia::of_data_url(&url) else { continue };
        match store(caller, (&media.filename, &media.content_type), media.bytes.clone()).await {
            Ok(key) => drop(references.insert(url, media.reference(&key))),
            Err(refusal) => {
                let why = refusal.message;
                tracing::warn!(why, "the media of a span stay in its row: no attachment could be stored");
            }
        }
    }
    replace_data_urls(row, &references);
}
