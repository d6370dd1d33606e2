//! Classes of upstream status codes (1.7).

use crate::cooling::UpstreamFailure;

/// Meaning of a status for the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusClass {
    /// Status 2xx.
    Success,
    /// The request is at fault, so the response is passed without a retry.
    ClientError,
    /// Another candidate may succeed, or the same one later.
    Retryable,
    /// The provider refused its secret, so another secret may succeed.
    ProviderAuth,
    /// The upstream does not serve the model, so another one may succeed. The last such response is passed.
    NotThere,
    /// The status is a redirect or invalid, so another candidate may succeed. It is never passed.
    BadResponse,
}

/// Returns the class of a status.
pub fn classify(status: u16) -> StatusClass {
    match status {
        200..=299 => StatusClass::Success,
        401 | 403 => StatusClass::ProviderAuth,
        // A 402 means that the account of the secret has no credit.
        402 | 404 => StatusClass::NotThere,
        408 | 429 => StatusClass::Retryable,
        400..=499 => StatusClass::ClientError,
        // A retry cannot help if the method or the HTTP version is not supported.
        501 | 505 => StatusClass::NotThere,
        500..=599 => StatusClass::Retryable,
        _ => StatusClass::BadResponse,
    }
}

/// Returns the failure that a status means for the cooling of its upstream.
pub(super) fn failure(status: u16, retry_after_ms: Option<u64>) -> Option<UpstreamFailure> {
    match status {
        429 => Some(UpstreamFailure::RateLimited { retry_after_ms }),
        500..=599 => Some(UpstreamFailure::Unavailable),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_the_classes_of_the_contract() {
        for (class, statuses) in [
            (StatusClass::Success, vec![200, 201, 204]),
            (StatusClass::Retryable, vec![408, 429, 500, 502, 503, 504, 529]),
            (StatusClass::ProviderAuth, vec![401, 403]),
            (StatusClass::NotThere, vec![404]),
            (StatusClass::ClientError, vec![400, 409, 413, 422]),
            (StatusClass::BadResponse, vec![0, 100, 302, 307, 600]),
        ] {
            assert!(statuses.iter().all(|status| classify(*status) == class), "{class:?}");
        }
    }
}
