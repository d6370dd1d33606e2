//! Units that hold the spans of given traces.

use assay_storage_shard::Sought;

use crate::EngineError;
use crate::scan::Scene;
use crate::scan::source::{Piece, pieces};
use crate::traces::Found;

/// Upper bound of traces that are read through the index of traces; for more, all units are scanned.
pub(crate) const FETCHED_TRACES_MAX: usize = 4096;

/// Units with spans of some traces, by the ids of the traces for each source.
pub(crate) fn of_roots<I: Iterator<Item = String>>(
    scene: &Scene<'_>,
    roots: impl Iterator<Item = I>,
) -> Result<Vec<Piece>, EngineError> {
    let mut all = Vec::new();
    for (number, (source, roots)) in scene.sources.iter().zip(roots).enumerate() {
        let mut roots: Vec<String> = roots.collect();
        if roots.is_empty() {
            continue;
        }
        roots.sort();
        let sought = Sought { root_span_ids: Some(roots), ..Sought::default() };
        let units = source.view.units(&source.object, source.at, &sought)?;
        all.extend(units.into_iter().map(|unit| Piece { unit, source: number }));
    }
    Ok(all)
}

/// Units that hold all spans of the selected traces.
pub(crate) fn pieces_of(scene: &Scene<'_>, found: &[Found]) -> Result<Vec<Piece>, EngineError> {
    if found.len() > FETCHED_TRACES_MAX {
        return pieces(scene.sources, &Sought::default());
    }
    let mut roots: Vec<Vec<String>> = vec![Vec::new(); scene.sources.len()];
    found.iter().for_each(|found| roots[found.source].push(found.root_span_id.to_string()));
    of_roots(scene, roots.into_iter().map(Vec::into_iter))
}
