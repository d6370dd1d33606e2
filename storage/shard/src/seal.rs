//! Seal, which turns the memory table into a segment and makes everything up to the rotation durable without the log.
//!
//! 1. Rotate between two applies. A new generation takes the writes. The counters, object records, request ids and the
//!    marks that no file has yet are captured.
//! 2. Write the segment with those marks: temporary names, sync, rename, directory.
//! 3. Commit the stored state in one durable batch. This commit is the seal: nothing has changed before it, and
//!    everything has after it.
//! 4. Switch readers over. Ends set since the rotation become marks of the new segment.
//!
//! A seal that fails in step 2, for example on a full disk, is retried with the same rotation. After a failure in step
//! 3 the batch may or may not be durable, so the replica stops.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use assay_storage_kv::{Batch, Kv};
use assay_storage_model::sabotage::{self, Sabotage};
use assay_storage_model::segment::SegmentMeta;
use assay_storage_model::{Applied, ObjectKey, Xact};
use assay_storage_segments::{Mark, Segment, SegmentWriter, VersionRow, WriterOptions};

use crate::error::ShardError;
use crate::live_segment::LiveSegment;
use crate::manifest::{self, Counters, ObjectRecord};
use crate::memory::{Generation, MemoryRow};
use crate::{Core, Shard};

/// State owned by seals and compactions.
#[derive(Debug)]
pub(crate) struct Upkeep {
    pub kv: Arc<dyn Kv>,
    pub segments_dir: PathBuf,
    /// Durable counters.
    pub sealed: Counters,
    /// Rotation whose seal has not finished.
    rotation: Option<Rotation>,
}

impl Upkeep {
    pub fn new(kv: Arc<dyn Kv>, segments_dir: PathBuf, sealed: Counters) -> Upkeep {
        Upkeep { kv, segments_dir, sealed, rotation: None }
    }

    /// Returns whether a seal must be retried before segments may change.
    pub fn seal_failed(&self) -> bool {
        self.rotation.is_some()
    }
}

/// State at one moment between two applies.
#[derive(Debug)]
struct Rotation {
    generation: Arc<Generation>,
    applied: Applied,
    last: Xact,
    requests: u64,
    objects: Vec<(ObjectKey, ObjectRecord)>,
    marks: Vec<Mark>,
}

/// Written segment with the new position of each row of the generation.
struct WrittenSegment {
    meta: SegmentMeta,
    segment: Arc<Segment>,
    rows: BTreeMap<ObjectKey, Vec<u32>>,
}

impl Shard {
    /// Makes everything applied so far durable without the log, and returns that position.
    ///
    /// This blocks, and seals run one at a time.
    pub fn seal(&self) -> Result<Applied, ShardError> {
        let mut upkeep = self.upkeep.lock();
        if upkeep.rotation.is_none() {
            let mut core = self.core.lock();
            if core.applied == upkeep.sealed.applied {
                return Ok(core.applied.clone());
            }
            upkeep.rotation = Some(rotate(&mut core));
            *self.published.write() = core.view();
        }
        let rotation = upkeep.rotation.take().expect("just made, or left by a seal that failed");
        match self.finish_seal(&mut upkeep, &rotation) {
            Ok(()) => {
                // The state is durable and readers are switched over, so the log may be purged from here on.
                self.sealed.lock().clone_from(&rotation.applied);
                Ok(rotation.applied)
            }
            Err(why) => {
                upkeep.rotation = Some(rotation);
                Err(why)
            }
        }
    }

    fn finish_seal(&self, upkeep: &mut Upkeep, rotation: &Rotation) -> Result<(), ShardError> {
        let written = if rotation.generation.is_empty() { None } else { Some(self.write_segment(upkeep, rotation)?) };
        let counters = Counters {
            applied: rotation.applied.clone(),
            last: rotation.last,
            next_segment: self.next_segment.load(Ordering::Acquire),
            requests: rotation.requests,
        };
        let mut requests = self.core.lock().requests.plan(rotation.last);
        let mut batch = Batch::default();
        if !sabotage::is(Sabotage::ForgetRequests) {
            batch.append(std::mem::take(&mut requests.batch));
        }
        manifest::put_counters(&mut batch, &counters);
        for (object, record) in &rotation.objects {
            manifest::put_object(&mut batch, object, record);
        }
        if let Some(written) = &written {
            manifest::put_segment(&mut batch, &written.meta);
            let before: Vec<u64> = self.core.lock().segments.iter().map(|live| live.meta().seq).collect();
            manifest::put_order(&mut batch, before.into_iter().chain([written.meta.seq]));
        }
        upkeep.kv.commit(&batch)?;
        upkeep.sealed = counters;

        let mut core = self.core.lock();
        core.requests.sealed(requests);
        for live in core.segments.iter() {
            live.durable_until(rotation.last);
        }
        if let Some(written) = written {
            let live = LiveSegment::new(written.segment, self.config.disk.clone(), upkeep.segments_dir.clone());
            for late in rotation.generation.take_late() {
                live.mark(written.rows[&late.object][late.index as usize], late.end);
            }
            core.segments = core.segments.iter().cloned().chain([Arc::new(live)]).collect();
        }
        core.cached = core.sealing.take();
        *self.published.write() = core.view();
        Ok(())
    }

    fn write_segment(&self, upkeep: &Upkeep, rotation: &Rotation) -> Result<WrittenSegment, ShardError> {
        let seq = self.next_segment.fetch_add(1, Ordering::AcqRel);
        let disk = &self.config.disk;
        let mut writer = SegmentWriter::create(disk.clone(), &upkeep.segments_dir, seq, WriterOptions::default())?;
        let mut rows = BTreeMap::new();
        for object in rotation.generation.objects() {
            let in_order = rotation.generation.in_order(&object);
            let mut moved = vec![0; in_order.len()];
            for (index, row) in &in_order {
                moved[*index as usize] = writer.push(&version_row(object, row, rotation.last))?;
            }
            rows.insert(object, moved);
        }
        let meta = writer.finish(&rotation.marks)?;
        let segment = Segment::open(disk.clone(), &upkeep.segments_dir, &meta)?;
        Ok(WrittenSegment { meta, segment, rows })
    }
}

fn rotate(core: &mut Core) -> Rotation {
    let generation = std::mem::take(&mut core.active);
    generation.rotate();
    core.sealing = Some(Arc::clone(&generation));
    core.requests.rotate();
    let dirty = std::mem::take(&mut core.dirty);
    let records = core.objects.read();
    let objects = dirty.into_iter().map(|object| (object, records[&object].clone())).collect();
    drop(records);
    let mut marks = Vec::new();
    for live in core.segments.iter() {
        let segment = live.meta().seq;
        marks.extend(live.fresh().into_iter().map(|(row, end)| Mark { segment, row, end }));
    }
    Rotation {
        generation,
        applied: core.applied.clone(),
        last: core.last,
        requests: core.requests.count(),
        objects,
        marks,
    }
}

/// Returns a row for the segment. An end set after the rotation is not part of the sealed state.
fn version_row(object: ObjectKey, row: &MemoryRow, last: Xact) -> VersionRow<'_> {
    let given = |bytes: &'_ bytes::Bytes| !bytes.is_empty();
    VersionRow {
        object,
        key: row.key,
        xact: row.xact,
        end: (row.end <= last).then_some(row.end),
        action: row.action,
        id: row.id.as_str(),
        span_id: row.span_id.as_str(),
        root_span_id: row.root_span_id.as_str(),
        is_root: row.is_root,
        created: row.created,
        doc: &row.doc,
        patch: given(&row.patch).then_some(&row.patch[..]),
        rules: given(&row.rules).then_some(&row.rules[..]),
        audit: given(&row.audit).then_some(&row.audit[..]),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc::{self, Receiver, Sender};
    use std::time::Duration;

    use assay_storage_blobs::Blobs;
    use assay_storage_disk::SimulatedDisk;
    use assay_storage_kv::{Entries, KvError, MemoryKv};
    use assay_storage_model::LogPosition;
    use parking_lot::Mutex;

    use super::*;
    use crate::{KvKind, ShardConfig};

    /// Store whose next commit signals its start and waits for a signal to continue.
    #[derive(Debug, Default)]
    struct SlowKv {
        kv: MemoryKv,
        next: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    }

    impl Kv for SlowKv {
        fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
            self.kv.get(key)
        }

        fn scan(&self, prefix: &[u8]) -> Result<Entries, KvError> {
            self.kv.scan(prefix)
        }

        fn commit(&self, batch: &Batch) -> Result<(), KvError> {
            let slow = self.next.lock().take();
            if let Some((began, go_on)) = slow {
                began.send(()).expect("the test waits");
                go_on.recv().expect("the test goes on");
            }
            self.kv.commit(batch)
        }

        fn entries(&self) -> u64 {
            self.kv.entries()
        }
    }

    /// Returns the result of `sealed` while `work` is in the middle of its commit.
    fn sealed_during(shard: &Arc<Shard>, kv: &SlowKv, work: impl FnOnce(&Shard) + Send + 'static) -> Applied {
        let ((began, begun), (go_on, going)) = (mpsc::channel(), mpsc::channel());
        *kv.next.lock() = Some((began, going));
        let (working, asked) = (Arc::clone(shard), Arc::clone(shard));
        let working = std::thread::spawn(move || work(&working));
        begun.recv().expect("it commits");
        let (told, answer) = mpsc::channel();
        std::thread::spawn(move || told.send(asked.sealed()));
        let sealed = answer.recv_timeout(Duration::from_secs(10));
        go_on.send(()).expect("it waits");
        working.join().expect("ends");
        sealed.expect("an answer while the disk works")
    }

    #[test]
    fn what_is_sealed_is_said_at_any_time_and_not_before_it_is_durable() {
        let disk: assay_storage_disk::SharedDisk = Arc::new(SimulatedDisk::new());
        let blobs = Arc::new(Blobs::open(Arc::clone(&disk), Path::new("/blobs")).expect("opens"));
        let kv = Arc::new(SlowKv::default());
        let config = ShardConfig { disk, dir: "/shard".into(), blobs, kv: KvKind::Given(kv.clone()) };
        let shard = Shard::open(config).expect("opens");
        let position = |index| LogPosition { term: 1, replica: 1, index };

        shard.apply_blank(position(1));
        let during = sealed_during(&shard, &kv, |shard| drop(shard.seal().expect("seals")));
        assert_eq!(during, Applied::default());
        assert_eq!(shard.sealed().position, Some(position(1)));

        let export = shard.export().expect("exports");
        shard.apply_blank(position(2));
        shard.seal().expect("seals");
        let install = move |shard: &Shard| shard.install(&export.kept, Path::new("/incoming")).expect("installs");
        let during = sealed_during(&shard, &kv, install);
        assert_eq!(during.position, Some(position(2)));
        assert_eq!(shard.sealed().position, Some(position(1)), "it is where the snapshot is");
        assert_eq!(shard.sealed(), shard.applied());
    }
}
