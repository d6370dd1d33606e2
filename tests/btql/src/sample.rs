//! Deterministic samples (D-84): each span, or each trace, has a hash of its id and the seed.

use assay_node_btql::ast::Amount;

use crate::row::Row;

/// Number of 64-bit hashes.
const ALL: f64 = 18_446_744_073_709_551_616.0;

/// Returns the sampled rows, in their order.
pub fn sample(rows: Vec<Row>, amount: Amount, seed: i64) -> Result<Vec<Row>, String> {
    let ids = rows.iter().map(id).collect::<Result<Vec<_>, _>>()?;
    let hashes: Vec<u64> = ids.iter().map(|id| hash(seed, id)).collect();
    let hashes = hashes.as_slice();
    let is_in: Box<dyn Fn(usize) -> bool> = match amount {
        Amount::Rate(rate) if rate >= 1.0 => Box::new(|_| true),
        Amount::Rate(rate) => {
            let end = (rate * ALL) as u64;
            Box::new(move |place| hashes[place] < end)
        }
        Amount::Count(count) => {
            // The rows of a trace stand or fall together.
            let unit = |place: usize| (hashes[place], rows[place].trace.as_ref().map_or(place, |trace| trace.number));
            let mut units: Vec<_> = (0..rows.len()).map(unit).collect();
            units.sort_unstable();
            units.dedup();
            units.truncate(usize::try_from(count).unwrap_or(usize::MAX));
            Box::new(move |place| units.contains(&unit(place)))
        }
    };
    let places: Vec<usize> = (0..rows.len()).filter(|place| is_in(*place)).collect();
    Ok(places.into_iter().map(|place| rows[place].clone()).collect())
}

fn id(row: &Row) -> Result<String, String> {
    match &row.trace {
        Some(trace) => Ok(trace.root_span_id.clone()),
        None => row.column("id").to_text().ok_or_else(|| "a sample is of rows that have ids".to_owned()),
    }
}

/// The first eight bytes, as a big endian number.
fn hash(seed: i64, id: &str) -> u64 {
    let hash = blake3::Hasher::new().update(&seed.to_le_bytes()).update(id.as_bytes()).finalize();
    hash.as_bytes().iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
