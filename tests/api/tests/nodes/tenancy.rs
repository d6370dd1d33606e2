//! Tests of limits between tenants: admission, request rates and quotas.

pub(crate) mod admission;
pub(crate) mod limits;
pub(crate) mod quotas;
