//! JWTs of a trusted issuer: its cached keys, and their refresh.
//!
//! A background task fetches the keys. A token with an unknown key triggers an early fetch, at a limited rate. Its
//! response asks for a retry. The last valid keys stay in use until new ones arrive.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_node_auth::{JwtKeys, JwtRefusal, JwtRules, looks_like_jwt};
use assay_node_records::RecordsError;
use assay_node_records::mechanism::now_micros;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// Minimum time between two fetches, whatever tokens are presented.
pub(crate) const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(30);
/// Upper bound of the characters of a logged reason, because anyone can choose it.
const WHY_LETTERS_MAX: usize = 200;
const SAID_EVERY: Duration = Duration::from_secs(1);

/// Trusted issuer of JWTs.
#[derive(Debug)]
pub struct Jwts {
    rules: JwtRules,
    keys: RwLock<Arc<JwtKeys>>,
    asking: Mutex<KeyRequests>,
    wanted: Notify,
    said: Mutex<Option<Instant>>,
}

/// State of fetching keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyRequests {
    /// Idle: the keys never change, or were fetched recently.
    Not,
    /// The next token with an unknown key triggers a fetch.
    IfWanted,
    /// A fetch is in progress.
    Now,
    /// No fetch has succeeded yet.
    StillFirst,
}

impl Jwts {
    /// Creates an issuer with constant keys.
    pub fn with_keys(rules: JwtRules, keys: JwtKeys) -> Jwts {
        Jwts {
            rules,
            keys: RwLock::new(Arc::new(keys)),
            asking: Mutex::new(KeyRequests::Not),
            wanted: Notify::new(),
            said: Mutex::default(),
        }
    }

    /// Creates an issuer with initial keys, for [`Jwts::keep`] to refresh.
    pub fn waiting(rules: JwtRules, keys: JwtKeys) -> Jwts {
        Jwts { asking: Mutex::new(KeyRequests::StillFirst), ..Jwts::with_keys(rules, keys) }
    }

    /// Fetches keys immediately, and again after `refresh`. Never returns.
    pub async fn keep<F, Got>(&self, refresh: Duration, get: F)
    where
        F: Fn() -> Got + Send,
        Got: Future<Output = Result<JwtKeys, String>> + Send,
    {
        loop {
            let got = get().await;
            let is_good = got.is_ok();
            match got {
                Ok(keys) => {
                    *self.keys.write() = Arc::new(keys);
                    self.set(KeyRequests::Not);
                }
                Err(why) => {
                    tracing::warn!(
                        why,
                        "the keys of the issuer of JWTs could not be fetched; the last ones stay in use"
                    );
                    let mut asking = self.asking.lock();
                    if *asking != KeyRequests::StillFirst {
                        *asking = KeyRequests::Not;
                    }
                }
            }
            sleep(ASKED_AGAIN_AFTER).await;
            if is_good {
                self.set(KeyRequests::IfWanted);
                let _early = timeout(refresh.saturating_sub(ASKED_AGAIN_AFTER), self.wanted.notified()).await;
                self.set(KeyRequests::Now);
            }
        }
    }

    fn set(&self, asking: KeyRequests) {
        *self.asking.lock() = asking;
    }

    /// Returns the address that a token proves; `None` for an invalid token. The reason is only logged.
    pub(crate) fn email_of(&self, shown: &str) -> Result<Option<String>, RecordsError> {
        if !looks_like_jwt(shown) {
            return Ok(None);
        }
        let keys = Arc::clone(&self.keys.read());
        match keys.verify(shown, &self.rules, now_micros() / 1_000_000) {
            Ok(email) => Ok(Some(email)),
            Err(JwtRefusal::UnknownKey) if self.may_be_known_soon() => {
                let why = "the keys of the issuer of this token are being fetched: try again in a moment";
                Err(RecordsError::Unavailable(why.into()))
            }
            Err(why) => {
                self.say(&why);
                Ok(None)
            }
        }
    }

    /// Logs a refusal at a limited rate, because anyone can cause it.
    fn say(&self, why: &JwtRefusal) {
        let mut said = self.said.lock();
        if said.is_none_or(|said| said.elapsed() >= SAID_EVERY) {
            *said = Some(Instant::now());
            let why: String = why.to_string().chars().take(WHY_LETTERS_MAX).collect();
            tracing::info!(why, "a JWT was rejected");
        }
    }

    fn may_be_known_soon(&self) -> bool {
        let mut asking = self.asking.lock();
        if *asking == KeyRequests::IfWanted {
            *asking = KeyRequests::Now;
            self.wanted.notify_one();
        }
        *asking != KeyRequests::Not
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const REFRESH: Duration = Duration::from_secs(300);
    /// A token signed with an unknown key.
    const UNKNOWN: &str = "eyJhbGciOiJFUzI1NiIsImtpZCI6Im5ldyJ9.e30.AAAA";

    fn jwts() -> Arc<Jwts> {
        let rules = JwtRules { issuer: "i".into(), audience: "a".into() };
        Arc::new(Jwts::waiting(rules, JwtKeys::default()))
    }

    fn is_put_off(jwts: &Jwts) -> bool {
        match jwts.email_of(UNKNOWN) {
            Err(RecordsError::Unavailable(why)) => why.contains("try again"),
            refused => {
                assert_eq!(refused, Ok(None));
                false
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_keys_are_asked_for_once_in_a_while_and_known_ones_stay() {
        let (jwts, asked, fails) = (jwts(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(1)));
        assert!(is_put_off(&jwts), "they were never had");
        let keeping = tokio::spawn({
            let (jwts, asked, fails) = (Arc::clone(&jwts), Arc::clone(&asked), Arc::clone(&fails));
            async move {
                let get = || {
                    asked.fetch_add(1, Ordering::Relaxed);
                    let fails = fails.swap(0, Ordering::Relaxed) > 0;
                    async move { if fails { Err("no answer".into()) } else { Ok(JwtKeys::default()) } }
                };
                jwts.keep(REFRESH, get).await;
            }
        });
        let asked = || asked.load(Ordering::Relaxed);
        sleep(Duration::from_secs(1)).await;
        assert!(asked() == 1 && is_put_off(&jwts), "still never");
        sleep(ASKED_AGAIN_AFTER).await;
        assert!(asked() == 2 && !is_put_off(&jwts), "had, and asked for a moment ago");
        sleep(ASKED_AGAIN_AFTER).await;
        assert!(asked() == 2 && is_put_off(&jwts), "asked for early");
        sleep(Duration::from_secs(1)).await;
        for _ in 0..100 {
            assert!(asked() == 3 && !is_put_off(&jwts), "once");
        }
        sleep(ASKED_AGAIN_AFTER - Duration::from_secs(2)).await;
        assert_eq!(asked(), 3);
        sleep(REFRESH).await;
        assert_eq!(asked(), 4, "and when they are old");
        fails.store(1, Ordering::Relaxed);
        sleep(REFRESH + ASKED_AGAIN_AFTER).await;
        assert_eq!(asked(), 6, "sooner where they could not be had");
        keeping.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_asked_for_again_at_the_age_that_is_set() {
        for (refresh, expected) in [(ASKED_AGAIN_AFTER, 11), (Duration::from_secs(100), 4), (REFRESH, 2)] {
            let (jwts, asked) = (jwts(), AtomicUsize::new(0));
            let get = || {
                asked.fetch_add(1, Ordering::Relaxed);
                async { Ok(JwtKeys::default()) }
            };
            assert!(timeout(REFRESH + Duration::from_secs(1), jwts.keep(refresh, get)).await.is_err(), "never returns");
            assert_eq!(asked.into_inner(), expected, "every {refresh:?}");
        }
    }

    #[test]
    fn what_has_not_the_form_is_no_token() {
        for other in ["sk-abc", "", "a.b", "bt-st-x"] {
            assert_eq!(jwts().email_of(other), Ok(None));
        }
    }
}
