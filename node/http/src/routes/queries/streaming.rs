//! An answer that is made part after part, as its reader takes them.

use std::io;
use std::time::Duration;

use actix_web::web::Data;
use assay_node_limits::Reservation;
use assay_node_query::render::RowWriter;
use assay_node_query::{Answer as Rows, Executor, Table, Watch};
use futures::stream::{self, LocalBoxStream, StreamExt};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Reply, packed, unwritten, written};
use crate::admission::Applicant;
use crate::call::Call;
use crate::edge::Edge;
use crate::packing::Packing;
use crate::refusal::Refusal;
use crate::sending::Part;

pub(super) struct Streaming {
    edge: Data<Edge>,
    applicant: Applicant,
    head: Option<Vec<u8>>,
    /// None once the end was written.
    writer: Option<(RowWriter, Packing)>,
    executor: Executor,
    first: Option<PartRead>,
    /// None while the next part is read ahead, by the task in `ahead`.
    rows: Option<Rows>,
    ahead: JoinSet<(Rows, Result<PartRead, Refusal>)>,
    reply: Reply,
}

/// Rows of one part, none behind the last, and the room that the part has.
type PartRead = (Option<Table>, Reservation);

/// Room for a part of an answer before it is known how large it is. It is more than most parts need.
const PART_BYTES: u64 = 16 << 20;
/// No more than one in so many of all answers' room, however little that is.
const PART_ONE_IN: u64 = 8;
/// A part is read while the one before is written only where no more than one in so many of all answers' room is held.
const AHEAD_ONE_IN: u64 = 2;
/// How long an answer under way waits for room: its reader has part of it already.
const NEXT_PART_WAIT: Duration = Duration::from_secs(120);

/// Room for the next part.
pub(super) fn part_bytes(edge: &Edge) -> u64 {
    PART_BYTES.min(edge.budgets.answers.reading().total / PART_ONE_IN)
}

impl Streaming {
    /// An answer of which the first part was read, and has its room.
    pub fn new(
        call: &Call,
        reply: Reply,
        writer: (RowWriter, Packing),
        rows: Rows,
        (first, room): (Table, Reservation),
    ) -> Streaming {
        Streaming {
            edge: call.edge.clone(),
            applicant: call.applicant(),
            head: Some(reply.head()),
            writer: Some(writer),
            executor: rows.executor(),
            first: Some((Some(first), room)),
            rows: Some(rows),
            ahead: JoinSet::new(),
            reply,
        }
    }

    /// Each part is made by a task: one that its reader does not ask for yet gives its permit back all the same.
    pub fn parts(self) -> LocalBoxStream<'static, io::Result<Part>> {
        let parts = stream::try_unfold(self, |mut state| async move {
            let mut making = JoinSet::new();
            making.spawn_local(async move {
                let part = state.next().await;
                (state, part)
            });
            let Some(made) = making.join_next().await else { return Ok(None) };
            let (state, part) = made.map_err(io::Error::other)?;
            let part = part.map_err(|refusal| io::Error::other(refusal.message))?;
            Ok::<_, io::Error>(part.map(|part| (part, state)))
        });
        parts.boxed_local()
    }

    /// The next part that has any bytes; none behind the end.
    async fn next(&mut self) -> Result<Option<Part>, Refusal> {
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
                    self.written(table).await?
                }
                None => self.ended().await?,
            };
            room = Some(held);
        }
        let Some(mut room) = room else { return Ok(None) };
        let (has, needs) = (room.amount(), bytes.len() as u64);
        if needs > has {
            let (budget, until) = (&self.edge.budgets.answers, Instant::now() + NEXT_PART_WAIT);
            self.applicant.grow_until(budget, &mut room, needs - has, until).await?;
        } else {
            room.shrink(has - needs);
        }
        Ok(Some(Part { bytes: bytes.into(), room }))
    }

    /// The rows of the next part, and the room that it has.
    async fn part(&mut self) -> Result<PartRead, Refusal> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        if let Some(read) = self.ahead.join_next().await {
            let (rows, read) = read.map_err(Refusal::internal)?;
            self.rows = Some(rows);
            return read;
        }
        let (budget, until) = (&self.edge.budgets.answers, Instant::now() + NEXT_PART_WAIT);
        let room = self.applicant.reserve_until(budget, part_bytes(&self.edge), until).await?;
        let rows = self.rows.as_mut().ok_or_else(|| Refusal::internal("a part is read twice"))?;
        Ok((rows.next().await?, room))
    }

    /// Begins to read the next part, if there is room for it at once. A part at hand does not wait for that: the next one
    /// may take as long as a query may.
    fn read_ahead(&mut self) {
        let Some(room) = self.room_ahead() else { return };
        let Some(mut rows) = self.rows.take() else { return };
        self.ahead.spawn_local(async move {
            let read = rows.next().await.map(|table| (table, room)).map_err(Refusal::from);
            (rows, read)
        });
    }

    /// Room for the next part, if much is free and nobody waits for it.
    fn room_ahead(&self) -> Option<Reservation> {
        let budget = &self.edge.budgets.answers;
        let (reading, bytes) = (budget.reading(), part_bytes(&self.edge));
        let is_free = reading.waiting == 0 && reading.held + bytes <= reading.total / AHEAD_ONE_IN;
        is_free.then(|| budget.try_acquire(self.applicant.holder, bytes)).flatten()
    }

    async fn written(&mut self, table: Table) -> Result<Vec<u8>, Refusal> {
        let Some((mut writer, mut packing)) = self.writer.take() else { return Ok(Vec::new()) };
        let head = self.head.take().unwrap_or_default();
        let work = move |watch: &Watch| {
            let mut bytes = packing.put(head).map_err(Refusal::internal)?;
            bytes.extend(written((&mut writer, &mut packing), &table.rows, watch)?);
            Ok::<_, Refusal>(((writer, packing), bytes))
        };
        let (writer, bytes) = self.executor.run(work).await??;
        self.writer = Some(writer);
        Ok(bytes)
    }

    async fn ended(&mut self) -> Result<Vec<u8>, Refusal> {
        let Some((writer, packing)) = self.writer.take() else { return Ok(Vec::new()) };
        let mut bytes = self.head.take().unwrap_or_default();
        let rows = self.rows.as_ref().ok_or_else(|| Refusal::internal("the end is written while a part is read"))?;
        let tail = self.reply.tail(rows, None)?;
        let work = move |watch: &Watch| {
            bytes.extend(writer.finish().map_err(unwritten)?);
            bytes.extend_from_slice(&tail);
            packed(packing, &bytes, || watch.check())
        };
        self.executor.run(work).await?
    }
}
