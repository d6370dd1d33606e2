//! Number of further rows that would settle an undecided change.

use serde::Serialize;

use super::{CHANGED_ROWS_MIN, ERROR_CHANCE, SAME_WITHIN};

/// Upper bound of the further rows that are worth a number.
pub const ROWS_TO_SETTLE_MAX: u64 = 100_000;
/// Quantile of the normal distribution for an interval of 95 %.
const INTERVAL_QUANTILE: f64 = 1.959_964;
/// Quantile of the normal distribution for a chance of 80 % to settle a change of this size.
const POWER_QUANTILE: f64 = 0.841_621;

/// Number of further rows that would settle a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowsToSettle {
    /// The change is decided.
    Settled,
    /// About so many rows, with a chance of 80 %.
    About(u64),
    /// More than [`ROWS_TO_SETTLE_MAX`] rows.
    TooMany,
    /// The difference is about zero, so that more rows would decide nothing.
    NotByMoreRows,
}

/// Change of the rows so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObservedChange {
    pub rows: usize,
    pub changed: usize,
    pub difference: f64,
    pub deviation: f64,
    pub is_score: bool,
}

impl RowsToSettle {
    /// Returns the further rows for an undecided change.
    ///
    /// The total is the usual sample size of a paired test, with the correction of Guenther (1981) for few rows. A
    /// verdict also needs [`CHANGED_ROWS_MIN`] changes, at the observed share of changes.
    pub(super) fn new(observed: &ObservedChange) -> RowsToSettle {
        let ObservedChange { rows, changed, deviation, .. } = *observed;
        let size = observed.difference.abs();
        if size <= SAME_WITHIN || changed == 0 {
            return RowsToSettle::NotByMoreRows;
        }
        let by_interval = if deviation <= SAME_WITHIN && observed.is_score {
            // The interval of equal differences excludes zero from this number on.
            -ERROR_CHANCE.ln() / size.ln_1p()
        } else {
            let effect = (INTERVAL_QUANTILE + POWER_QUANTILE) * deviation / size;
            effect.powi(2) + INTERVAL_QUANTILE.powi(2) / 2.0
        };
        let by_changes = CHANGED_ROWS_MIN as f64 * rows as f64 / changed as f64;
        let further = (by_interval.max(by_changes).ceil() - rows as f64).max(1.0);
        if further > ROWS_TO_SETTLE_MAX as f64 { RowsToSettle::TooMany } else { RowsToSettle::About(further as u64) }
    }
}
