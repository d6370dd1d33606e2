//! Responses that are rendered part by part, as their readers take them.

use std::time::Duration;

use assay_node_engine::Watch;
use assay_node_limits::{Budget, Holder, Reservation};
use bytes::Bytes;
use futures::stream::{self, LocalBoxStream, StreamExt};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::steps::{Compressor, compress_end, write_rows};
use super::{Envelope, RenderError, RowWriter};
use crate::{Executor, QueryAnswer, Table};

/// Memory for a part of a response before its size is known. It is more than most parts need.
const PART_BYTES: u64 = 16 << 20;
/// Share of the whole budget that a part takes at most.
const PART_ONE_IN: u64 = 8;
/// Share of the whole budget that may be held for a part to be read while the one before is written.
const AHEAD_ONE_IN: u64 = 2;
/// Time that a started response waits for memory.
const NEXT_PART_WAIT: Duration = Duration::from_secs(120);

/// Memory that responses on their way hold, as one request reserves it.
pub trait ResponseMemory: 'static {
    /// Budget that all responses of this node share.
    fn budget(&self) -> &Budget;
    /// Holder that the memory is accounted to.
    fn holder(&self) -> Holder;
    /// Waits for memory for a part.
    fn reserve(&self, bytes: u64, until: Instant) -> impl Future<Output = Result<Reservation, RenderError>>;
    /// Waits for more memory for a part.
    fn grow(&self, held: &mut Reservation, bytes: u64, until: Instant)
    -> impl Future<Output = Result<(), RenderError>>;
}

/// Returns the memory to reserve for the next part.
pub fn part_bytes(budget: &Budget) -> u64 {
    PART_BYTES.min(budget.reading().total / PART_ONE_IN)
}

/// Part of a response, and the memory that it holds.
#[derive(Debug)]
pub struct ResponsePart {
    pub bytes: Bytes,
    pub room: Reservation,
}

/// Table of one part, none after the last, and the memory that the part holds.
type PartRead = (Option<Table>, Reservation);

/// Renderer of a response that is sent part by part.
#[derive(Debug)]
pub struct StreamedResponse<M, C> {
    memory: M,
    head: Option<Vec<u8>>,
    /// None once the end was written.
    writer: Option<(RowWriter, C)>,
    executor: Executor,
    first: Option<PartRead>,
    /// None while a task in `ahead` reads the next part.
    rows: Option<QueryAnswer>,
    ahead: JoinSet<(QueryAnswer, Result<PartRead, RenderError>)>,
    envelope: Envelope,
}

impl<M: ResponseMemory, C: Compressor> StreamedResponse<M, C> {
    /// Renders an answer whose first part was read, and has its memory.
    pub fn new(
        envelope: Envelope,
        compressor: C,
        memory: M,
        rows: QueryAnswer,
        (first, room): (Table, Reservation),
    ) -> Result<StreamedResponse<M, C>, RenderError> {
        Ok(StreamedResponse {
            memory,
            head: Some(envelope.head()),
            writer: Some((envelope.writer()?, compressor)),
            executor: rows.executor(),
            first: Some((Some(first), room)),
            rows: Some(rows),
            ahead: JoinSet::new(),
            envelope,
        })
    }

    /// Returns the parts. A task renders each one, so that a part releases its permit even before the client asks for
    /// it.
    pub fn parts(self) -> LocalBoxStream<'static, Result<ResponsePart, RenderError>> {
        let parts = stream::try_unfold(self, |mut state| async move {
            let mut making = JoinSet::new();
            making.spawn_local(async move {
                let part = state.next().await;
                (state, part)
            });
            let Some(made) = making.join_next().await else { return Ok(None) };
            let (state, part) = made.map_err(RenderError::Task)?;
            Ok::<_, RenderError>(part?.map(|part| (part, state)))
        });
        parts.boxed_local()
    }

    /// Returns the next part that has any bytes; none after the end.
    async fn next(&mut self) -> Result<Option<ResponsePart>, RenderError> {
        let mut bytes = Vec::new();
        let mut room = None;
        while bytes.is_empty() {
            if self.writer.is_none() {
                return Ok(None);
            }
            let (table, held) = self.part().await?;
            bytes = match table {
                Some(table) => {
                    self.read_ahead();
                    self.table(table).await?
                }
                None => self.end().await?,
            };
            room = Some(held);
        }
        let Some(mut room) = room else { return Ok(None) };
        let (has, needs) = (room.amount(), bytes.len() as u64);
        if needs > has {
            self.memory.grow(&mut room, needs - has, Instant::now() + NEXT_PART_WAIT).await?;
        } else {
            room.shrink(has - needs);
        }
        Ok(Some(ResponsePart { bytes: bytes.into(), room }))
    }

    /// Returns the rows of the next part, and the memory that it holds.
    async fn part(&mut self) -> Result<PartRead, RenderError> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        if let Some(read) = self.ahead.join_next().await {
            let (rows, read) = read.map_err(RenderError::Task)?;
            self.rows = Some(rows);
            return read;
        }
        let bytes = part_bytes(self.memory.budget());
        let room = self.memory.reserve(bytes, Instant::now() + NEXT_PART_WAIT).await?;
        let rows = self.rows.as_mut().ok_or(RenderError::Internal("a part is read twice"))?;
        Ok((rows.next().await?, room))
    }

    /// Begins to read the next part, if there is memory for it at once. The part at hand does not wait for that: the next
    /// one may take as long as a query may.
    fn read_ahead(&mut self) {
        let Some(room) = self.room_ahead() else { return };
        let Some(mut rows) = self.rows.take() else { return };
        self.ahead.spawn_local(async move {
            let read = rows.next().await.map(|table| (table, room)).map_err(RenderError::from);
            (rows, read)
        });
    }

    /// Reserves memory for the next part, if much is free and nobody waits for it.
    fn room_ahead(&self) -> Option<Reservation> {
        let budget = self.memory.budget();
        let (reading, bytes) = (budget.reading(), part_bytes(budget));
        let is_free = reading.waiting == 0 && reading.held + bytes <= reading.total / AHEAD_ONE_IN;
        is_free.then(|| budget.try_acquire(self.memory.holder(), bytes)).flatten()
    }

    async fn table(&mut self, table: Table) -> Result<Vec<u8>, RenderError> {
        let Some((mut writer, mut compressor)) = self.writer.take() else { return Ok(Vec::new()) };
        let head = self.head.take().unwrap_or_default();
        let work = move |watch: &Watch| {
            let mut bytes = compressor.put(head).map_err(RenderError::Compression)?;
            bytes.extend(write_rows(&mut writer, &mut compressor, &table, watch)?);
            Ok::<_, RenderError>(((writer, compressor), bytes))
        };
        let (writer, bytes) = self.executor.run(work).await??;
        self.writer = Some(writer);
        Ok(bytes)
    }

    async fn end(&mut self) -> Result<Vec<u8>, RenderError> {
        let Some((writer, compressor)) = self.writer.take() else { return Ok(Vec::new()) };
        let mut bytes = self.head.take().unwrap_or_default();
        let rows = self.rows.as_ref().ok_or(RenderError::Internal("the end is written while a part is read"))?;
        let tail = self.envelope.tail(rows.version(), None)?;
        let work = move |watch: &Watch| {
            bytes.extend(writer.finish()?);
            bytes.extend_from_slice(&tail);
            compress_end(compressor, &bytes, Some(watch))
        };
        self.executor.run(work).await?
    }
}
