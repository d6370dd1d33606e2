//! Token budgets of thinking for models of Claude, at Anthropic's API and at Bedrock.

use crate::form::ReasoningEffort;

/// `max_tokens` of a request that names no bound, to a model whose own bound is not known.
pub const MAX_TOKENS_DEFAULT: u64 = 4096;
/// Smallest budget that Claude takes.
const BUDGET_TOKENS_MIN: u64 = 1024;

/// Budget of thinking, with the bound of all tokens of the answer, which has to be larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinkingBudget {
    pub budget_tokens: u64,
    pub max_tokens: u64,
}

impl ThinkingBudget {
    /// Returns the wanted budget, or the share of the answer that an effort stands for, within the limits of the model.
    pub fn new(
        wanted: Option<u64>,
        effort: Option<&ReasoningEffort>,
        max_tokens: u64,
        model_max_tokens: Option<u64>,
    ) -> ThinkingBudget {
        let budget_tokens = wanted.unwrap_or_else(|| share(effort, max_tokens)).max(BUDGET_TOKENS_MIN);
        if max_tokens > budget_tokens {
            return ThinkingBudget { budget_tokens, max_tokens };
        }
        let larger = budget_tokens.saturating_add(budget_tokens / 2);
        match model_max_tokens.filter(|model_max| larger > *model_max) {
            None => ThinkingBudget { budget_tokens, max_tokens: larger },
            Some(model_max) => {
                let max_tokens = model_max.max(max_tokens).max(BUDGET_TOKENS_MIN + 1);
                let most = (max_tokens / 3 * 2).max(BUDGET_TOKENS_MIN);
                ThinkingBudget {
                    budget_tokens: if budget_tokens < max_tokens { budget_tokens } else { most },
                    max_tokens,
                }
            }
        }
    }
}

/// Returns the tokens of an answer that an effort stands for.
fn share(effort: Option<&ReasoningEffort>, max_tokens: u64) -> u64 {
    let tenths = match effort {
        Some(ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low) => 2,
        Some(ReasoningEffort::Medium | ReasoningEffort::Other(_)) | None => 5,
        Some(ReasoningEffort::High) => 8,
        Some(ReasoningEffort::ExtraHigh) => 10,
    };
    let (tens, rest) = (max_tokens / 10, max_tokens % 10);
    tens.saturating_mul(tenths).saturating_add(rest * tenths / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_below_the_bound_of_the_answer() {
        let of = |wanted, effort: Option<ReasoningEffort>, max, model_max| {
            let budget = ThinkingBudget::new(wanted, effort.as_ref(), max, model_max);
            (budget.budget_tokens, budget.max_tokens)
        };
        assert_eq!(of(None, Some(ReasoningEffort::High), 10_000, None), (8_000, 10_000));
        assert_eq!(of(None, None, 100, None), (1024, 1536), "the bound grows");
        assert_eq!(of(Some(5_000), None, 4_000, Some(6_000)), (5_000, 6_000), "up to that of the model");
        assert_eq!(of(Some(9_000), None, 4_000, Some(6_000)), (4_000, 6_000), "which the budget stays below");
        assert_eq!(of(Some(9_000), None, 10, Some(10)), (1024, 1025), "the least of all");
        for effort in [ReasoningEffort::Low, ReasoningEffort::Medium, ReasoningEffort::ExtraHigh] {
            for (max, model_max) in [(0, None), (1, Some(1)), (1024, Some(1024)), (u64::MAX, None)] {
                let (budget, max_tokens) = of(None, Some(effort.clone()), max, model_max);
                assert!(budget < max_tokens || max_tokens == u64::MAX, "{budget} of {max_tokens}");
            }
        }
    }
}
