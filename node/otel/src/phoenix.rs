//! Projects of Phoenix, which an attribute of the resource or a header names.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::parent::{Parent, ParentObject};
use crate::{Mapped, Rows};

/// Attribute of a resource with the name of the project.
pub const PHOENIX_PROJECT: &str = "openinference.project.name";

impl Rows {
    /// Gives spans without a parent the project that their resource names.
    ///
    /// `header` is the name of the project in the request, which the resource precedes.
    pub fn with_phoenix_projects(mut self, header: Option<&str>) -> Rows {
        let mut parents: HashMap<String, Arc<Parent>> = HashMap::new();
        for Mapped { parent, row, .. } in self.taken.iter_mut().filter(|one| one.parent.is_none()) {
            let of_resource = row.get("metadata").and_then(|metadata| metadata.get("otel")?.get("resource"));
            let named = of_resource.and_then(|resource| resource.get(PHOENIX_PROJECT)).and_then(Value::as_str);
            let Some(name) = named.or(header).map(str::trim).filter(|name| !name.is_empty()) else { continue };
            let of_name = parents.entry(name.to_owned()).or_insert_with(|| {
                let object = ParentObject::ProjectNamed(name.to_owned());
                Arc::new(Parent { object, span: None, propagated_event: None })
            });
            *parent = Some(Arc::clone(of_name));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn project(rows: &Rows, place: usize) -> Option<ParentObject> {
        rows.taken[place].parent.as_ref().map(|parent| parent.object.clone())
    }

    #[test]
    fn the_resource_precedes_the_header_and_a_parent_precedes_both() {
        let own = Parent { object: ParentObject::Experiment("e".into()), span: None, propagated_event: None };
        let named = json!({"metadata": {"otel": {"resource": {PHOENIX_PROJECT: "shop"}}}});
        let taken = vec![
            Mapped { index: 0, parent: None, row: named.clone() },
            Mapped { index: 1, parent: None, row: json!({}) },
            Mapped { index: 2, parent: Some(Arc::new(own)), row: named },
        ];
        let rows = Rows { taken, rejected: Vec::new() };
        let found = rows.clone().with_phoenix_projects(Some("header"));
        assert_eq!(project(&found, 0), Some(ParentObject::ProjectNamed("shop".into())));
        assert_eq!(project(&found, 1), Some(ParentObject::ProjectNamed("header".into())));
        assert_eq!(project(&found, 2), Some(ParentObject::Experiment("e".into())));
        assert_eq!(project(&rows.with_phoenix_projects(None), 1), None);
    }
}
