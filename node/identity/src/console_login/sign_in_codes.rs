//! Sign-in code of a first start, with which its operator opens the console without typing the API key.
//!
//! The node keeps the code in memory only. It belongs to the API key that the first start created, works once, and
//! expires after an hour.

use assay_node_auth::{Secret, challenge_of, new_login_secret};
use assay_node_records::RecordsError;
use assay_node_records::mechanism;
use parking_lot::Mutex;

use crate::Identity;
use crate::console_sessions::OpenedConsoleSession;
use crate::logins::now;

/// Lifetime of a code.
pub const SIGN_IN_CODE_SECONDS: i64 = 3600;

/// Sign-in code that was not used yet.
#[derive(Debug)]
struct OpenCode {
    digest: String,
    key: Secret,
    until: i64,
}

/// Place for the sign-in code of a node.
#[derive(Debug, Default)]
pub(crate) struct SignInCode(Mutex<Option<OpenCode>>);

impl SignInCode {
    fn put(&self, code: &str, key: Secret, until: i64) {
        *self.0.lock() = Some(OpenCode { digest: challenge_of(code), key, until });
    }

    /// Returns the key of a code, which is invalid from then on. An invalid code changes nothing.
    fn take(&self, code: &str, now: i64) -> Option<Secret> {
        let mut kept = self.0.lock();
        let digest = challenge_of(code);
        let open = kept.take_if(|open| open.digest == digest || open.until <= now)?;
        (open.digest == digest && now < open.until).then_some(open.key)
    }
}

impl Identity {
    /// Creates a sign-in code for the user of an API key.
    pub fn create_sign_in_code(&self, key: Secret) -> Result<Secret, RecordsError> {
        let code = new_login_secret(&mechanism::random()?);
        self.sign_in_code.put(&code, key, now() + SIGN_IN_CODE_SECONDS);
        Ok(Secret::new(code))
    }

    /// Opens a console session for the user of a sign-in code. Returns `None` if the code is unknown, used or expired.
    pub async fn redeem_sign_in_code(&self, code: &str) -> Result<Option<OpenedConsoleSession>, RecordsError> {
        let Some(key) = self.sign_in_code.take(code, now()) else { return Ok(None) };
        let who = self.authenticate(key.expose(), None).await?;
        self.open_console_session(&who).await.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exposed(key: Option<Secret>) -> Option<String> {
        key.map(|key| key.expose().to_owned())
    }

    #[test]
    fn a_code_works_once_and_before_its_end() {
        let kept = SignInCode::default();
        kept.put("code", Secret::new("sk-1".into()), 10);
        assert_eq!(exposed(kept.take("other", 5)), None);
        assert_eq!(exposed(kept.take("code", 9)), Some("sk-1".to_owned()));
        assert_eq!(exposed(kept.take("code", 9)), None);
        kept.put("late", Secret::new("sk-2".into()), 10);
        assert_eq!(exposed(kept.take("late", 10)), None);
        assert_eq!(exposed(kept.take("late", 9)), None);
    }
}
