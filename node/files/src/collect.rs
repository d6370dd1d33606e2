//! Removal of files: uploads that never counted or no longer count, and files that nothing names.
//!
//! A file that goes is marked first, and no longer answered; then its bytes go, then its row. A crash between leaves the row, which
//! says what is still to be done; whoever says something of the file meanwhile takes the mark away.

use assay_node_objects::{FetchRequest, ReadError};
use assay_storage_model::event::SentItem;
use assay_storage_model::{ObjectKey, OrgId};
use futures::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;

use crate::name::{FileName, Purpose};
use crate::said::{self, File, content_object};
use crate::{Files, FilesError, index};

/// Ages after which parts of files are removed, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ages {
    /// An attachment that no row names by then is taken for one that none will: rows come before their attachments, or soon after.
    pub unnamed: u64,
    /// Age at which uploaded rows are removed. They are used at once, or by a retry soon after.
    pub overflow: u64,
    /// Age at which unfinished and replaced uploads are removed.
    pub upload: u64,
}

impl Default for Ages {
    fn default() -> Ages {
        Ages { unnamed: 24 * 3600, overflow: 3600, upload: 3600 }
    }
}

/// Files that are read at a time.
const FILES_AT_ONCE: u64 = 1000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub files: u64,
    pub uploads: u64,
}

/// Parts of one file that are due to be removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Due {
    uploads: Vec<Uuid>,
    whole: bool,
}

/// Returns the parts to remove. `is_named` is whether an object with references to the file exists.
fn due(file: &File, purpose: Purpose, is_named: bool, ages: Ages, now: u64) -> Due {
    let since = |then: u64| now.saturating_sub(then);
    let current = file.content.as_ref().map(|content| content.upload);
    let last = file.uploads.values().copied().max().unwrap_or_default().max(file.begun);
    let whole = match purpose {
        Purpose::Attachment => !is_named && since(last) > ages.unnamed,
        Purpose::Overflow => since(last) > ages.overflow,
        // Which functions name them is said nowhere yet.
        Purpose::Bundle => false,
    };
    let is_due = |id: &Uuid, begun: u64| whole || (Some(*id) != current && since(begun) > ages.upload);
    let uploads = file.uploads.iter().filter(|(id, begun)| is_due(id, **begun)).map(|(id, _)| *id).collect();
    Due { uploads, whole }
}

/// Objects with the content of some files of an organization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentPage {
    pub objects: Vec<ObjectKey>,
    /// Cursor of the next page, if there is one.
    pub cursor: Option<String>,
}

impl Files {
    /// Returns the objects with the content of files that are complete and stay, a page at a time.
    ///
    /// Uploads of rows are not among them, because their rows have been written.
    pub async fn contents(&self, org: OrgId, cursor: Option<String>) -> Result<ContentPage, FilesError> {
        let limit = cursor.is_none().then_some(FILES_AT_ONCE);
        let request = FetchRequest { limit, cursor, ..FetchRequest::default() };
        let page = match self.objects.fetch(&index(org), request).await {
            Err(ReadError::Gone { .. }) => return Ok(ContentPage::default()),
            page => page?,
        };
        let files: Vec<(FileName, File)> =
            page.events.iter().map(|row| said::read(org, row)).collect::<Result<_, _>>()?;
        let lasting = files.iter().filter(|(name, file)| name.purpose != Purpose::Overflow && !file.going);
        let content = |(name, file): &(FileName, File)| Some(content_object(name, file.content.as_ref()?.upload));
        Ok(ContentPage { objects: lasting.filter_map(content).collect(), cursor: page.cursor })
    }

    /// Removes expired parts. An object that is `there` may have rows with references.
    pub async fn collect(
        &self,
        org: OrgId,
        ages: Ages,
        now: u64,
        there: &(dyn Fn(ObjectKey) -> BoxFuture<'static, bool> + Send + Sync),
    ) -> Result<Collected, FilesError> {
        let mut collected = Collected::default();
        let mut request = FetchRequest { limit: Some(FILES_AT_ONCE), ..FetchRequest::default() };
        loop {
            let page = match self.objects.fetch(&index(org), request).await {
                Err(ReadError::Gone { .. }) => return Ok(collected),
                page => page?,
            };
            for row in &page.events {
                let (name, file) = said::read(org, row)?;
                let mut is_named = false;
                for object in file.refs(org) {
                    is_named = is_named || there(object).await;
                }
                let due = due(&file, name.purpose, is_named, ages, now);
                let file = match self.mark(&name, file, due.whole).await? {
                    Some(file) => file,
                    None => continue,
                };
                for upload in &due.uploads {
                    self.objects.drop_object(content_object(&name, *upload)).await?;
                    collected.uploads += 1;
                }
                if due.whole {
                    self.forget(&name, &file).await?;
                    collected.files += 1;
                } else if !due.uploads.is_empty() {
                    self.forget_uploads(&name, &file, &due.uploads).await?;
                }
            }
            match page.cursor {
                Some(cursor) => request = FetchRequest { cursor: Some(cursor), ..FetchRequest::default() },
                None => return Ok(collected),
            }
        }
    }

    /// Marks a file as going, so that it is not served before its bytes are gone. None if it changed meanwhile.
    async fn mark(&self, name: &FileName, seen: File, going: bool) -> Result<Option<File>, FilesError> {
        if seen.going == going {
            return Ok(Some(seen));
        }
        self.say(name, json!({"going": going})).await?;
        let marked = File { going, ..seen };
        if self.kept(name).await?.as_ref() == Some(&marked) {
            return Ok(Some(marked));
        }
        if going {
            self.say(name, json!({"going": false})).await?;
        }
        Ok(None)
    }

    /// Deletes the row of a file, unless it changed meanwhile.
    async fn forget(&self, name: &FileName, seen: &File) -> Result<(), FilesError> {
        if self.kept(name).await?.as_ref() == Some(seen) {
            let row = json!({"id": name.row_id(), "_object_delete": true});
            self.write(FileName::index(name.org), vec![SentItem::from(row)]).await?;
        }
        Ok(())
    }

    async fn forget_uploads(&self, name: &FileName, seen: &File, gone: &[Uuid]) -> Result<(), FilesError> {
        let left = seen.uploads.iter().filter(|(id, _)| !gone.contains(id));
        let left: serde_json::Map<_, _> = left.map(|(id, begun)| (id.simple().to_string(), (*begun).into())).collect();
        if self.kept(name).await?.as_ref() == Some(seen) {
            let row = json!({
                "id": name.row_id(), "_is_merge": true, "_merge_paths": [["metadata", "uploads"]],
                "metadata": {"uploads": left},
            });
            self.write(FileName::index(name.org), vec![SentItem::from(row)]).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::said::Content;

    const DAY: u64 = 24 * 3600;

    fn file(current: u128, uploads: &[(u128, u64)]) -> File {
        let content =
            |id| Content { upload: Uuid::from_u128(id), bytes: 1, chunks: 1, chunk_bytes: 1, hash: String::new() };
        File {
            begun: 10,
            content: (current > 0).then(|| content(current)),
            uploads: uploads.iter().map(|(id, begun)| (Uuid::from_u128(*id), *begun)).collect(),
            ..File::default()
        }
    }

    #[test]
    fn an_attachment_goes_a_day_after_its_last_upload_unless_it_is_named() {
        let one = file(1, &[(1, 20)]);
        assert_eq!(due(&one, Purpose::Attachment, false, Ages::default(), 20 + DAY), Due::default());
        let all = Due { uploads: vec![Uuid::from_u128(1)], whole: true };
        assert_eq!(due(&one, Purpose::Attachment, false, Ages::default(), 21 + DAY), all);
        assert_eq!(due(&one, Purpose::Attachment, true, Ages::default(), 100 * DAY), Due::default());
        assert_eq!(due(&one, Purpose::Bundle, false, Ages::default(), 100 * DAY), Due::default());
        assert_eq!(due(&one, Purpose::Overflow, false, Ages::default(), 21 + 3600), all);
    }

    #[test]
    fn an_upload_that_does_not_count_goes_after_an_hour() {
        let one = file(2, &[(1, 20), (2, 30), (3, 3000)]);
        assert_eq!(due(&one, Purpose::Attachment, true, Ages::default(), 3620), Due::default());
        let first = Due { uploads: vec![Uuid::from_u128(1)], whole: false };
        assert_eq!(due(&one, Purpose::Attachment, true, Ages::default(), 3650), first);
        let never = file(0, &[(1, 20)]);
        assert_eq!(due(&never, Purpose::Attachment, true, Ages::default(), 4000), first);
    }
}
