//! Amounts of money and tokens that calls use.

/// Number of billionths in one dollar.
pub const NANOS_PER_USD: f64 = 1e9;

/// Money and tokens of one or several calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetAmounts {
    /// Billionths of a US dollar, or zero for a call without a price.
    pub nano_usd: u64,
    pub tokens: u64,
}

impl BudgetAmounts {
    #[must_use]
    pub fn plus(self, more: BudgetAmounts) -> BudgetAmounts {
        BudgetAmounts {
            nano_usd: self.nano_usd.saturating_add(more.nano_usd),
            tokens: self.tokens.saturating_add(more.tokens),
        }
    }

    /// Returns the difference. Negative components become zero.
    #[must_use]
    pub fn minus(self, less: BudgetAmounts) -> BudgetAmounts {
        BudgetAmounts {
            nano_usd: self.nano_usd.saturating_sub(less.nano_usd),
            tokens: self.tokens.saturating_sub(less.tokens),
        }
    }
}

/// Converts a price in dollars, rounded to the nearest billionth. Negative values and NaN become zero.
pub fn nano_usd(usd: f64) -> u64 {
    // A float cast saturates, and turns NaN into zero.
    (usd * NANOS_PER_USD).round() as u64
}

/// Converts an estimate in dollars, rounded up so that it remains an upper bound.
pub fn nano_usd_up(usd: f64) -> u64 {
    (usd * NANOS_PER_USD).ceil() as u64
}

/// Converts an amount to dollars, for responses and metrics.
pub fn usd(nano_usd: u64) -> f64 {
    nano_usd as f64 / NANOS_PER_USD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_become_billionths_and_back() {
        assert_eq!(nano_usd(0.000_002_55), 2550);
        assert_eq!(nano_usd(12.5), 12_500_000_000);
        assert_eq!(nano_usd_up(0.000_000_000_1), 1);
        assert_eq!((nano_usd(-1.0), nano_usd(f64::NAN), nano_usd(f64::INFINITY)), (0, 0, u64::MAX));
        assert_eq!(usd(12_500_000_000), 12.5);
    }

    #[test]
    fn sums_never_overflow() {
        let most = BudgetAmounts { nano_usd: u64::MAX, tokens: 1 };
        assert_eq!(most.plus(most), BudgetAmounts { nano_usd: u64::MAX, tokens: 2 });
        assert_eq!(BudgetAmounts::default().minus(most), BudgetAmounts::default());
    }
}
