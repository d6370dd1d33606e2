//! Responses that are rendered as one body.

use assay_storage_model::Xact;

use super::steps::{self, Compressor};
use super::{Envelope, Format, RenderError, RowWriter};
use crate::{Executor, Table};

/// Renderer of a response that is sent after it is complete.
#[derive(Debug)]
pub struct WholeResponse {
    envelope: Envelope,
    writer: RowWriter,
    executor: Executor,
}

impl WholeResponse {
    pub fn new(envelope: Envelope, executor: Executor) -> Result<WholeResponse, RenderError> {
        let writer = envelope.writer()?;
        Ok(WholeResponse { envelope, writer, executor })
    }

    /// Returns the bytes before the rows.
    pub fn head(&self) -> Vec<u8> {
        self.envelope.head()
    }

    /// Writes a table, and returns the bytes that are ready.
    pub async fn table(self, table: Table) -> Result<(WholeResponse, Vec<u8>), RenderError> {
        let WholeResponse { envelope, writer, executor } = self;
        let (writer, bytes) = steps::write_table(&executor, writer, table).await?;
        Ok((WholeResponse { envelope, writer, executor }, bytes))
    }

    /// Returns the last rows and the bytes after them. No later write than `version` is visible in the rows.
    pub async fn end(self, version: Xact, cursor: Option<&str>) -> Result<RenderedEnd, RenderError> {
        let WholeResponse { envelope, writer, executor } = self;
        // The last row group of Parquet is encoded only here.
        let mut bytes = match envelope.format {
            Format::Parquet => executor.run(move |thread| writer.finish_on(thread)).await??,
            _ => writer.finish()?,
        };
        bytes.extend_from_slice(&envelope.tail(version, cursor)?);
        Ok(RenderedEnd { bytes, envelope, executor })
    }
}

/// End of a whole response.
#[derive(Debug)]
pub struct RenderedEnd {
    pub bytes: Vec<u8>,
    pub envelope: Envelope,
    executor: Executor,
}

impl RenderedEnd {
    /// Compresses the whole body. A long one is compressed on a query thread.
    pub async fn compress(&self, compressor: impl Compressor, body: Vec<u8>) -> Result<Vec<u8>, RenderError> {
        steps::compress(&self.executor, compressor, body).await
    }
}
