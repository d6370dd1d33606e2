//! Units that hold the spans of given traces.

use assay_storage_shard::Sought;

use crate::EngineError;
use crate::scan::ScanContext;
use crate::scan::source::{ScanUnit, pieces};
use crate::traces::SelectedTrace;

/// Upper bound of traces that are read through the index of traces. For more traces, all units are scanned.
pub(crate) const FETCHED_TRACES_MAX: usize = 4096;

/// Returns the units with spans of these traces. `roots` has the ids of the traces for each source.
pub(crate) fn of_roots<I: Iterator<Item = String>>(
    context: &ScanContext<'_>,
    roots: impl Iterator<Item = I>,
) -> Result<Vec<ScanUnit>, EngineError> {
    let mut all = Vec::new();
    for (number, (source, roots)) in context.sources.iter().zip(roots).enumerate() {
        let mut roots: Vec<String> = roots.collect();
        if roots.is_empty() {
            continue;
        }
        roots.sort();
        let sought = Sought { root_span_ids: Some(roots), ..Sought::default() };
        let units = source.view.units(&source.object, source.at, &sought)?;
        all.extend(units.into_iter().map(|unit| ScanUnit { unit, source: number }));
    }
    Ok(all)
}

/// Returns the units that hold all spans of the selected traces.
pub(crate) fn pieces_of(context: &ScanContext<'_>, found: &[SelectedTrace]) -> Result<Vec<ScanUnit>, EngineError> {
    if found.len() > FETCHED_TRACES_MAX {
        return pieces(context.sources, &Sought::default());
    }
    let mut roots: Vec<Vec<String>> = vec![Vec::new(); context.sources.len()];
    found.iter().for_each(|found| roots[found.source].push(found.root_span_id.to_string()));
    of_roots(context, roots.into_iter().map(Vec::into_iter))
}
