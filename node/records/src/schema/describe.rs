//! JSON schemas (OpenAPI 3.0) of a kind, derived from the fields and shapes that validate requests.
//!
//! Functions of the kind, such as `complete` and `fold`, are applied to an empty body to find their effects.

use assay_node_shapes::Shape;
use assay_node_shapes::json_schema::{Object, nullable, schema, text, time, uuid, uuid_or_empty};
use assay_storage_catalog::State;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Definition;
use crate::draft::Body;
use crate::kind::{Field, Filter, Home, Kind, Making, Naming, OnCreate, OnPatch};
use crate::kinds::{GROUP, inactive, organization};

/// Description of the requests and responses of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Schema of the bodies of create and replace.
    pub create: Value,
    pub patch: Value,
    pub answer: Value,
    /// Query parameters of its list other than those of pages and ids, with their schemas.
    pub filters: Vec<(&'static str, Value)>,
    /// Default limit of a list; `None` for all records.
    pub list_default: Option<u64>,
    /// Whether the response of a create has a secret, which is returned only once.
    pub has_key: bool,
    /// Whether bodies can request features that are not implemented, which is answered with 501.
    pub refuses_some: bool,
}

impl Kind {
    pub fn describe(&self) -> Description {
        let filters = self.filters.iter().map(|(name, filter)| (*name, filter_schema(self, *filter)));
        Description {
            create: create(self),
            patch: patch(self),
            answer: answer(self),
            filters: filters.collect(),
            list_default: self.list_default,
            has_key: self.naming == Naming::Secret,
            refuses_some: inactive::refuses_some(self.record),
        }
    }
}

impl Definition {
    pub fn describe(self) -> Description {
        let mut create = Object::default();
        let mut patch = Object::default();
        for field in self.fields() {
            create.put(field.name, schema(&field.shape), field.create == OnCreate::Required);
            if field.patch != OnPatch::Fixed {
                patch.put(field.name, schema(&field.shape), false);
            }
        }
        // Tags of rows must be unique.
        for tags in [&mut create, &mut patch].into_iter().filter_map(|object| object.properties.get_mut("tags")) {
            tags["uniqueItems"] = true.into();
        }
        let name = match self {
            Definition::Prompt => "prompt_name",
            Definition::Function => "function_name",
        };
        let filters = vec![(name, text()), ("slug", text()), ("project_name", text()), ("project_id", uuid())];
        let answer = answer_of_definition(self);
        Description {
            create: create.done(),
            patch: patch.done(),
            answer,
            filters,
            list_default: None,
            has_key: false,
            refuses_some: false,
        }
    }
}

/// Returns the schemas of a patch and of a response for organizations.
pub fn describe_organization() -> (Value, Value) {
    let (mut patch, mut shown) = (Object::default(), Object::default());
    shown.put("id", uuid(), true);
    for (name, shape) in organization::FIELDS {
        patch.put(name, schema(shape), false);
        let is_name = *name == "name";
        shown.always(name, if is_name { schema(shape) } else { nullable(schema(shape)) });
    }
    shown.put("created", time(), true);
    (patch.done(), shown.done())
}

/// Returns the schema of users in responses.
pub fn describe_user() -> Value {
    let mut shown = Object::default();
    shown.put("id", uuid(), true);
    for field in crate::kinds::user::FIELDS {
        shown.always(field, nullable(text()));
    }
    shown.put("created", time(), true);
    shown.done()
}

fn create(kind: &Kind) -> Value {
    let mut object = Object::default();
    for field in kind.fields.iter().filter(|field| field.create != OnCreate::Ours) {
        object.put(field.name, schema(&field.shape), field.create == OnCreate::Required);
    }
    if kind.home == Home::Organization {
        object.put("org_name", text(), false);
        object.put("org_id", uuid_or_empty(), false);
    }
    if kind.naming == Naming::UniqueOrFresh {
        object.put("ensure_new", json!({"type": "boolean"}), false);
        object.put("base_experiment", text(), false);
        object.put("ancestor_commits", json!({"type": "array", "items": text()}), false);
    }
    object.done()
}

fn patch(kind: &Kind) -> Value {
    let mut object = Object::default();
    for field in kind.fields.iter().filter(|field| field.patch != OnPatch::Fixed) {
        let sent = folded(kind, field.name, &json!([]));
        if sent.is_some_and(|sent| !sent.contains_key(field.name)) {
            object.put(&format!("add_{}", field.name), schema(&field.shape), false);
            object.put(&format!("remove_{}", field.name), schema(&field.shape), false);
        } else {
            object.put(field.name, schema(&field.shape), field.patch == OnPatch::Said);
        }
    }
    object.done()
}

/// Returns the result of the kind's fold for one field; `None` if it has no fold or refuses the field.
fn folded(kind: &Kind, field: &str, value: &Value) -> Option<Body> {
    let mut sent = Body::from_iter([(field.to_owned(), value.clone())]);
    (kind.fold?)(&Body::new(), &mut sent).ok()?;
    Some(sent)
}

fn answer(kind: &Kind) -> Value {
    let mut object = Object::default();
    object.put("id", uuid(), true);
    if kind.record == assay_storage_model::catalog::RecordKind::ACL {
        object.put("_object_org_id", uuid(), true);
    }
    // System records belong to no organization, and a key can be for several.
    let is_anyones = !(kind.builtin)().is_empty() || kind.naming == Naming::Secret;
    if kind.home == Home::Organization {
        object.always("org_id", if is_anyones { nullable(uuid()) } else { uuid() });
    }
    for field in kind.fields.iter().filter(|field| !matches!(field.shape, Shape::Secret { .. })) {
        let is_time = field.create == OnCreate::Ours && (field.name.ends_with("_at") || field.name == "used");
        let schema = if is_time { time() } else { schema(&field.shape) };
        object.always(field.name, if is_always_set(kind, field) { schema } else { nullable(schema) });
    }
    object.put("created", time(), true);
    if let Some(join) = kind.join {
        let mut joined = Body::new();
        join(&State::default(), &mut joined);
        joined.keys().for_each(|name| object.always(name, nullable(text())));
    }
    if kind.has_deleted_at {
        object.always("deleted_at", nullable(time()));
    }
    object.done()
}

/// Returns whether every record has the field. System records and default groups have no creator.
fn is_always_set(kind: &Kind, field: &Field) -> bool {
    let mut completed = Body::new();
    (kind.complete)(&Making { id: Uuid::nil(), user: Uuid::nil() }, &mut completed);
    let has_maker = kind.name != GROUP.name && (kind.builtin)().is_empty();
    let by_service = completed.contains_key(field.name) && (field.name != "user_id" || has_maker);
    let of_secret = kind.naming == Naming::Secret && field.name == "preview_name";
    field.create == OnCreate::Required || field.name == kind.named_by() || by_service || of_secret
}

fn filter_schema(kind: &Kind, filter: Filter) -> Value {
    match filter {
        Filter::Name | Filter::ProjectName => text(),
        Filter::ProjectId => uuid(),
        // A JSON object as text.
        Filter::Metadata => json!({"type": "string", "format": "json"}),
        Filter::Field(name) => {
            let field = kind.fields.iter().find(|field| field.name == name);
            field.map_or_else(text, |field| schema(&field.shape))
        }
    }
}

/// Returns the schema of the row of a definition in a response.
fn answer_of_definition(definition: Definition) -> Value {
    let mut object = Object::default();
    object.put("id", uuid(), true);
    object.put("_xact_id", text(), true);
    object.put("log_id", json!({"type": "string", "enum": ["p"]}), true);
    object.put("org_id", uuid(), true);
    object.put("created", nullable(time()), true);
    for field in definition.fields() {
        let schema = schema(&field.shape);
        object.always(field.name, if field.create == OnCreate::Required { schema } else { nullable(schema) });
    }
    object.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{ACL, AI_SECRET, API_KEY, DATASET, EXPERIMENT, PROJECT, ROLE};

    fn names(schema: &Value) -> Vec<&str> {
        schema["properties"].as_object().expect("an object").keys().map(String::as_str).collect()
    }

    #[test]
    fn bodies_say_what_is_read_and_answers_what_is_shown() {
        let project = PROJECT.describe();
        assert_eq!(project.create["required"], json!(["name"]));
        assert_eq!(names(&project.create), ["name", "description", "org_name", "org_id"]);
        assert_eq!(names(&project.patch), ["name", "description", "user_id", "settings"]);
        assert_eq!(project.patch.get("required"), None);
        let shown = ["id", "org_id", "name", "description", "user_id", "settings", "created", "deleted_at"];
        assert_eq!(names(&project.answer), shown);
        assert!(names(&EXPERIMENT.describe().create).contains(&"ensure_new"));
        assert_eq!(EXPERIMENT.describe().list_default, Some(1000));
        assert_eq!(ACL.describe().filters[0].1, schema(&ACL.fields[0].shape));
    }

    #[test]
    fn what_the_service_always_sets_is_never_null() {
        let may_be_null = |kind: &Kind, name: &str| kind.describe().answer["properties"][name]["nullable"] == true;
        assert!(!may_be_null(&EXPERIMENT, "name") && !may_be_null(&EXPERIMENT, "public"));
        assert!(may_be_null(&EXPERIMENT, "description") && !may_be_null(&EXPERIMENT, "user_id"));
        assert!(may_be_null(&GROUP, "user_id") && may_be_null(&ROLE, "user_id"));
        assert!(!may_be_null(&DATASET, "url_slug") && !may_be_null(&API_KEY, "preview_name"));
        assert!(may_be_null(&ROLE, "org_id") && may_be_null(&API_KEY, "org_id") && !may_be_null(&PROJECT, "org_id"));
        assert!(names(&API_KEY.describe().answer).contains(&"user_email"));
    }

    #[test]
    fn a_secret_is_taken_and_not_shown() {
        let secret = AI_SECRET.describe();
        assert!(names(&secret.create).contains(&"secret") && names(&secret.patch).contains(&"secret"));
        assert!(!names(&secret.answer).contains(&"secret") && names(&secret.answer).contains(&"preview_secret"));
        assert!(API_KEY.describe().has_key && !secret.has_key);
    }

    #[test]
    fn lists_that_are_folded_are_added_to_and_taken_from() {
        let group = GROUP.describe().patch;
        assert_eq!(
            names(&group),
            [
                "name",
                "description",
                "add_member_users",
                "remove_member_users",
                "add_member_groups",
                "remove_member_groups"
            ]
        );
        assert!(names(&GROUP.describe().create).contains(&"member_users"));
    }

    #[test]
    fn a_function_says_more_than_a_prompt() {
        let (prompt, function) = (Definition::Prompt.describe(), Definition::Function.describe());
        assert_eq!(prompt.create["required"], json!(["project_id", "name", "slug"]));
        assert_eq!(function.create["required"], json!(["project_id", "name", "slug", "function_data"]));
        assert!(!names(&function.patch).contains(&"slug") && names(&prompt.patch).contains(&"slug"));
    }
}
