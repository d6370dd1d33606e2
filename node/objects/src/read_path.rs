//! The read path: routing to a replica (`fetch`), pages (`page`), threads (`readers`) and JSON (`render`).

pub(crate) mod fetch;
pub(crate) mod page;
pub(crate) mod readers;
pub(crate) mod render;
