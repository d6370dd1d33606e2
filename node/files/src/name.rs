//! Name of a file: its organization, its purpose, and the key of its client.

use assay_storage_model::{ObjectKey, ObjectKind, OrgId};
use uuid::Uuid;

use crate::FilesError;

/// Upper bound of a key. Keys are UUIDs of clients, but others are accepted.
pub const KEY_BYTES_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Named by rows.
    Attachment,
    /// Code of functions.
    Bundle,
    /// Rows that one request was too small for.
    Overflow,
}

impl Purpose {
    pub const ALL: [Purpose; 3] = [Purpose::Attachment, Purpose::Bundle, Purpose::Overflow];

    pub fn word(self) -> &'static str {
        match self {
            Purpose::Attachment => "attachment",
            Purpose::Bundle => "bundle",
            Purpose::Overflow => "overflow",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileName {
    pub org: OrgId,
    pub purpose: Purpose,
    pub key: String,
}

impl FileName {
    pub fn new(org: OrgId, purpose: Purpose, key: &str) -> Result<FileName, FilesError> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX || key.contains(char::is_control) {
            let said = format!("`key` has to be a string of 1 to {KEY_BYTES_MAX} bytes, such as a UUID");
            return Err(FilesError::BadRequest(said));
        }
        Ok(FileName { org, purpose, key: key.to_owned() })
    }

    /// Returns the id of the row with the metadata.
    pub fn row_id(&self) -> String {
        format!("{}:{}", self.purpose.word(), self.key)
    }

    /// The name that a row is of.
    pub fn of_row(org: OrgId, id: &str) -> Option<FileName> {
        let (word, key) = id.split_once(':')?;
        let purpose = Purpose::ALL.into_iter().find(|purpose| purpose.word() == word)?;
        FileName::new(org, purpose, key).ok()
    }

    /// Returns the object with the content. Its id depends on the organization, so that files never share an object.
    pub fn content(&self) -> ObjectKey {
        let mut hasher = blake3::Hasher::new_derive_key("assay file content 1");
        hasher.update(self.org.0.as_bytes()).update(self.row_id().as_bytes());
        let mut id = [0; 16];
        hasher.finalize_xof().fill(&mut id);
        ObjectKey::new(self.org, ObjectKind::Files, Uuid::from_bytes(id))
    }

    /// Returns the object with the metadata of all files of an organization.
    pub fn index(org: OrgId) -> ObjectKey {
        ObjectKey::new(org, ObjectKind::Files, org.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORG: OrgId = OrgId(Uuid::from_u128(1));

    #[test]
    fn a_name_is_read_from_its_row() {
        for purpose in Purpose::ALL {
            let name = FileName::new(ORG, purpose, "a:b").expect("a name");
            assert_eq!(FileName::of_row(ORG, &name.row_id()), Some(name));
        }
        assert_eq!(FileName::of_row(ORG, "other:b"), None);
        assert_eq!(FileName::of_row(ORG, "b"), None);
    }

    #[test]
    fn every_file_has_an_object_of_its_own() {
        let name =
            |org, purpose, key| FileName::new(OrgId(Uuid::from_u128(org)), purpose, key).expect("a name").content();
        let one = name(1, Purpose::Attachment, "a");
        assert_ne!(one, FileName::index(ORG));
        for other in
            [name(2, Purpose::Attachment, "a"), name(1, Purpose::Bundle, "a"), name(1, Purpose::Attachment, "b")]
        {
            assert_ne!(one.id, other.id);
        }
    }

    #[test]
    fn a_key_is_a_text_of_some_bytes() {
        for wrong in ["", "a\nb", &"a".repeat(KEY_BYTES_MAX + 1)] {
            assert!(FileName::new(ORG, Purpose::Attachment, wrong).is_err(), "{wrong:?}");
        }
    }
}
