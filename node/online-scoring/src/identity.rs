//! Identities of triggers: ids of spans, keys of runs, and tokens, all derived from what a run reads (G-41).

use uuid::Uuid;

use crate::function_key::OnlineFunction;
use crate::input_digest::InputDigest;
use crate::scope::TriggerScope;

/// Namespace of the ids of this crate.
const NAMESPACE: Uuid = Uuid::from_u128(0x3f0a_6d1e_8c57_4b0d_9a61_5b7e_27c4_10f2);
/// Digits of the span ids that clients write.
const SPAN_ID_DIGITS: usize = 16;

/// Identity of the effect of one function on one input. A repeated run has the same and overwrites itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EffectIdentity {
    /// Id of the scorer's row.
    pub row_id: Uuid,
    /// Span id of the scorer's row: 16 hexadecimal digits.
    pub span_id: String,
}

impl EffectIdentity {
    /// Returns the identity for a row that keeps the state: the scored row, or the root of the scored trace.
    pub fn new(row_id: &str, scope: &TriggerScope, function: &OnlineFunction, digest: InputDigest) -> EffectIdentity {
        let digest = digest.to_string();
        let parts = |purpose: &str| [purpose, row_id, &scope_text(scope), &function.key(), &digest].map(str::to_owned);
        let span = named(&parts("span")).simple().to_string();
        EffectIdentity { row_id: named(&parts("row")), span_id: span[..SPAN_ID_DIGITS].to_owned() }
    }
}

/// Returns the idempotency key of a run: equal for the same function, scope and input.
///
/// A forced run has the transaction that demands it, so that it differs from the completed one.
pub fn run_key(
    function: &OnlineFunction,
    scope: &TriggerScope,
    digest: Option<InputDigest>,
    forced_xact: Option<u64>,
) -> String {
    let digest = digest.map(|digest| digest.to_string()).unwrap_or_default();
    let forced = forced_xact.map(|xact| xact.to_string()).unwrap_or_default();
    named(&["run".to_owned(), function.key(), scope_text(scope), digest, forced]).to_string()
}

/// Returns the token of a row's state. A replaced row gets another one, so that older results do not reach it.
pub fn state_token(row_id: &str, xact: u64) -> String {
    named(&["token".to_owned(), row_id.to_owned(), xact.to_string()]).to_string()
}

fn scope_text(scope: &TriggerScope) -> String {
    scope.to_json().to_string()
}

/// Returns the id of parts. Lengths before the parts keep neighbours apart.
fn named(parts: &[String]) -> Uuid {
    let name: String = parts.iter().map(|part| format!("{}:{part}", part.len())).collect();
    Uuid::new_v5(&NAMESPACE, name.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    fn function(id: &str) -> OnlineFunction {
        OnlineFunction::Saved { id: id.to_owned(), version: None }
    }

    fn digest(output: &str) -> InputDigest {
        InputDigest::of_row(json!({"output": output}).as_object().expect("an object"))
    }

    #[test]
    fn each_part_of_a_trigger_changes_its_identity() {
        let group = TriggerScope::Group { key: "metadata.s".to_owned(), value: "v".to_owned() };
        let identities = [
            EffectIdentity::new("r", &TriggerScope::Span, &function("f"), digest("a")),
            EffectIdentity::new("s", &TriggerScope::Span, &function("f"), digest("a")),
            EffectIdentity::new("r", &TriggerScope::Trace, &function("f"), digest("a")),
            EffectIdentity::new("r", &group, &function("f"), digest("a")),
            EffectIdentity::new("r", &TriggerScope::Span, &function("g"), digest("a")),
            EffectIdentity::new("r", &TriggerScope::Span, &function("f"), digest("b")),
        ];
        let ids: HashSet<Uuid> = identities.iter().map(|identity| identity.row_id).collect();
        let spans: HashSet<&str> = identities.iter().map(|identity| identity.span_id.as_str()).collect();
        assert_eq!((ids.len(), spans.len()), (identities.len(), identities.len()));
        assert!(spans.iter().all(|span| span.len() == 16));
    }

    #[test]
    fn identities_do_not_change_between_versions_of_the_program() {
        let identity = EffectIdentity::new("r", &TriggerScope::Span, &function("f"), digest("a"));
        let ids = (identity.row_id.to_string(), identity.span_id);
        let expected = ("9d81bb05-bf84-508a-a980-957ccae552b1".to_owned(), "f888062d18ca5c06".to_owned());
        assert_eq!(ids, expected);
        assert_eq!(state_token("r", 7), "c3b54ce8-329a-541d-97af-3fedf0c53715");
    }

    #[test]
    fn a_forced_run_has_a_key_of_its_own() {
        let key = |forced| run_key(&function("f"), &TriggerScope::Span, Some(digest("a")), forced);
        assert_eq!(key(None), key(None));
        assert_ne!(key(None), key(Some(7)));
        assert_ne!(key(Some(7)), key(Some(8)));
        assert_ne!(key(None), run_key(&function("f"), &TriggerScope::Span, None, None));
    }
}
