//! Sources of a query on this node: objects with the views of their shards.

use std::sync::Arc;

use assay_node_btql::bound::Bounds;
use assay_node_reviews::Blindness;
use assay_storage_model::{ObjectKey, PaginationKey, Xact};
use assay_storage_shard::{ColumnCache, Sought, Unit, View};

use crate::EngineError;
use crate::price::Prices;
use crate::scheduling::workers::Workers;

/// Object of a query on this node.
#[derive(Clone, Debug)]
pub struct Source {
    pub object: ObjectKey,
    /// Index among all objects of the query on all nodes.
    pub number: u32,
    /// Columns that are constant for all rows. A column that is neither here nor in the rows is null.
    pub constants: Arc<Vec<(&'static str, String)>>,
    pub view: Arc<View>,
    pub at: Xact,
    /// Review mask of the reader, or `None` if the reader may see everything.
    pub blind: Option<Arc<Blindness>>,
}

/// Resources that queries share.
#[derive(Clone, Debug)]
pub struct Shared {
    pub cache: ColumnCache,
    pub prices: Arc<Prices>,
    pub workers: Workers,
}

/// Unit with its source.
#[derive(Clone, Debug)]
pub(crate) struct ScanUnit {
    pub unit: Unit,
    /// Index of the source on this node.
    pub source: usize,
}

impl Source {
    pub fn constant(&self, column: &str) -> Option<&str> {
        self.constants.iter().find(|(name, _)| *name == column).map(|(_, value)| value.as_str())
    }
}

/// Returns all units that may hold the sought rows.
pub(crate) fn pieces(sources: &[Source], sought: &Sought) -> Result<Vec<ScanUnit>, EngineError> {
    let mut pieces = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        let units = source.view.units(&source.object, source.at, sought)?;
        pieces.extend(units.into_iter().map(|unit| ScanUnit { unit, source: number }));
    }
    Ok(pieces)
}

/// Converts a query's bounds to bounds of rows. Returns `None` if they exclude every row.
pub(crate) fn sought(bounds: &Bounds) -> Option<Sought> {
    let both = |from: Option<u64>, to: Option<u64>| {
        (from.is_some() || to.is_some()).then(|| (from.unwrap_or(0), to.unwrap_or(u64::MAX)))
    };
    let key = &bounds.pagination_key;
    let created = &bounds.created;
    let created = (created.from.is_some() || created.to.is_some())
        .then(|| (created.from.unwrap_or(i64::MIN), created.to.unwrap_or(i64::MAX)));
    // A text that is no key has a position among keys too, but finding it is not worthwhile.
    let key_of = |text: &Option<String>| text.as_deref().and_then(PaginationKey::parse).map(|key| key.0);
    let sought = Sought {
        key: both(key_of(&key.from), key_of(&key.to)),
        xact: both(bounds.xact.from, bounds.xact.to),
        created,
        ids: bounds.ids.clone(),
        root_span_ids: bounds.root_span_ids.clone(),
    };
    let is_empty = |range: Option<(u64, u64)>| range.is_some_and(|(from, to)| from > to);
    let nothing = is_empty(sought.key)
        || is_empty(sought.xact)
        || sought.created.is_some_and(|(from, to)| from > to)
        || sought.ids.as_ref().is_some_and(Vec::is_empty)
        || sought.root_span_ids.as_ref().is_some_and(Vec::is_empty);
    (!nothing).then_some(sought)
}
