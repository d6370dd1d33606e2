//! Open segment: its in-memory part, and all lookups that do not read documents.
//!
//! Memory for each row is about 1.4 bytes of filter, 0.6 of page directories, and 1 of parquet's footer and page index.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_buffer::BooleanBuffer;
use assay_storage_disk::{DiskFile, SharedDisk};
use assay_storage_model::segment::{
    COLUMNAR_FORMAT, FileKind, FileMeta, SEGMENT_FORMAT, SegmentMeta, WIDE_COLUMNAR_FORMAT,
};
use assay_storage_model::{ObjectKey, PaginationKey};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::{PageIndexPolicy, ParquetStatisticsPolicy};

use crate::blocks::{RowsReader, Verified};
use crate::columnar::{SHAPE_KEY, Shape, Typed};
use crate::error::SegmentError;
use crate::files::path_of;
use crate::marks;
use crate::row::{IdHit, Mark, SoughtId};
use crate::sidecar::Sidecar;
use crate::words::WordIndex;

/// Open segment. Its files stay readable while it exists, even after their names are removed.
#[derive(Debug)]
pub struct Segment {
    meta: SegmentMeta,
    disk: SharedDisk,
    dir: PathBuf,
    pub(crate) rows_file: Arc<Verified>,
    pub(crate) footer: ArrowReaderMetadata,
    /// Shape of a columnar segment.
    pub(crate) shape: Option<Arc<Shape>>,
    pub(crate) words: Option<WordIndex>,
    /// First row of each row group, followed by the number of rows.
    pub(crate) group_starts: Vec<u32>,
    pub(crate) sidecar: Sidecar,
}

impl Segment {
    /// Opens the files that `meta` names, and checks everything that is kept in memory for damage.
    pub fn open(disk: SharedDisk, dir: &Path, meta: &SegmentMeta) -> Result<Arc<Segment>, SegmentError> {
        let rows_path = path_of(dir, meta.seq, FileKind::Rows);
        if meta.format > SEGMENT_FORMAT {
            return Err(SegmentError::Newer { file: rows_path, found: meta.format, known: SEGMENT_FORMAT });
        }
        let (ids_path, ids_meta, ids_file) = open_file(&disk, dir, meta, FileKind::Ids)?;
        let (rows_path, rows_meta, rows_file) = open_file(&disk, dir, meta, FileKind::Rows)?;
        let (sidecar, rows) = Sidecar::open(ids_file, &ids_path, meta, &ids_meta, &rows_meta)?;
        let rows_file =
            Arc::new(Verified::new(rows_file, &rows_path, rows.length, u64::from(rows.block_bytes), rows.sums));

        let reader = RowsReader::new(&rows_file);
        let options = ArrowReaderOptions::new()
            .with_offset_index_policy(PageIndexPolicy::Optional)
            .with_column_index_policy(PageIndexPolicy::Skip)
            .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
        let footer = ArrowReaderMetadata::load(&reader, options).map_err(|error| reader.explain(error))?;
        let group_starts = group_starts(&footer, meta.rows)
            .ok_or_else(|| SegmentError::damaged(&rows_path, 0, "its row groups do not add up to its rows"))?;
        let shape = match meta.format {
            WIDE_COLUMNAR_FORMAT | COLUMNAR_FORMAT => {
                Some(Arc::new(shape_of(&footer, meta.rows).ok_or_else(|| {
                    SegmentError::damaged(&rows_path, 0, "the description of its columns is missing or invalid")
                })?))
            }
            _ => None,
        };
        let words = match meta.file(FileKind::Words) {
            Some(_) => {
                let (path, words_meta, file) = open_file(&disk, dir, meta, FileKind::Words)?;
                let rows: Vec<usize> = group_starts.windows(2).map(|ends| (ends[1] - ends[0]) as usize).collect();
                Some(WordIndex::open(file, &path, &words_meta, &rows)?)
            }
            None => None,
        };
        Ok(Arc::new(Segment {
            meta: meta.clone(),
            disk,
            dir: dir.to_owned(),
            rows_file,
            footer,
            shape,
            words,
            group_starts,
            sidecar,
        }))
    }

    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// Returns the paths with typed columns. The result is empty unless the segment is columnar.
    pub fn typed(&self) -> &[Typed] {
        self.shape.as_ref().map_or(&[], |shape| &shape.typed)
    }

    /// Returns the positions of the typed columns in the schema.
    pub fn typed_places(&self) -> Vec<usize> {
        let shape = self.shape.as_ref();
        shape.map_or(Vec::new(), |shape| (0..shape.typed.len()).map(|typed| shape.typed_at(typed)).collect())
    }

    /// Returns the rows of a group that may have all of these words in the indexed fields, or `None` without an index.
    pub fn rows_with_words(&self, group: usize, words: &[&str]) -> Result<Option<BooleanBuffer>, SegmentError> {
        self.words.as_ref().map(|index| index.with_all(group, words)).transpose()
    }

    /// Returns the rows of a group that may have a word for which `is` holds, or `None` without an index.
    pub fn rows_with_a_word(
        &self,
        group: usize,
        is: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Option<BooleanBuffer>, SegmentError> {
        self.words.as_ref().map(|index| index.with_any(group, is)).transpose()
    }

    /// Returns the rows that this segment's seal superseded in older ones, sorted.
    pub fn marks(&self) -> Result<Vec<Mark>, SegmentError> {
        if self.meta.file(FileKind::Marks).is_none() {
            return Ok(Vec::new());
        }
        let (path, meta, file) = open_file(&self.disk, &self.dir, &self.meta, FileKind::Marks)?;
        marks::read(&*file, &path, &meta)
    }

    /// Returns false only if the segment has no version of the id. It reads no file.
    pub fn may_contain(&self, sought: &SoughtId<'_>) -> bool {
        self.sidecar.may_contain(sought)
    }

    /// Returns all versions of the id, newest first.
    pub fn find(&self, sought: &SoughtId<'_>) -> Result<Vec<IdHit>, SegmentError> {
        self.sidecar.find(sought)
    }

    /// Returns the rows of a trace, ascending.
    pub fn trace(&self, object: ObjectKey, root_span_id: &str) -> Result<Vec<u32>, SegmentError> {
        self.sidecar.trace(object, root_span_id)
    }

    /// Returns the objects of the segment, ascending.
    pub fn objects(&self) -> impl Iterator<Item = ObjectKey> {
        self.sidecar.objects().iter().map(|(object, _)| *object)
    }

    pub fn rows_of(&self, object: ObjectKey) -> Range<u32> {
        self.sidecar.rows_of(object)
    }

    /// Returns the first row of the object with a pagination key below `key`, or the end of its rows.
    pub fn first_row_below(&self, object: ObjectKey, key: PaginationKey) -> Result<u32, SegmentError> {
        self.sidecar.first_row_below(object, key)
    }

    /// Returns the memory that this segment holds.
    pub fn memory_bytes(&self) -> usize {
        let groups = self.group_starts.len() * size_of::<u32>();
        let words = self.words.as_ref().map_or(0, WordIndex::memory_bytes);
        words
            + self.sidecar.memory_bytes()
            + self.rows_file.memory_bytes()
            + self.footer.metadata().memory_size()
            + groups
    }
}

/// Opens one file and compares its length with the manifest.
fn open_file(
    disk: &SharedDisk,
    dir: &Path,
    meta: &SegmentMeta,
    kind: FileKind,
) -> Result<(PathBuf, FileMeta, Arc<dyn DiskFile>), SegmentError> {
    let path = path_of(dir, meta.seq, kind);
    let Some(file_meta) = meta.file(kind) else {
        return Err(SegmentError::damaged(&path, 0, "the manifest does not list it"));
    };
    let file = disk.open(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => SegmentError::damaged(&path, 0, "it is missing"),
        _ => SegmentError::Io { file: path.clone(), source },
    })?;
    let length = file.len().map_err(SegmentError::io(&path))?;
    if length != file_meta.length {
        let what = format!("it has {length} bytes, the manifest lists {}", file_meta.length);
        return Err(SegmentError::damaged(&path, length.min(file_meta.length), what));
    }
    Ok((path, *file_meta, file))
}

/// Returns the shape of a file, or `None` if it is missing, invalid or does not fit the columns.
fn shape_of(footer: &ArrowReaderMetadata, rows: u32) -> Option<Shape> {
    let said = footer.metadata().file_metadata().key_value_metadata()?;
    let text = said.iter().find(|said| said.key == SHAPE_KEY)?.value.as_deref()?;
    let shape = Shape::decode(text, rows)?;
    (footer.parquet_schema().num_columns() == shape.typed_at(shape.typed.len())).then_some(shape)
}

/// Returns the first row of each group, or `None` if the groups do not add up to the segment's rows.
fn group_starts(footer: &ArrowReaderMetadata, rows: u32) -> Option<Vec<u32>> {
    let mut starts = vec![0_u32];
    for group in footer.metadata().row_groups() {
        let start = starts.last()?.checked_add(u32::try_from(group.num_rows()).ok()?)?;
        starts.push(start);
    }
    (starts.last() == Some(&rows)).then_some(starts)
}
