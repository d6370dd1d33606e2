//! Changes of lists in a patch: fields with the prefixes `add_` and `remove_`.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::ShapeError;

/// Replaces the changes of lists in a patch by whole lists.
///
/// Elements that a list has already are not added again. The lists themselves are ignored in a patch.
pub fn fold_lists(
    stored: &Map<String, Value>,
    sent: &mut Map<String, Value>,
    lists: &[&str],
) -> Result<(), ShapeError> {
    for list in lists {
        sent.remove(*list);
        let mut named = |what: &str| {
            let name = format!("{what}_{list}");
            match sent.remove(&name) {
                None | Some(Value::Null) => Ok(Vec::new()),
                Some(Value::Array(items)) => Ok(items),
                Some(_) => Err(ShapeError(format!("`{name}` has to be a list"))),
            }
        };
        let (add, remove) = (named("add")?, named("remove")?);
        if add.is_empty() && remove.is_empty() {
            continue;
        }
        let mut items = stored.get(*list).and_then(Value::as_array).cloned().unwrap_or_default();
        let removed: HashSet<String> = remove.iter().map(identity).collect();
        items.retain(|item| !removed.contains(&identity(item)));
        let mut there: HashSet<String> = items.iter().map(identity).collect();
        items.extend(add.into_iter().filter(|item| there.insert(identity(item))));
        sent.insert((*list).to_owned(), Value::Array(items));
    }
    Ok(())
}

/// Returns a text that is equal for all spellings of an id, and for objects that differ in null members only.
fn identity(item: &Value) -> String {
    match item {
        Value::String(text) => Uuid::parse_str(text).map_or_else(|_| text.to_ascii_lowercase(), |id| id.to_string()),
        Value::Object(members) => {
            let members: BTreeMap<_, _> = members.iter().filter(|(_, value)| !value.is_null()).collect();
            format!("{members:?}")
        }
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "a55a0001-0000-4000-8000-00000000000b";

    fn folded(stored: Value, sent: Value) -> Result<Value, ShapeError> {
        let object = |value: Value| value.as_object().cloned().expect("an object");
        let mut sent = object(sent);
        fold_lists(&object(stored), &mut sent, &["users"]).map(|()| sent.into())
    }

    #[test]
    fn elements_are_added_once_and_removed_in_any_spelling() {
        let bare = ID.replace('-', "").to_uppercase();
        for (stored, sent, expected) in [
            (json!({"users": [ID]}), json!({"remove_users": [bare]}), json!({"users": []})),
            (json!({"users": [ID]}), json!({"add_users": [bare, "x", "X"]}), json!({"users": [ID, "x"]})),
            (json!({"users": [1]}), json!({"add_users": ["1", 1, 1.5]}), json!({"users": [1, "1", 1.5]})),
            (
                json!({"users": [{"a": 1, "b": null}]}),
                json!({"add_users": [{"a": 1}, {"b": 1}]}),
                json!({"users": [{"a": 1, "b": null}, {"b": 1}]}),
            ),
            (json!({"users": [ID]}), json!({"users": [], "add_users": null, "name": "n"}), json!({"name": "n"})),
        ] {
            assert_eq!(folded(stored.clone(), sent.clone()), Ok(expected), "{stored} {sent}");
        }
        assert!(folded(json!({}), json!({"add_users": 1})).is_err());
    }
}
