//! Dataset: rows to evaluate against, within a project.

use assay_node_auth::ObjectType;
use assay_storage_model::ObjectKind;
use assay_storage_model::catalog::RecordKind;
use uuid::Uuid;

use super::{LINE, METADATA, NAME, PROSE, TAGS};
use crate::kind::{Field, Filter, Guard, Home, Kind, Naming, OnPatch, nothing_derived};
use crate::shape::Shape;

/// Letters of a slug that come from the name.
const SLUG_LETTERS_MAX: usize = 48;

pub static DATASET: Kind = Kind {
    name: "dataset",
    record: RecordKind::DATASET,
    home: Home::Project,
    naming: Naming::Unique,
    guard: Guard::Own(ObjectType::Dataset),
    fields: &[
        Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::optional("tags", TAGS, OnPatch::Replaced),
        Field::optional("metadata", METADATA, OnPatch::Merged),
        Field::ours("url_slug", LINE, OnPatch::Fixed),
    ],
    filters: &[
        ("dataset_name", Filter::Name),
        ("name", Filter::Name),
        ("project_name", Filter::ProjectName),
        ("project_id", Filter::ProjectId),
    ],
    list_default: None,
    rows: &[ObjectKind::Dataset],
    has_deleted_at: true,
    builtin: Vec::new,
    fold: None,
    check: None,
    complete: |making, fields| {
        let name = fields.get("name").and_then(|name| name.as_str()).unwrap_or_default();
        let slug = slug(name, making.id);
        fields.insert("url_slug".into(), slug.into());
        fields.insert("user_id".into(), making.user.to_string().into());
    },
    derive: nothing_derived,
    join: None,
};

/// For addresses: the name's letters and digits, and some of the id, since two names can have the same letters. It
/// stays when the name changes, so that addresses do.
fn slug(name: &str, id: Uuid) -> String {
    let mut slug = String::new();
    for letter in name.chars().take(SLUG_LETTERS_MAX) {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let end = if slug.is_empty() || slug.ends_with('-') { "" } else { "-" };
    format!("{slug}{end}{}", &id.simple().to_string()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_has_the_names_letters_and_some_of_the_id() {
        let id = Uuid::from_u128(0x1234_5678 << 96);
        for (name, expected) in [
            ("My Data, v2", "my-data-v2-12345678"),
            ("--", "12345678"),
            ("données!", "donn-es-12345678"),
            (&"x".repeat(500), &format!("{}-12345678", "x".repeat(48))),
        ] {
            assert_eq!(slug(name, id), expected);
        }
    }
}
