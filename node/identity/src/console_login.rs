//! Sign-in of a browser to the console through the provider.
//!
//! The console is a client of the logins of this server. Its browser holds the verifier in a cookie, and the code of
//! the login is exchanged for a session. Therefore invitations, refusals and audit entries work as for every login.

pub(crate) mod sign_in_codes;

use assay_node_auth::{LoginAsked, Secret, challenge_of, new_login_secret};
use assay_node_records::RecordsError;
use assay_node_records::mechanism;

use crate::Identity;
use crate::console_sessions::OpenedConsoleSession;
use crate::logins::{GrantRefusal, StartedLogin};

/// Client id of the console.
pub(crate) const CONSOLE_CLIENT: &str = "assay-console";
/// Path to which the login redirects the browser.
pub const CONSOLE_CALLBACK: &str = "/console/login/callback";
const SCOPE: &str = "console";

/// Started sign-in.
#[derive(Clone, Debug)]
pub struct StartedConsoleLogin {
    pub started: StartedLogin,
    /// Code verifier that only this browser has until it returns.
    pub verifier: Secret,
}

impl Identity {
    /// Starts a sign-in. `state` is returned to the browser unchanged.
    pub fn begin_console_login(&self, state: String) -> Result<StartedConsoleLogin, RecordsError> {
        let verifier = new_login_secret(&mechanism::random()?);
        let asked = LoginAsked {
            client_id: CONSOLE_CLIENT.to_owned(),
            redirect_uri: self.console_callback()?,
            state: Some(state),
            challenge: challenge_of(&verifier),
            scope: SCOPE.to_owned(),
            session: None,
            registered: None,
        };
        Ok(StartedConsoleLogin { started: self.begin_login(asked)?, verifier: Secret::new(verifier) })
    }

    /// Opens a session for the code of a login.
    pub async fn finish_console_login(
        &self,
        code: &str,
        verifier: &Secret,
    ) -> Result<OpenedConsoleSession, GrantRefusal> {
        let callback = self.console_callback()?;
        let tokens = self.redeem_code(code, CONSOLE_CLIENT, &callback, verifier.expose()).await?;
        let who = self.authenticate(tokens.access.expose(), None).await?;
        Ok(self.open_console_session(&who).await?)
    }

    fn console_callback(&self) -> Result<String, RecordsError> {
        Ok(format!("{}{CONSOLE_CALLBACK}", self.login_settings()?.origin))
    }
}
