//! Metadata of a file, decoded from its row.

use std::collections::BTreeMap;

use assay_storage_model::{ObjectKey, ObjectKind, OrgId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::FilesError;
use crate::name::FileName;

/// Metadata of a file. Members are merged independently, so each may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct File {
    pub filename: Option<String>,
    pub content_type: Option<String>,
    /// User who started the first upload.
    pub owner: Option<Uuid>,
    /// Seconds since the epoch.
    pub begun: u64,
    /// The upload that counts.
    pub content: Option<Content>,
    /// Status from the client or the end of an upload.
    pub(crate) upload: Status,
    /// All uploads, with the second in which each began.
    pub(crate) uploads: BTreeMap<Uuid, u64>,
    pub(crate) refs: BTreeMap<String, bool>,
    /// Whether the file is being removed, and is not visible.
    pub(crate) going: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    status: Option<String>,
    error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    pub upload: Uuid,
    pub bytes: u64,
    pub chunks: u64,
    pub chunk_bytes: u64,
    /// BLAKE3 of all bytes.
    pub hash: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upload {
    pub id: Uuid,
    pub begun: u64,
}

impl File {
    /// Returns the status, which is `done` if the content is here.
    pub fn status(&self) -> &str {
        match (&self.content, self.upload.status.as_deref()) {
            (Some(_), _) => "done",
            (None, Some("error")) => "error",
            (None, _) => "uploading",
        }
    }

    pub fn error(&self) -> Option<&str> {
        self.upload.error.as_deref().filter(|_| self.status() == "error")
    }

    /// Returns the objects with present or past references.
    pub fn refs(&self, org: OrgId) -> impl Iterator<Item = ObjectKey> {
        self.refs.keys().filter_map(move |reference| {
            let (kind, id) = reference.split_once(':')?;
            let kind = ObjectKind::ALL.into_iter().find(|known| known.name() == kind)?;
            Some(ObjectKey::new(org, kind, Uuid::parse_str(id).ok()?))
        })
    }
}

pub(crate) fn reference(object: &ObjectKey) -> String {
    format!("{}:{}", object.kind.name(), object.id)
}

/// Returns the object of an upload. Each has its own, so that readers of a replaced upload are not disturbed.
pub(crate) fn content_object(name: &FileName, upload: Uuid) -> ObjectKey {
    let of_name = name.content();
    let mut hasher = blake3::Hasher::new_derive_key("assay upload 1");
    hasher.update(of_name.id.as_bytes()).update(upload.as_bytes());
    let mut id = [0; 16];
    hasher.finalize_xof().fill(&mut id);
    ObjectKey::new(name.org, ObjectKind::Files, Uuid::from_bytes(id))
}

#[derive(Deserialize)]
struct Row {
    id: String,
    #[serde(default)]
    metadata: Option<File>,
}

pub(crate) fn read(org: OrgId, row: &[u8]) -> Result<(FileName, File), FilesError> {
    let row: Row = serde_json::from_slice(row).map_err(|why| FilesError::Damaged(why.to_string()))?;
    let name = FileName::of_row(org, &row.id);
    let name = name.ok_or_else(|| FilesError::Damaged(format!("`{}` is not a file name", row.id)))?;
    Ok((name, row.metadata.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ORG: OrgId = OrgId(Uuid::from_u128(1));

    fn file(metadata: serde_json::Value) -> File {
        let row = json!({"id": "attachment:k", "_xact_id": "1", "metadata": metadata}).to_string();
        read(ORG, row.as_bytes()).expect("reads").1
    }

    #[test]
    fn a_file_is_done_when_its_bytes_are_here() {
        assert_eq!(file(json!(null)).status(), "uploading");
        assert_eq!(file(json!({"upload": {"status": "done"}})).status(), "uploading");
        let failed = file(json!({"upload": {"status": "error", "error": "no network"}}));
        assert_eq!((failed.status(), failed.error()), ("error", Some("no network")));
        let content = json!({"upload": Uuid::from_u128(2), "bytes": 1, "chunks": 1, "chunk_bytes": 2, "hash": "h"});
        let done = file(json!({"upload": {"status": "error", "error": "x"}, "content": content}));
        assert_eq!((done.status(), done.error()), ("done", None));
    }

    #[test]
    fn who_names_a_file_is_read_back() {
        let object = ObjectKey::new(ORG, ObjectKind::Experiment, Uuid::from_u128(3));
        let named = file(json!({"refs": {reference(&object): true, "odd": true, "experiment:x": true}}));
        assert_eq!(named.refs(ORG).collect::<Vec<_>>(), [object]);
    }
}
