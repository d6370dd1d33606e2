//! Rate limit headers of responses, which report the limits with the smallest remainder (G-35).

use crate::ledger::BudgetStanding;

/// Limits of requests and tokens with the smallest remainder among the budgets of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimitHeaders {
    requests: Option<HeaderLimit>,
    tokens: Option<HeaderLimit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HeaderLimit {
    limit: u64,
    remaining: u64,
    /// Time until the end of the window, or `None` if the window never ends.
    resets_in_ms: Option<i64>,
}

impl RateLimitHeaders {
    /// Includes the limits of another budget.
    pub(crate) fn add(&mut self, standing: &BudgetStanding) {
        let of = |known: &mut Option<HeaderLimit>, found: Option<(u64, u64)>| {
            let Some((limit, remaining)) = found else { return };
            if known.is_none_or(|known| remaining < known.remaining) {
                *known = Some(HeaderLimit { limit, remaining, resets_in_ms: standing.resets_in_ms });
            }
        };
        of(&mut self.requests, standing.requests);
        of(&mut self.tokens, standing.tokens);
    }

    /// Returns the names and values of the headers.
    ///
    /// Times have the form `59s`. A window without an end has no reset header.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        const REQUESTS: [&str; 3] =
            ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"];
        const TOKENS: [&str; 3] =
            ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"];
        let mut pairs = Vec::new();
        for (names, limit) in [(REQUESTS, self.requests), (TOKENS, self.tokens)] {
            let Some(found) = limit else { continue };
            pairs.push((names[0], found.limit.to_string()));
            pairs.push((names[1], found.remaining.to_string()));
            if let Some(left) = found.resets_in_ms.and_then(|left| u64::try_from(left).ok()) {
                pairs.push((names[2], format!("{}s", left.div_ceil(1000))));
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_with_the_least_left_is_told() {
        let mut headers = RateLimitHeaders::default();
        assert_eq!(headers.pairs(), []);
        headers.add(&BudgetStanding { requests: Some((100, 40)), tokens: None, resets_in_ms: Some(1001) });
        headers.add(&BudgetStanding { requests: Some((60, 7)), tokens: Some((10, 0)), resets_in_ms: None });
        headers.add(&BudgetStanding { requests: Some((9, 8)), tokens: Some((10, 5)), resets_in_ms: Some(1) });
        let expected = [
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "7"),
            ("x-ratelimit-limit-tokens", "10"),
            ("x-ratelimit-remaining-tokens", "0"),
        ];
        assert_eq!(headers.pairs(), expected.map(|(name, value)| (name, value.to_owned())));
        headers.add(&BudgetStanding { requests: Some((5, 0)), tokens: None, resets_in_ms: Some(59_001) });
        assert!(headers.pairs().contains(&("x-ratelimit-reset-requests", "60s".to_owned())));
    }
}
