//! Scrub: reads every byte of a shard's segments during service, to find damage that no reader has met yet.
//!
//! It also computes a digest of the applied state, for comparison with other replicas.
//!
//! A segment is read as of one moment. Meanwhile a seal may replace its marks, and compaction may remove it. A
//! suspicious segment is therefore read again, and damage is reported only for an unchanged segment.

use std::sync::Arc;

use assay_storage_model::Applied;
use assay_storage_segments::verify;

use crate::Shard;
use crate::live_segment::LiveSegment;

/// Upper bound of the reads of a segment whose files change during the scrub.
const LOOKS_MAX: usize = 4;

/// Digest of everything that was applied up to a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardDigest {
    pub applied: Applied,
    pub digest: u64,
}

impl Shard {
    /// Returns a line for each finding; the result is empty if there is no damage.
    ///
    /// This blocks. `pace` is called with the size of each segment before the read, and returns whether to continue.
    pub fn scrub(&self, pace: &dyn Fn(u64) -> bool) -> Vec<String> {
        let mut findings = Vec::new();
        let segments = self.core.lock().segments.to_vec();
        for live in segments {
            let bytes = live.meta().files.iter().map(|file| file.length).sum();
            if !pace(bytes) {
                break;
            }
            findings.extend(self.look_at(live));
        }
        findings
    }

    fn look_at(&self, live: Arc<LiveSegment>) -> Vec<String> {
        let seq = live.meta().seq;
        let mut current = Some(live);
        for _ in 0..LOOKS_MAX {
            let Some(live) = current else { return Vec::new() }; // compacted meanwhile
            let segments_dir = self.upkeep.lock().segments_dir.clone();
            let findings = verify(&self.config.disk, &segments_dir, live.meta());
            if findings.is_empty() {
                return findings;
            }
            current = self.core.lock().segments.iter().find(|other| other.meta().seq == seq).cloned();
            if current.as_ref().is_some_and(|now| now.meta() == live.meta()) {
                return findings;
            }
        }
        Vec::new()
    }

    /// Returns the digest of the current state. It is equal on replicas that applied the same entries.
    pub fn digest(&self) -> ShardDigest {
        let core = self.core.lock();
        let mut digest = u64::from(crc32c::crc32c(&core.last.0.to_le_bytes()));
        for (key, record) in core.view().objects() {
            let flags = [u8::from(record.dropped)];
            let numbers = [record.floor.0, record.rows, record.comments, record.last.0, u64::from(record.digest)];
            let numbers = numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
            let sum = crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(&key.to_bytes()), &flags), &numbers);
            // The rotation makes the digest depend on the order of objects.
            digest = digest.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(sum);
        }
        ShardDigest { applied: core.applied.clone(), digest }
    }
}
