//! Streams of parts between nodes: the service that sends them, and their reader.
//!
//! A chunk consists of a head and a part. Parts are computed one ahead of their reader, with backpressure from the
//! transport. A stream ends early if its reader pauses, and always after some time. The reader then opens another one
//! after the last row. So no query keeps files of another node open for long, and its rights are checked again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster::{AskStream, NoAnswer, ObjectAccess, StreamService};
use assay_node_running_queries::{QueryProgress, QueryUsage};
use assay_storage_model::{ShardId, Xact};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::AbortHandle;

use crate::context::QueryContext;
use crate::leaf::run::{LeafRun, PartForm};
use crate::leaf::{LeafObject, LeafPart, LeafRequest, has_masks, missing};
use crate::{AskError, packed};

/// Name of the service.
pub(crate) const RESULT_STREAM: &str = "query.rows";
/// Format of requests for streams.
const FORMAT_OF_STREAMS: u16 = 3;
/// Format of requests for streams of masked objects.
const FORMAT_OF_MASKED_STREAMS: u16 = 5;
/// Number of chunks that wait for their reader on each side.
const CHUNKS_AHEAD: usize = 1;
/// Time that a chunk waits for its reader before the stream ends.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Time after the first part at which a stream ends.
const LIFETIME_MAX: Duration = Duration::from_secs(60);

/// Returns the format of a request for a stream of these objects.
pub(crate) fn format_of_stream(objects: &[LeafObject]) -> u16 {
    if has_masks(objects) { FORMAT_OF_MASKED_STREAMS } else { FORMAT_OF_STREAMS }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ChunkHead {
    versions: Vec<(ShardId, Xact)>,
    is_last: bool,
    /// Resources used for this part. Nodes up to 0.6 do not tell.
    #[serde(default, skip_serializing_if = "QueryUsage::is_nothing")]
    usage: QueryUsage,
}

/// Part received from another node.
#[derive(Debug)]
pub(crate) struct LeafChunk {
    pub versions: Vec<(ShardId, Xact)>,
    pub part: LeafPart,
    pub is_last: bool,
    pub usage: QueryUsage,
}

/// Service that streams parts to other nodes.
#[derive(Debug)]
pub(crate) struct LeafStreamService {
    pub context: Arc<QueryContext>,
}

impl StreamService for LeafStreamService {
    fn stream_for(
        &self,
        principal: Bytes,
        body: Bytes,
        _within: Duration,
    ) -> BoxStream<'static, Result<Bytes, NoAnswer>> {
        let context = Arc::clone(&self.context);
        let opened = async move {
            match open(context, principal, body).await {
                Ok(chunks) => chunks,
                Err(why) => stream::iter([Err(why)]).boxed(),
            }
        };
        stream::once(opened).flatten().boxed()
    }
}

/// Checks a request, and starts the task that computes its parts.
async fn open(
    context: Arc<QueryContext>,
    principal: Bytes,
    body: Bytes,
) -> Result<BoxStream<'static, Result<Bytes, NoAnswer>>, NoAnswer> {
    let bad = |why: serde_json::Error| NoAnswer::Refused(format!("the request cannot be decoded: {why}"));
    let request: LeafRequest = serde_json::from_slice(&body).map_err(bad)?;
    if let Some(group) = missing(&context.cluster, &request) {
        return Err(context.cluster.not_leader(group));
    }
    let objects = request.objects.iter().map(|object| object.key).collect();
    context.cluster.check(Some(principal), ObjectAccess::Read, objects).await?;
    let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
    let task = tokio::spawn(async move {
        if let Err(why) = send_parts(&context, request, &sender).await {
            // The reader may be gone.
            drop(sender.send_timeout(pack_error(&why), PAUSE_MAX).await);
        }
    });
    let stop = AbortOnDrop(task.abort_handle());
    let chunks = stream::unfold((receiver, stop), |(mut receiver, stop)| async move {
        let chunk = receiver.recv().await?;
        Some((Ok(chunk), (receiver, stop)))
    });
    Ok(chunks.boxed())
}

/// Computes parts until the last one, or until the reader pauses.
async fn send_parts(
    context: &Arc<QueryContext>,
    request: LeafRequest,
    sender: &mpsc::Sender<Bytes>,
) -> Result<(), AskError> {
    let known = format_of_stream(&request.objects);
    if request.format != known {
        let why = format!("this node reads requests of format {known}, and this one has {}", request.format);
        return Err(AskError::NotServed(why));
    }
    let time = Duration::from_millis(request.millis);
    let progress = Arc::new(QueryProgress::default());
    let mut run = LeafRun::begin(context, request, Arc::clone(&progress)).await?;
    // The first part may take as long as a query may.
    let mut until = None;
    loop {
        let (part, is_last) = run.next(Instant::now() + time, PartForm::Encoded).await?;
        let until = *until.get_or_insert_with(|| Instant::now() + LIFETIME_MAX);
        let LeafPart::Part(bytes) = part else { return Err(AskError::Internal("a part is not encoded".into())) };
        let head = ChunkHead { versions: run.versions.clone(), is_last, usage: progress.take_usage() };
        let sent = sender.send_timeout(packed::pack(&Ok::<_, AskError>(head), &bytes), PAUSE_MAX).await;
        if sent.is_err() || is_last || Instant::now() >= until {
            return Ok(());
        }
    }
}

fn pack_error(why: &AskError) -> Bytes {
    packed::pack(&Err::<ChunkHead, _>(why), &[])
}

/// Decodes a chunk. Returns `None` if it is invalid.
fn unpack(chunk: Bytes) -> Option<Result<LeafChunk, AskError>> {
    let (head, part): (Result<ChunkHead, AskError>, Bytes) = packed::unpack(chunk)?;
    Some(head.map(|ChunkHead { versions, is_last, usage }| LeafChunk {
        versions,
        part: LeafPart::Part(part),
        is_last,
        usage,
    }))
}

#[derive(Debug)]
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reader of chunks from another node. A task reads ahead, and closes the stream if nobody takes its chunks.
#[derive(Debug)]
pub(crate) struct ChunkReader {
    chunks: mpsc::Receiver<Result<LeafChunk, AskError>>,
    _stop: AbortOnDrop,
}

impl ChunkReader {
    /// Starts to read. `permit` is held as long as the stream is open.
    pub fn start(stream: AskStream, permit: OwnedSemaphorePermit) -> ChunkReader {
        let (sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
        let task = tokio::spawn(read(stream, sender, permit));
        ChunkReader { chunks, _stop: AbortOnDrop(task.abort_handle()) }
    }

    /// Returns the next chunk, or `None` if the stream ended.
    pub async fn next(&mut self) -> Option<Result<LeafChunk, AskError>> {
        self.chunks.recv().await
    }
}

async fn read(mut stream: AskStream, sender: mpsc::Sender<Result<LeafChunk, AskError>>, permit: OwnedSemaphorePermit) {
    while let Some(chunk) = stream.next().await {
        let chunk = match chunk {
            Ok(chunk) => unpack(chunk).unwrap_or_else(|| {
                let why = "a response of another node cannot be decoded; both have to run consecutive versions";
                Err(AskError::Unavailable(why.into()))
            }),
            Err(why) => Err(AskError::Unavailable(why.to_string())),
        };
        let is_end = chunk.as_ref().map_or(true, |chunk| chunk.is_last);
        if sender.send_timeout(chunk, PAUSE_MAX).await.is_err() || is_end {
            break;
        }
    }
    drop(permit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_read_back_and_damaged_ones_do_not() {
        let usage = QueryUsage { rows_scanned: 5, memory_bytes: 6 };
        let head = ChunkHead { versions: vec![(ShardId(3), Xact(7))], is_last: true, usage };
        let packed = packed::pack(&Ok::<_, AskError>(head), b"rows");
        let chunk = unpack(packed.clone()).expect("a chunk").expect("a part");
        assert_eq!((chunk.versions, chunk.is_last), (vec![(ShardId(3), Xact(7))], true));
        assert_eq!(chunk.usage, usage);
        assert!(matches!(chunk.part, LeafPart::Part(part) if part == "rows"));
        assert!(unpack(packed.slice(..10)).is_none());
        let failed = unpack(pack_error(&AskError::Busy("full".into()))).expect("a chunk");
        assert_eq!(failed.map(|_| ()), Err(AskError::Busy("full".into())));
    }

    #[test]
    fn the_head_of_a_chunk_stays_as_it_is() {
        let usage = QueryUsage::default();
        let head = ChunkHead { versions: vec![(ShardId(3), Xact(7))], is_last: false, usage };
        let packed = packed::pack(&Ok::<_, AskError>(head), b"rows");
        assert_eq!(&packed[4..], br#"{"Ok":{"versions":[[3,7]],"is_last":false}}rows"#);
    }
}
