//! Writing and compression of rows in short steps, between which other queries have their turns.

use std::io;

use assay_node_engine::Watch;

use super::{RenderError, RowWriter};
use crate::{Executor, QueryThread, Table};

/// Upper bound of the bytes that are processed on a request thread, which takes some hundred microseconds.
const WRITTEN_HERE_MAX: usize = 64 << 10;
/// Bytes of values that are written or compressed in one step.
const WRITTEN_AT_ONCE: usize = 512 << 10;

/// Compression of a response's body.
pub trait Compressor: Send + 'static {
    /// Compresses more of the body, and returns the bytes that are ready.
    fn put(&mut self, bytes: Vec<u8>) -> io::Result<Vec<u8>>;
    /// Returns the remaining bytes after the end of the body.
    fn end(&mut self) -> io::Result<Vec<u8>>;
}

/// Compressor that leaves bytes as they are.
struct Uncompressed;

impl Compressor for Uncompressed {
    fn put(&mut self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        Ok(bytes)
    }

    fn end(&mut self) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }
}

/// Writes rows step by step, and compresses them.
pub(super) fn write_rows(
    writer: &mut RowWriter,
    compressor: &mut impl Compressor,
    table: &Table,
    thread: QueryThread<'_>,
) -> Result<Vec<u8>, RenderError> {
    if writer.writes_columns() {
        return compressor.put(writer.rows_on(thread, table)?).map_err(RenderError::Compression);
    }
    let mut bytes = Vec::new();
    let mut from = 0;
    while from < table.len {
        thread.watch.check()?;
        let (mut ahead, mut count) = (0, 0);
        while from + count < table.len && ahead < WRITTEN_AT_ONCE {
            ahead += table.row_bytes(from + count);
            count += 1;
        }
        let rows = writer.rows_on(thread, &table.slice(from, count))?;
        bytes.extend_from_slice(&compressor.put(rows).map_err(RenderError::Compression)?);
        from += count;
    }
    Ok(bytes)
}

/// Writes a table. A long one is written on a query thread, since request threads serve other clients.
pub(super) async fn write_table(
    executor: &Executor,
    mut writer: RowWriter,
    table: Table,
) -> Result<(RowWriter, Vec<u8>), RenderError> {
    if table.bytes() < WRITTEN_HERE_MAX {
        let bytes = writer.rows(&table)?;
        return Ok((writer, bytes));
    }
    let work = move |thread: QueryThread<'_>| {
        let bytes = write_rows(&mut writer, &mut Uncompressed, &table, thread)?;
        Ok((writer, bytes))
    };
    executor.run(work).await?
}

/// Compresses the end of a body step by step.
pub(super) fn compress_end(
    mut compressor: impl Compressor,
    bytes: &[u8],
    watch: Option<&Watch>,
) -> Result<Vec<u8>, RenderError> {
    let mut compressed = Vec::new();
    for step in bytes.chunks(WRITTEN_AT_ONCE) {
        if let Some(watch) = watch {
            watch.check()?;
        }
        compressed.extend(compressor.put(step.to_vec()).map_err(RenderError::Compression)?);
    }
    compressed.extend(compressor.end().map_err(RenderError::Compression)?);
    Ok(compressed)
}

/// Compresses a whole body. A long one is compressed on a query thread.
pub(super) async fn compress(
    executor: &Executor,
    compressor: impl Compressor,
    body: Vec<u8>,
) -> Result<Vec<u8>, RenderError> {
    if body.len() < WRITTEN_HERE_MAX {
        return compress_end(compressor, &body, None);
    }
    executor.run(move |thread| compress_end(compressor, &body, Some(thread.watch))).await?
}
