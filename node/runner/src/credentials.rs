//! Credentials of workers: each worker has one secret, which acts for a call while the call runs.

use std::fmt;

use crate::error::CodeError;

/// Rights of one call, which the worker that runs it has meanwhile.
pub trait CallRights: Send + Sync + fmt::Debug {
    /// Creates the secret of a new worker, which acts for no call yet.
    fn issue(&self) -> Result<WorkerSecret, CodeError>;

    /// Makes the secret of a worker act for this call until the loan is dropped.
    fn lend(&self, secret: &WorkerSecret) -> Result<SecretLoan, CodeError>;
}

/// Secret of a worker. It is revoked when it is dropped.
pub struct WorkerSecret {
    text: String,
    _issued: Box<dyn Send + Sync>,
}

/// Loan of a worker's secret to a call, which ends when it is dropped.
pub struct SecretLoan {
    _lent: Box<dyn Send + Sync>,
}

impl WorkerSecret {
    /// Makes a secret of its text and of a value whose drop revokes it.
    pub fn new(text: String, issued: impl Send + Sync + 'static) -> WorkerSecret {
        WorkerSecret { text, _issued: Box::new(issued) }
    }

    /// Returns the text of the secret, for the environment of its worker.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

impl SecretLoan {
    /// Makes a loan of a value whose drop ends it.
    pub fn new(lent: impl Send + Sync + 'static) -> SecretLoan {
        SecretLoan { _lent: Box::new(lent) }
    }
}

impl fmt::Debug for WorkerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSecret").finish_non_exhaustive()
    }
}

impl fmt::Debug for SecretLoan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretLoan").finish_non_exhaustive()
    }
}
