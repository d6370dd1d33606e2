//! What the rooms below refuse, as refusals of this one. Their sentences are for callers already, but for faults of ours.

use assay_node_files::FilesError;
use assay_node_functions::FunctionsError;
use assay_node_objects::ingest::IngestError;
use assay_node_objects::{ReadError, WriteError};
use assay_node_query::AskError;
use assay_node_records::RecordsError;
use assay_storage_model::NotWritten;
use assay_storage_model::event::RowError;
use assay_storage_model::xact::NotAnXact;

use crate::refusal::{Kind, Refusal};

impl From<RecordsError> for Refusal {
    fn from(error: RecordsError) -> Refusal {
        let kind = match &error {
            RecordsError::BadRequest(_) => Kind::BadRequest,
            RecordsError::Unauthenticated(_) => Kind::Unauthorized,
            RecordsError::Forbidden(_) => Kind::Forbidden,
            RecordsError::NotServed(_) => Kind::NotImplemented,
            RecordsError::NotFound(_) => Kind::NotFound,
            RecordsError::Taken(_) => Kind::Conflict,
            RecordsError::TooLarge(_) => Kind::TooLarge,
            RecordsError::Busy(_) => Kind::Busy,
            RecordsError::Unavailable(_) | RecordsError::Unknown(_) => Kind::Unavailable,
            RecordsError::NoSpace(_) => Kind::NoSpace,
            RecordsError::Internal(_) => return Refusal::internal(error),
        };
        Refusal::new(kind, error.to_string())
    }
}

impl From<WriteError> for Refusal {
    fn from(error: WriteError) -> Refusal {
        let retry_after_seconds = match &error {
            WriteError::NotWritten { why: NotWritten::Busy(_), retry_after } => Some(retry_after.as_secs().max(1)),
            _ => None,
        };
        let kind = match &error {
            WriteError::Row { .. } => Kind::BadRequest,
            WriteError::TooLarge { .. } => Kind::TooLarge,
            WriteError::Gone { .. } => Kind::NotFound,
            WriteError::KeyReused { .. } => Kind::Conflict,
            WriteError::NotWritten { why: NotWritten::Busy(_), .. } => Kind::Busy,
            WriteError::NotWritten { why: NotWritten::NoSpace(_), .. } => Kind::NoSpace,
            WriteError::NotWritten { .. } | WriteError::Unknown { .. } => Kind::Unavailable,
        };
        Refusal { retry_after_seconds, ..Refusal::new(kind, error.to_string()) }
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Refusal {
        let kind = match &error {
            ReadError::BadRequest(_) => Kind::BadRequest,
            ReadError::Gone { .. } => Kind::NotFound,
            ReadError::Past { .. } => Kind::Past,
            ReadError::Busy { .. } => Kind::Busy,
            ReadError::NoSpace(_) => Kind::NoSpace,
            ReadError::Unavailable(_) => Kind::Unavailable,
            ReadError::Damaged(_) | ReadError::Internal(_) => return Refusal::internal(error),
        };
        Refusal::new(kind, error.to_string())
    }
}

impl From<FilesError> for Refusal {
    fn from(error: FilesError) -> Refusal {
        match error {
            FilesError::BadRequest(why) => Refusal::bad(why),
            FilesError::TooLarge(why) => Refusal::new(Kind::TooLarge, why),
            FilesError::Write(why) => why.into(),
            FilesError::Read(why) => why.into(),
            FilesError::Changed => Refusal::new(Kind::Unavailable, error.to_string()),
            FilesError::Damaged(_) => Refusal::internal(error),
        }
    }
}

impl From<FunctionsError> for Refusal {
    fn from(error: FunctionsError) -> Refusal {
        match error {
            FunctionsError::Records(why) => why.into(),
            FunctionsError::Read(why) => why.into(),
            FunctionsError::Write(why) => why.into(),
            FunctionsError::Row { .. } => Refusal::bad(error.to_string()),
            FunctionsError::Internal(_) => Refusal::internal(error),
        }
    }
}

impl From<AskError> for Refusal {
    fn from(error: AskError) -> Refusal {
        let kind = match &error {
            AskError::BadRequest(_) => Kind::BadRequest,
            AskError::Gone { .. } => Kind::Forbidden,
            AskError::Past { .. } => Kind::Past,
            AskError::TooMuch(_) => Kind::TooLarge,
            AskError::Busy(_) => Kind::Busy,
            AskError::Refused { retry_after_seconds, .. } => {
                let refusal = Refusal::new(Kind::Busy, error.to_string());
                return Refusal { retry_after_seconds: Some(*retry_after_seconds), ..refusal };
            }
            AskError::NotServed(_) => Kind::NotImplemented,
            AskError::Unavailable(_) => Kind::Unavailable,
            AskError::TooLate(_) => Kind::TooLate,
            AskError::NoSpace(_) => Kind::NoSpace,
            AskError::Damaged(_) | AskError::Internal(_) => return Refusal::internal(error),
        };
        Refusal::new(kind, error.to_string())
    }
}

impl From<IngestError> for Refusal {
    fn from(error: IngestError) -> Refusal {
        Refusal::bad(error.to_string())
    }
}

impl From<RowError> for Refusal {
    fn from(error: RowError) -> Refusal {
        Refusal::bad(error.to_string())
    }
}

impl From<NotAnXact> for Refusal {
    fn from(error: NotAnXact) -> Refusal {
        Refusal::bad(error.to_string())
    }
}
