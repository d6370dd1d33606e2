//! Files of an organization: attachments of rows, code of functions, and bodies of rows that are too large for one
//! request.
//!
//! A file is rows, as everything else that is written: durable on a quorum, checksummed, copied to new replicas and gone from
//! the disk when its object is dropped, with no second way of keeping bytes beside it (node/decisions/0020).
//!
//! | object, of the kind `files` | rows |
//! |---|---|
//! | under the organization's id | one a file, `attachment:<key>`: its names, whose it is, which objects name it, which upload counts |
//! | under an id made of name and upload | `000000`, …: the bytes, 256 KiB each, in base64 |
//!
//! An upload is said, its bytes are written, and then it is said that they count: what a crash leaves is an upload that never
//! counted, which `collect` removes and [`Collector`] looks for. A reader follows the row, so it sees one upload or the other and never half of both.
//!
//! Knows no HTTP, and not who may do what.

mod collect;
mod collector;
mod found;
mod name;
mod said;
mod ticket;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_node_objects::{ObjectWrite, Objects, Patience, ReadError, RowHome, WriteError};
use assay_storage_model::event::SentItem;
use assay_storage_model::{ObjectKey, OrgId};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use futures::stream::{FuturesUnordered, Stream, try_unfold};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use serde_json::{Value, json};
use thiserror::Error;
use uuid::Uuid;

pub use collect::{Ages, Collected, ContentPage};
pub use collector::{Collector, FilesConfig};
pub use found::{NAMED_MAX, keys_in};
pub use name::{FileName, KEY_BYTES_MAX, Purpose};
pub use said::{Content, File, Upload};
pub use ticket::{Deed, Ticket};

/// Bytes of one row. In base64 it fits in an entry of the log.
const CHUNK_BYTES: usize = 256 << 10;
/// Rows of one upload that are on their way at the same time; their fsyncs are shared.
const CHUNKS_AT_ONCE: usize = 4;
/// Rows that are read at a time.
const CHUNKS_READ_AT_ONCE: u64 = 8;
/// Digits of a row's number, so that rows are sorted.
const DIGITS: usize = 6;
/// Time during which a repeated reference is not written again, and the upper bound of cached ones.
const REFERRED_FOR: Duration = Duration::from_secs(600);
const REFERRED_MAX: usize = 100_000;

#[derive(Clone, Debug, Error)]
pub enum FilesError {
    /// 400; the sentence says what would be right.
    #[error("{0}")]
    BadRequest(String),
    /// 413.
    #[error("{0}")]
    TooLarge(String),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Another upload took its place while it was read, or it went.
    #[error("the file was replaced or removed while it was read")]
    Changed,
    #[error("the stored metadata of a file cannot be decoded: {0}")]
    Damaged(String),
}

/// A handle; clones share everything.
#[derive(Clone, Debug)]
pub struct Files {
    objects: Objects,
    referred: Arc<Mutex<HashMap<(ObjectKey, String), Instant>>>,
}

/// Metadata of a file before its upload.
#[derive(Clone, Debug)]
pub struct About<'a> {
    pub filename: &'a str,
    pub content_type: &'a str,
    pub user: Uuid,
    /// Seconds since the epoch.
    pub now: u64,
}

impl Files {
    /// Creates the service. `objects` act for the program: callers check the rights.
    pub fn new(objects: Objects) -> Files {
        Files { objects, referred: Arc::default() }
    }

    /// Returns the metadata of a file. A file may be referenced before its upload.
    pub async fn look(&self, name: &FileName) -> Result<Option<File>, FilesError> {
        Ok(self.look_all(name.org, std::slice::from_ref(name)).await?.into_iter().next().map(|(_, file)| file))
    }

    /// Returns the metadata of the files that exist.
    pub async fn look_all(&self, org: OrgId, names: &[FileName]) -> Result<Vec<(FileName, File)>, FilesError> {
        let mut files = self.kept_all(org, names).await?;
        files.retain(|(_, file)| !file.going);
        Ok(files)
    }

    async fn kept_all(&self, org: OrgId, names: &[FileName]) -> Result<Vec<(FileName, File)>, FilesError> {
        let ids = names.iter().map(FileName::row_id).collect();
        let rows = self.objects.rows(&index(org), ids, None).await?;
        rows.iter().map(|row| said::read(org, row)).collect()
    }

    /// Returns the metadata of a file, also during its removal.
    async fn kept(&self, name: &FileName) -> Result<Option<File>, FilesError> {
        Ok(self.kept_all(name.org, std::slice::from_ref(name)).await?.into_iter().next().map(|(_, file)| file))
    }

    pub async fn begin(&self, name: &FileName, about: &About<'_>) -> Result<(), FilesError> {
        let said = json!({
            "filename": about.filename, "content_type": about.content_type, "owner": about.user, "begun": about.now,
            "going": false,
        });
        self.say(name, said).await
    }

    /// Stores the upload status from the client. Completion is decided by the bytes.
    pub async fn note(&self, name: &FileName, status: &str, error: Option<&str>) -> Result<(), FilesError> {
        self.say(name, json!({"upload": {"status": status, "error": error}})).await
    }

    /// Stores references of objects to files.
    pub async fn refer(&self, org: OrgId, object: &ObjectKey, names: &[FileName]) -> Result<(), FilesError> {
        let reference = said::reference(object);
        let rows = names.iter().map(|name| row(name, &json!({"refs": {&reference: true}, "going": false}))).collect();
        self.write(FileName::index(org), rows).await?;
        let mut referred = self.referred.lock();
        if referred.len() + names.len() > REFERRED_MAX {
            referred.clear();
        }
        let now = Instant::now();
        referred.extend(names.iter().map(|name| ((*object, name.row_id()), now)));
        Ok(())
    }

    /// Returns whether this node has stored the reference recently.
    pub fn is_referred(&self, object: &ObjectKey, name: &FileName) -> bool {
        let referred = self.referred.lock();
        referred.get(&(*object, name.row_id())).is_some_and(|since| since.elapsed() < REFERRED_FOR)
    }

    /// Stores the content, which is durable and visible on return. An error of the source or too many bytes leave the
    /// previous content.
    pub async fn put<E: From<FilesError>>(
        &self,
        name: &FileName,
        bytes_max: u64,
        now: u64,
        mut source: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<Content, E> {
        let upload = Upload { id: Uuid::new_v4(), begun: now };
        self.say(name, json!({"uploads": {upload.id.simple().to_string(): now}, "going": false})).await?;
        let object = said::content_object(name, upload.id);
        let (mut filling, mut hasher) = (BytesMut::with_capacity(CHUNK_BYTES), blake3::Hasher::new());
        let (mut bytes, mut chunks, mut writing) = (0_u64, 0_u64, FuturesUnordered::new());
        loop {
            let more = source.next().await.transpose()?;
            let is_last = more.is_none();
            let mut more = more.unwrap_or_default();
            bytes += more.len() as u64;
            if bytes > bytes_max {
                return Err(FilesError::TooLarge(format!("the file has more than {bytes_max} bytes")).into());
            }
            hasher.update(&more);
            while !more.is_empty() || (is_last && !filling.is_empty()) {
                let part = more.split_to(more.len().min(CHUNK_BYTES - filling.len()));
                filling.extend_from_slice(&part);
                if filling.len() == CHUNK_BYTES || (is_last && more.is_empty()) {
                    let chunk = std::mem::replace(&mut filling, BytesMut::with_capacity(CHUNK_BYTES)).freeze();
                    writing.push(self.write_chunk(object, chunks, chunk));
                    chunks += 1;
                }
                if writing.len() >= CHUNKS_AT_ONCE {
                    writing.try_next().await?;
                }
            }
            if is_last {
                break;
            }
        }
        while writing.try_next().await?.is_some() {}
        let hash = hasher.finalize().to_hex().to_string();
        let content = Content { upload: upload.id, bytes, chunks, chunk_bytes: CHUNK_BYTES as u64, hash };
        let said = json!({"content": content, "upload": {"status": "done", "error": null}, "going": false});
        self.say(name, said).await?;
        Ok(content)
    }

    /// The bytes of a part of it, piece by piece.
    pub fn read(
        &self,
        name: FileName,
        content: Content,
        range: Range<u64>,
    ) -> impl Stream<Item = Result<Bytes, FilesError>> + use<> {
        let objects = self.objects.clone();
        let home = RowHome { object: said::content_object(&name, content.upload), ..index(name.org) };
        try_unfold(range.start.min(content.bytes), move |at| {
            let (objects, range, content) = (objects.clone(), range.clone(), content.clone());
            async move {
                let end = range.end.min(content.bytes);
                if at >= end {
                    return Ok(None);
                }
                let first = at / content.chunk_bytes;
                let last = (first + CHUNKS_READ_AT_ONCE).min(end.div_ceil(content.chunk_bytes));
                let ids: Vec<String> = (first..last).map(chunk_id).collect();
                let rows = objects.rows(&home, ids, None).await?;
                if rows.len() as u64 != last - first {
                    return Err(FilesError::Changed);
                }
                let mut piece = BytesMut::new();
                for row in &rows {
                    piece.extend_from_slice(&chunk_of(row)?);
                }
                let offset = first * content.chunk_bytes;
                let from = usize::try_from(at - offset).map_err(|_| FilesError::Changed)?;
                let to = usize::try_from(end - offset).map_or(piece.len(), |to| to.min(piece.len()));
                if from >= to {
                    return Err(FilesError::Damaged(format!("{home:?} is shorter than its recorded size")));
                }
                Ok(Some((piece.freeze().slice(from..to), at + (to - from) as u64)))
            }
        })
    }

    /// All of it, where it is at most so large.
    pub async fn read_whole(&self, name: &FileName, content: &Content, bytes_max: usize) -> Result<Bytes, FilesError> {
        let bytes = usize::try_from(content.bytes).ok().filter(|bytes| *bytes <= bytes_max);
        let bytes = bytes.ok_or_else(|| {
            FilesError::TooLarge(format!("the file has {} bytes; the maximum is {bytes_max}", content.bytes))
        })?;
        let mut whole = BytesMut::with_capacity(bytes);
        let mut pieces = std::pin::pin!(self.read(name.clone(), content.clone(), 0..content.bytes));
        while let Some(piece) = pieces.try_next().await? {
            whole.extend_from_slice(&piece);
        }
        if blake3::hash(&whole).to_hex().as_str() != content.hash {
            return Err(FilesError::Damaged(format!(
                "the content of {} differs from what was uploaded",
                name.row_id()
            )));
        }
        Ok(whole.freeze())
    }

    async fn write_chunk(&self, object: ObjectKey, number: u64, chunk: Bytes) -> Result<(), FilesError> {
        let row = json!({"id": chunk_id(number), "bytes": STANDARD.encode(&chunk)});
        self.write(object, vec![SentItem::from(row)]).await
    }

    async fn say(&self, name: &FileName, said: Value) -> Result<(), FilesError> {
        self.write(FileName::index(name.org), vec![row(name, &said)]).await
    }

    async fn write(&self, object: ObjectKey, rows: Vec<SentItem>) -> Result<(), FilesError> {
        self.objects.write(vec![ObjectWrite { object, rows, request: None }], Patience::usual()).await?;
        Ok(())
    }
}

fn index(org: OrgId) -> RowHome {
    RowHome { object: FileName::index(org), org, project_id: org.0 }
}

/// Returns a row that is merged into the metadata.
fn row(name: &FileName, said: &Value) -> SentItem {
    SentItem::from(json!({"id": name.row_id(), "_is_merge": true, "metadata": said}))
}

fn chunk_id(number: u64) -> String {
    format!("{number:0DIGITS$}")
}

fn chunk_of(row: &[u8]) -> Result<Vec<u8>, FilesError> {
    #[derive(serde::Deserialize)]
    struct Chunk<'r> {
        #[serde(borrow)]
        bytes: std::borrow::Cow<'r, str>,
    }
    let chunk: Chunk<'_> = serde_json::from_slice(row).map_err(|why| FilesError::Damaged(why.to_string()))?;
    STANDARD.decode(chunk.bytes.as_bytes()).map_err(|why| FilesError::Damaged(why.to_string()))
}
