//! Deterministic samples of rows (D-84): rows with hashes below a rate, or a number of the lowest hashes.

use arrow_array::cast::AsArray;
use arrow_buffer::BooleanBuffer;
use arrow_buffer::BooleanBufferBuilder;
use assay_storage_segments::Want;

use crate::EngineError;
use crate::scan::ScanContext;
use crate::scan::sample_hashes::{Rate, hash};
use crate::scan::source::ScanUnit;

/// Hash with the number of its object, since ids of several objects may be equal.
pub type Hash = (u64, u32);

/// Sample of rows or traces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled {
    pub seed: i64,
    pub cut: Cut,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    Rate(Rate),
    /// Highest hash in the sample, or `None` for an empty sample.
    Until(Option<Hash>),
}

impl Sampled {
    pub fn takes(&self, id: &str, object: u32) -> bool {
        let hash = hash(self.seed, id);
        match self.cut {
            Cut::Rate(rate) => rate.takes(hash),
            Cut::Until(last) => last.is_some_and(|last| (hash, object) <= last),
        }
    }

    /// Narrows the selected spans of a unit to those in the sample.
    pub fn narrow(
        &self,
        context: &ScanContext<'_>,
        piece: &ScanUnit,
        selected: BooleanBuffer,
    ) -> Result<BooleanBuffer, EngineError> {
        let mut bits = BooleanBufferBuilder::new(selected.len());
        bits.append_n(selected.len(), false);
        each_id(context, piece, &selected, |row, id, object| {
            if self.takes(id, object) {
                bits.set_bit(row, true);
            }
        })?;
        Ok(bits.finish())
    }
}

/// Passes the hashes of a unit's selected rows to `take`.
pub(crate) fn hashes(
    context: &ScanContext<'_>,
    piece: &ScanUnit,
    selected: &BooleanBuffer,
    seed: i64,
    mut take: impl FnMut(Hash),
) -> Result<(), EngineError> {
    each_id(context, piece, selected, |_, id, object| take((hash(seed, id), object)))
}

fn each_id(
    context: &ScanContext<'_>,
    piece: &ScanUnit,
    selected: &BooleanBuffer,
    mut take: impl FnMut(usize, &str, u32),
) -> Result<(), EngineError> {
    if selected.count_set_bits() == 0 {
        return Ok(());
    }
    let object = context.sources[piece.source].number;
    let ids = piece.unit.read(&context.shared.cache, 0..selected.len(), Some(selected), &[Want::Id])?;
    let ids = ids[0].as_string::<i32>();
    for (number, row) in selected.set_indices().enumerate() {
        take(row, ids.value(number), object);
    }
    Ok(())
}

/// Returns the highest of the lowest `count` hashes of several nodes.
pub fn last_of(mut hashes: Vec<Hash>, count: u64) -> Option<Hash> {
    hashes.sort_unstable();
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(hashes.len());
    hashes.get(count.checked_sub(1)?).copied()
}
