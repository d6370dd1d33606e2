//! The token of the administrators' HTTP listener: from the environment, a named file, or a file that the node makes.

use std::path::Path;

use anyhow::Context;
use assay_node_auth::{API_KEY_BYTES, AdminToken, new_admin_token};
use assay_node_secrets::{keep_secret_file, read_secret_file};

use crate::config::Config;
use crate::process::secret_variable;
use crate::serve::API_KEY_VARIABLE;

/// Environment variable with the token. It takes precedence over the file.
pub const TOKEN_VARIABLE: &str = "ASSAY_ADMIN_TOKEN";
/// File in the data directory.
pub const TOKEN_FILE: &str = "admin.token";
/// Description of the token in error messages.
pub const TOKEN_DESCRIPTION: &str = "the administrators' token";
/// Checks a token that was configured or made before. Makes none.
pub fn check_token(config: &Config) -> anyhow::Result<()> {
    let own = config.store.data_dir.join(TOKEN_FILE);
    let is_given = secret_variable(TOKEN_VARIABLE)?.is_some() || config.admin.token_file.is_some() || own.exists();
    if config.admin.listen.is_some() && is_given { token(config).map(drop) } else { Ok(()) }
}

/// Returns the token of this node. Makes one where none is configured and the node has none yet.
pub fn token(config: &Config) -> anyhow::Result<AdminToken> {
    let (place, token) = match secret_variable(TOKEN_VARIABLE)? {
        Some(token) => (TOKEN_VARIABLE.to_owned(), token),
        None => {
            let own = config.store.data_dir.join(TOKEN_FILE);
            let file = config.admin.token_file.as_deref().unwrap_or(&own);
            if file == own && !file.try_exists().with_context(|| format!("cannot look for {}", file.display()))? {
                make_token(file).with_context(|| format!("writing {}", file.display()))?;
            }
            (file.display().to_string(), read_secret_file(file, TOKEN_DESCRIPTION)?)
        }
    };
    let is_api_key = secret_variable(API_KEY_VARIABLE)?.is_some_and(|key| key == token);
    anyhow::ensure!(
        !is_api_key,
        "{place}: it is also the API key of {API_KEY_VARIABLE}; use another token for administrators"
    );
    AdminToken::new(&token).map_err(|why| anyhow::anyhow!("{place}: {why}"))
}

fn make_token(file: &Path) -> anyhow::Result<()> {
    let mut random = [0; API_KEY_BYTES];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("the system returned no random bytes: {error}"))?;
    keep_secret_file(file, &new_admin_token(&random))?;
    tracing::info!(file = %file.display(), "created a token for administrators");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.data_dir = dir.path().to_owned();
        let file = dir.path().join(TOKEN_FILE);
        let made = token(&config).unwrap();
        let text = read_secret_file(&file, TOKEN_DESCRIPTION).unwrap();
        assert!(text.expose().starts_with("adm-") && made.is(text.expose()));
        assert!(token(&config).unwrap().is(text.expose()), "the next start takes the same");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let open = token(&config).unwrap_err().to_string();
        assert!(open.contains("mode 0640") && open.contains("chmod 600"), "{open}");

        config.admin.token_file = Some(dir.path().join("of-mine"));
        assert!(token(&config).unwrap_err().to_string().contains("does not exist"), "it makes none there");
        let own = "a-token-of-my-own-0123456789-abcdef";
        fs::write(dir.path().join("of-mine"), own).unwrap();
        fs::set_permissions(dir.path().join("of-mine"), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(token(&config).unwrap().is(own));
        fs::write(dir.path().join("of-mine"), "short").unwrap();
        assert!(token(&config).unwrap_err().to_string().contains("of-mine: a token for administrators must have 32"));
    }
}
