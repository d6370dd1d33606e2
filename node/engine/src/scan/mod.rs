//! Reading of units: which units and columns a query needs, which rows its filter selects, and samples of them.

pub(crate) mod comments;
pub(crate) mod filter;
pub(crate) mod inputs;
pub(crate) mod sample_hashes;
pub(crate) mod sampling;
pub(crate) mod source;

use assay_node_expressions::Env;

use crate::EngineError;
use crate::scan::source::{Piece, Shared, Source};
use crate::scheduling::watch::Watch;

/// Everything that is the same for a whole query on this node.
#[derive(Clone, Debug)]
pub(crate) struct Scene<'q> {
    pub sources: &'q [Source],
    pub shared: &'q Shared,
    pub watch: &'q Watch,
    pub env: Env,
}

/// Works on every piece on the threads for queries. Returns what each thread made. The first failure ends the work.
pub(crate) fn each<T: Send>(
    scene: &Scene<'_>,
    pieces: &[Piece],
    start: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, usize, &Piece) -> Result<(), EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    scene.shared.workers.each(scene.watch, pieces, start, work)
}
