//! Responses that are rendered part by part at the speed of their readers.

use std::rc::Rc;
use std::time::Duration;

use assay_node_limits::{Budget, Holder, Reservation};
use bytes::Bytes;
use futures::stream::{self, LocalBoxStream, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::steps::{Compressor, compress_end, write_rows};
use super::{Envelope, RenderError, RowWriter};
use crate::{Executor, QueryAnswer, QueryThread, Table};

/// Memory to reserve for a part before its size is known. Most parts need less.
const PART_BYTES: u64 = 16 << 20;
/// Divisor of the whole budget for the upper bound of one part.
const PART_ONE_IN: u64 = 8;
/// Divisor of the whole budget for parts that are read ahead.
const AHEAD_ONE_IN: u64 = 2;
/// Number of parts that are read ahead, besides the one that is being read.
const PARTS_AHEAD: usize = 3;
/// Time that a started response waits for memory.
const NEXT_PART_WAIT: Duration = Duration::from_secs(120);

/// Memory of responses in progress, as reserved by one request.
pub trait ResponseMemory: 'static {
    /// Returns the budget that all responses of this node share.
    fn budget(&self) -> &Budget;
    /// Returns the holder that the memory is accounted to.
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

/// Part of a response with the memory that it holds.
#[derive(Debug)]
pub struct ResponsePart {
    pub bytes: Bytes,
    pub reservation: Reservation,
}

/// Table of one part, or `None` after the last one, with the memory that the part holds.
type PartRead = (Option<Table>, Reservation);

/// Renderer of a response that is sent part by part.
#[derive(Debug)]
pub struct StreamedResponse<M, C> {
    memory: Rc<M>,
    head: Option<Vec<u8>>,
    /// Writer and compressor. `None` after the end was written.
    writer: Option<(RowWriter, C)>,
    executor: Executor,
    first: Option<PartRead>,
    /// Rows of the response. `None` while `ahead` reads them.
    rows: Option<QueryAnswer>,
    ahead: Option<ReadAhead>,
    envelope: Envelope,
}

/// Task that reads parts while others are written, as long as memory is available.
#[derive(Debug)]
struct ReadAhead {
    parts: mpsc::Receiver<Result<PartRead, RenderError>>,
    task: JoinSet<QueryAnswer>,
}

impl ReadAhead {
    /// Starts to read. `reservation` is the memory for the first part.
    fn start<M: ResponseMemory>(memory: Rc<M>, mut rows: QueryAnswer, reservation: Reservation) -> ReadAhead {
        let (sender, parts) = mpsc::channel(PARTS_AHEAD);
        let mut task = JoinSet::new();
        task.spawn_local(async move {
            let mut next = Some(reservation);
            while let Some(reservation) = next.take() {
                let read = rows.next().await.map(|table| (table, reservation)).map_err(RenderError::from);
                let is_last = !matches!(read, Ok((Some(_), _)));
                if sender.send(read).await.is_err() || is_last {
                    break;
                }
                next = reserve_ahead(&*memory);
            }
            rows
        });
        ReadAhead { parts, task }
    }
}

/// Reserves memory for a part, if enough is free and nobody waits for memory.
fn reserve_ahead(memory: &impl ResponseMemory) -> Option<Reservation> {
    let budget = memory.budget();
    let (reading, bytes) = (budget.reading(), part_bytes(budget));
    let is_free = reading.waiting == 0 && reading.held + bytes <= reading.total / AHEAD_ONE_IN;
    is_free.then(|| budget.try_acquire(memory.holder(), bytes)).flatten()
}

impl<M: ResponseMemory, C: Compressor> StreamedResponse<M, C> {
    /// Creates a renderer for a response. The first part was read already and holds its memory.
    pub fn new(
        envelope: Envelope,
        compressor: C,
        memory: M,
        rows: QueryAnswer,
        (first, reservation): (Table, Reservation),
    ) -> Result<StreamedResponse<M, C>, RenderError> {
        Ok(StreamedResponse {
            memory: Rc::new(memory),
            head: Some(envelope.head()),
            writer: Some((envelope.writer()?, compressor)),
            executor: rows.executor(),
            first: Some((Some(first), reservation)),
            rows: Some(rows),
            ahead: None,
            envelope,
        })
    }

    /// Returns the parts as a stream. A task renders each part, so that it releases its permit even if the client does
    /// not read.
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

    /// Returns the next non-empty part, or `None` after the end.
    async fn next(&mut self) -> Result<Option<ResponsePart>, RenderError> {
        let mut bytes = Vec::new();
        let mut reservation = None;
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
            reservation = Some(held);
        }
        let Some(mut reservation) = reservation else { return Ok(None) };
        let (has, needs) = (reservation.amount(), bytes.len() as u64);
        if needs > has {
            self.memory.grow(&mut reservation, needs - has, Instant::now() + NEXT_PART_WAIT).await?;
        } else {
            reservation.shrink(has - needs);
        }
        Ok(Some(ResponsePart { bytes: bytes.into(), reservation }))
    }

    /// Returns the rows of the next part with the memory that it holds.
    async fn part(&mut self) -> Result<PartRead, RenderError> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        if let Some(mut ahead) = self.ahead.take() {
            let read = ahead.parts.recv().await;
            if let Some(Ok((Some(_), _))) = &read {
                self.ahead = Some(ahead);
            } else if let Some(rows) = ahead.task.join_next().await {
                self.rows = Some(rows.map_err(RenderError::Task)?);
            }
            if let Some(read) = read {
                return read;
            }
        }
        let bytes = part_bytes(self.memory.budget());
        let reservation = self.memory.reserve(bytes, Instant::now() + NEXT_PART_WAIT).await?;
        let rows = self.rows.as_mut().ok_or(RenderError::Internal("a part is read twice"))?;
        Ok((rows.next().await?, reservation))
    }

    /// Starts to read ahead, if memory is available at once. The current part does not wait for memory, because the
    /// next part may take as long as a query.
    fn read_ahead(&mut self) {
        if self.rows.is_none() {
            return;
        }
        let Some(reservation) = reserve_ahead(&*self.memory) else { return };
        self.ahead = self.rows.take().map(|rows| ReadAhead::start(Rc::clone(&self.memory), rows, reservation));
    }

    async fn table(&mut self, table: Table) -> Result<Vec<u8>, RenderError> {
        let Some((mut writer, mut compressor)) = self.writer.take() else { return Ok(Vec::new()) };
        let head = self.head.take().unwrap_or_default();
        let work = move |thread: QueryThread<'_>| {
            let mut bytes = compressor.put(head).map_err(RenderError::Compression)?;
            bytes.extend(write_rows(&mut writer, &mut compressor, &table, thread)?);
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
        let work = move |thread: QueryThread<'_>| {
            bytes.extend(writer.finish_on(thread)?);
            bytes.extend_from_slice(&tail);
            compress_end(compressor, &bytes, Some(thread.watch))
        };
        self.executor.run(work).await?
    }
}
