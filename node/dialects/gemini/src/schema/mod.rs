//! JSON schemas, and the subset of OpenAPI that Gemini takes instead.

mod from_openapi;
mod refs;
#[cfg(test)]
mod tests;
mod to_openapi;

pub use from_openapi::from_openapi;
pub use to_openapi::to_openapi;

/// Upper bound of the depth of a schema, with its references inlined.
pub const SCHEMA_DEPTH_MAX: usize = 64;
/// Upper bound of the schemas within a schema, with its references inlined.
pub const SCHEMA_NODES_MAX: usize = 20_000;
/// Upper bound of bytes of texts and values of a schema, with its references inlined.
pub const SCHEMA_BYTES_MAX: usize = 16 << 20;
/// Upper bound of bytes of a path within a schema.
pub const SCHEMA_PATH_BYTES_MAX: usize = 16 << 10;

/// Keywords that both languages have and whose values are no schemas.
const COMMON_KEYWORDS: [&str; 13] = [
    "title",
    "description",
    "pattern",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "default",
    "propertyOrdering",
];
