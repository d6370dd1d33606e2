//! Writer of one segment: rows in order, then its sidecars. The segment is durable before its description is returned.
//!
//! Files grow under a temporary name. `finish` syncs them, renames them and syncs the directory. An earlier failure
//! leaves nothing under a segment's name. An earlier crash leaves only files that no manifest lists.

use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use assay_storage_disk::SharedDisk;
use assay_storage_model::segment::{FileKind, FileMeta, SegmentMeta};
use assay_storage_model::{PaginationKey, Xact};
use parquet::errors::ParquetError;

use crate::blocks::SumWriter;
use crate::columnar::Typed;
use crate::columns::{Pending, View};
use crate::error::SegmentError;
use crate::files::{path_of, remove_if_there, unfinished};
use crate::groups::RowGroups;
use crate::index::builder::IndexBuilder;
use crate::index::page::PAGE_BYTES;
use crate::marks;
use crate::row::{Mark, VersionRow};
use crate::sidecar::{self, RowsFile};
use crate::sources::DocSource;
use crate::words::WordsWriter;

/// Size of the block of the rows' file that one checksum covers.
pub(crate) const ROWS_BLOCK_BYTES: usize = 32 << 10;
/// Upper bound of the rows in one batch, written or read.
pub(crate) const BATCH_ROWS_MAX: usize = 1024;
/// Size of one batch in bytes, exceeded by at most one row.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// Compression of document pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// LZ4. The CPU cost of one compression is less than the cost of larger writes and reads, because merges copy
    /// pages.
    #[default]
    Lz4,
    Plain,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterOptions {
    /// Tier: 0 for a seal, and one more than the highest input's tier for a merge.
    pub tier: u8,
    /// Compression of whole documents.
    pub codec: Codec,
    /// Whether a merge writes documents as columns.
    pub columnar: bool,
}

/// Segment that is being written.
#[derive(Debug)]
pub struct SegmentWriter {
    disk: SharedDisk,
    dir: PathBuf,
    seq: u64,
    options: WriterOptions,
    rows: RowGroups,
    /// Words of a columnar segment.
    words: Option<WordsWriter>,
    pending: Pending,
    index: IndexBuilder,
    raw_bytes: u64,
    /// Files of rows and ids, once they are written.
    closed: Vec<FileMeta>,
    /// Whether a write failed, so that the files on disk are incomplete.
    broken: bool,
    /// Paths to be removed unless `finish` succeeds.
    debris: Vec<PathBuf>,
}

impl SegmentWriter {
    /// Creates the files of a segment. Fails if a segment with this number exists.
    pub fn create(
        disk: SharedDisk,
        dir: &Path,
        seq: u64,
        options: WriterOptions,
    ) -> Result<SegmentWriter, SegmentError> {
        SegmentWriter::with(disk, dir, seq, options, |file| RowGroups::whole(file, options))
    }

    /// Creates a segment whose documents are columns, with additional typed columns for these paths.
    pub fn columnar(
        disk: SharedDisk,
        dir: &Path,
        seq: u64,
        options: WriterOptions,
        typed: Vec<Typed>,
    ) -> Result<SegmentWriter, SegmentError> {
        let mut writer = SegmentWriter::with(disk, dir, seq, options, |file| RowGroups::columnar(file, typed))?;
        writer.words = Some(WordsWriter::new(writer.create_sidecar(FileKind::Words)?));
        Ok(writer)
    }

    fn with(
        disk: SharedDisk,
        dir: &Path,
        seq: u64,
        options: WriterOptions,
        rows: impl FnOnce(SumWriter) -> Result<RowGroups, ParquetError>,
    ) -> Result<SegmentWriter, SegmentError> {
        for kind in FileKind::ALL {
            let path = path_of(dir, seq, kind);
            if disk.exists(&path).map_err(SegmentError::io(&path))? {
                let source = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
                return Err(SegmentError::Io { file: path, source });
            }
        }
        let path = path_of(dir, seq, FileKind::Rows);
        let file = create(&disk, &path, ROWS_BLOCK_BYTES)?;
        let debris = vec![unfinished(&path)];
        let rows = rows(file).map_err(|error| SegmentError::Encode { seq, what: error.to_string() })?;
        Ok(SegmentWriter {
            disk,
            dir: dir.to_owned(),
            seq,
            options,
            index: IndexBuilder::new(seq, rows.format()),
            rows,
            words: None,
            pending: Pending::new(),
            raw_bytes: 0,
            closed: Vec::new(),
            broken: false,
            debris,
        })
    }

    /// Returns the number of rows pushed so far, which is the number of the next row.
    pub fn rows(&self) -> u32 {
        self.index.rows()
    }

    /// Adds a row and returns its number.
    ///
    /// Objects ascend; pagination keys and then transaction ids descend within an object.
    pub fn push(&mut self, row: &VersionRow<'_>) -> Result<u32, SegmentError> {
        let number = self.index.rows();
        Pending::check(row)?;
        self.index.push(&row.header(), row.root_span_id)?;
        self.rows.push_document(row.doc);
        self.pending.push(row);
        self.raw_bytes += row.raw_bytes();
        if self.pending.rows() >= BATCH_ROWS_MAX || self.pending.bytes() >= BATCH_BYTES {
            self.write_pending()?;
        }
        Ok(number)
    }

    /// Copies the documents of the next rows from another segment and returns their size. `push_batch` adds the rows.
    pub(crate) fn copy_documents(&mut self, from: &mut DocSource, rows: Range<u32>) -> Result<u64, SegmentError> {
        let copied = self.rows.copy_documents(from, rows);
        self.broken |= copied.is_err();
        copied
    }

    /// Adds rows as arrays of all columns except documents, whose total size is `doc_bytes`.
    pub(crate) fn push_batch(&mut self, batch: &RecordBatch, doc_bytes: u64) -> Result<(), SegmentError> {
        debug_assert_eq!(self.pending.rows(), 0, "rows are pushed one by one or in batches");
        let indexed = self.index_batch(batch);
        self.broken |= indexed.is_err();
        let bytes = doc_bytes + indexed?;
        self.raw_bytes += bytes;
        self.rows.write(batch.columns(), bytes).map_err(|error| self.explain(error))?;
        self.write_words()
    }

    fn write_words(&mut self) -> Result<(), SegmentError> {
        let Some(words) = &mut self.words else { return Ok(()) };
        for group in self.rows.take_words() {
            let written = words.put(&group);
            self.broken |= written.is_err();
            written?;
        }
        Ok(())
    }

    /// Indexes a batch and returns the size of its patches, rules and audit notes.
    fn index_batch(&mut self, batch: &RecordBatch) -> Result<u64, SegmentError> {
        let path = self.rows.file().path();
        let view = View::new(batch, None, path)?;
        let mut bytes = 0;
        for index in 0..batch.num_rows() {
            self.index.push(&view.header(index, path)?, view.root_span_id.value(index))?;
            bytes += view.raw_bytes(index);
        }
        Ok(bytes)
    }

    fn write_pending(&mut self) -> Result<(), SegmentError> {
        if self.pending.rows() == 0 {
            return Ok(());
        }
        let bytes = self.pending.bytes() as u64;
        let arrays = self.pending.take();
        self.rows.write(&arrays, bytes).map_err(|error| self.explain(error))?;
        self.write_words()
    }

    fn explain(&mut self, error: ParquetError) -> SegmentError {
        self.broken = true;
        let what = error.to_string();
        match self.rows.file_mut().failure() {
            Some(failure) => failure,
            None => SegmentError::Encode { seq: self.seq, what },
        }
    }

    /// Writes all content that does not depend on the marks, synced but not renamed. No row may follow.
    pub(crate) fn close_rows(&mut self) -> Result<(), SegmentError> {
        if !self.closed.is_empty() {
            return Ok(());
        }
        self.write_pending()?;
        if self.broken {
            return Err(SegmentError::Encode { seq: self.seq, what: "an earlier write failed".to_owned() });
        }
        self.rows.finish().map_err(|error| self.explain(error))?;
        self.write_words()?;
        let format = self.rows.format();
        let file = self.rows.file_mut();
        file.sync()?;
        let rows_file =
            RowsFile { format, length: file.length(), block_bytes: ROWS_BLOCK_BYTES as u32, sums: file.sums() };
        let mut ids = self.create_sidecar(FileKind::Ids)?;
        let ids_meta = sidecar::write(&mut ids, self.seq, &mut self.index, &rows_file)?;
        ids.sync()?;
        self.closed = vec![rows_file.meta(), ids_meta];
        if let Some(words) = self.words.take() {
            self.closed.push(words.finish()?);
        }
        Ok(())
    }

    /// Makes all files durable under their names. `marks` are the rows of older segments that this segment's rows
    /// superseded.
    pub fn finish(mut self, marks: &[Mark]) -> Result<SegmentMeta, SegmentError> {
        self.close_rows()?;
        let mut files = std::mem::take(&mut self.closed);
        if !marks.is_empty() {
            let (bytes, meta) = marks::encode(marks)?;
            let mut file = self.create_sidecar(FileKind::Marks)?;
            file.put(&bytes)?;
            file.sync()?;
            files.push(meta);
        }
        for meta in &files {
            let path = path_of(&self.dir, self.seq, meta.kind);
            self.debris.push(path.clone());
            self.disk.rename(&unfinished(&path), &path).map_err(SegmentError::io(&path))?;
        }
        self.disk.sync_dir(&self.dir).map_err(SegmentError::io(&self.dir))?;
        self.debris.clear();
        Ok(self.describe(files))
    }

    fn create_sidecar(&mut self, kind: FileKind) -> Result<SumWriter, SegmentError> {
        let path = path_of(&self.dir, self.seq, kind);
        let file = create(&self.disk, &path, PAGE_BYTES)?;
        self.debris.push(unfinished(&path));
        Ok(file)
    }

    fn describe(&self, files: Vec<FileMeta>) -> SegmentMeta {
        let index = &self.index;
        let object = |entry: Option<&(_, u32)>| entry.map_or(SegmentMeta::NO_OBJECT, |(object, _)| *object);
        let (xact_min, xact_max) = index.xacts().unwrap_or((Xact::ZERO, Xact::ZERO));
        SegmentMeta {
            seq: self.seq,
            format: self.rows.format(),
            tier: self.options.tier,
            rows: index.rows(),
            raw_bytes: self.raw_bytes,
            first_object: object(index.objects.first()),
            last_object: object(index.objects.last()),
            key_min: PaginationKey(index.keys.iter().copied().min().unwrap_or(0)),
            key_max: PaginationKey(index.keys.iter().copied().max().unwrap_or(0)),
            xact_min,
            xact_max,
            files,
        }
    }
}

impl Drop for SegmentWriter {
    fn drop(&mut self) {
        for path in &self.debris {
            // The next start sweeps remaining files.
            if let Err(error) = remove_if_there(&*self.disk, path) {
                tracing::warn!(%error, "an unfinished file of a segment stays until the next start");
            }
        }
    }
}

/// Creates a file under its temporary name, after removing one that a crash left there.
fn create(disk: &SharedDisk, path: &Path, block_bytes: usize) -> Result<SumWriter, SegmentError> {
    let temporary = unfinished(path);
    remove_if_there(&**disk, &temporary)?;
    let file = disk.create_bulk(&temporary).map_err(SegmentError::io(&temporary))?;
    Ok(SumWriter::new(file, &temporary, block_bytes))
}
