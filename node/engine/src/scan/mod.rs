//! Reading of units: the units and columns that a query needs, the rows that its filter selects, and samples of them.

pub(crate) mod blind;
pub(crate) mod comments;
pub(crate) mod filter;
pub(crate) mod inputs;
pub(crate) mod sample_hashes;
pub(crate) mod sampling;
pub(crate) mod source;

use assay_node_expressions::Env;

use crate::EngineError;
use crate::scan::source::{ScanUnit, Shared, Source};
use crate::scheduling::watch::Watch;

/// Context that is the same for a whole query on this node.
#[derive(Clone, Debug)]
pub(crate) struct ScanContext<'q> {
    pub sources: &'q [Source],
    pub shared: &'q Shared,
    pub watch: &'q Watch,
    pub env: Env,
}

/// Processes pieces on the query threads. Returns the result of each thread, or the first error.
///
/// All rows of the pieces count as scanned.
pub(crate) fn each<T: Send>(
    context: &ScanContext<'_>,
    pieces: &[ScanUnit],
    start: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, usize, &ScanUnit) -> Result<(), EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    each_of_few(context, pieces, start, |made, number, piece| {
        work(made, number, piece)?;
        context.watch.scanned(piece.unit.rows());
        Ok(())
    })
}

/// Processes pieces like [`each`], without counting their rows.
pub(crate) fn each_of_few<T: Send>(
    context: &ScanContext<'_>,
    pieces: &[ScanUnit],
    start: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, usize, &ScanUnit) -> Result<(), EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    context.shared.workers.each(context.watch, pieces, start, work)
}
