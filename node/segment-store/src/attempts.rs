//! Repetition of operations of an object store that failed in a way that may be over soon.
//!
//! Each operation can be repeated safely, because an object is never changed. The time limits of a request grow with
//! the attempt. So a request that hangs is given up soon, and a slow store is waited for in the end.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use assay_node_egress::EgressTimes;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// Upper bound of the attempts of one operation.
pub const OPERATION_ATTEMPTS_MAX: u32 = 8;
/// Time after which an operation is not repeated any more.
const ATTEMPTS_TIME: Duration = Duration::from_secs(180);
/// Pause behind the first attempt. It doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Silence after which the first attempt is given up. It doubles up to [`SILENCE_MAX`].
const SILENCE: Duration = Duration::from_secs(4);
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Slowest upload that is waited for in the first attempt.
const BYTES_A_SECOND_MIN: u64 = 500_000;
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Time limit of a whole request beside its silence.
const REQUEST_MAX: Duration = Duration::from_secs(60);
/// Texts of errors that S3 sends with the status 200, because it had begun to answer.
const LATE_ERRORS: [&str; 2] = ["InternalError", "SlowDown"];

tokio::task_local! {
    /// Number of the attempt that the current task makes, from 1 on.
    static ATTEMPT: u32;
}

/// Failure of a request that may succeed if it is repeated: nothing answered, or the server asked for a repetition.
#[derive(Debug)]
pub(crate) struct PassingFailure(pub String);

impl fmt::Display for PassingFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for PassingFailure {}

/// Returns the time limits of a request of the current attempt, which sends these bytes.
pub(crate) fn request_times(body_bytes: u64) -> EgressTimes {
    let attempt = ATTEMPT.try_with(|attempt| *attempt).unwrap_or(1);
    let silence = doubled(SILENCE, attempt, SILENCE_MAX);
    // The time of the upload counts as silence, because the server answers behind it.
    let sending = Duration::from_secs(body_bytes / BYTES_A_SECOND_MIN) * attempt;
    let first_byte = silence + sending;
    EgressTimes { connect: CONNECT_MAX, first_byte, between_chunks: silence, total: first_byte + REQUEST_MAX }
}

/// Runs an operation until it succeeds, fails for good, or was repeated often enough.
pub(crate) async fn repeated<T, F>(mut operation: impl FnMut() -> F) -> object_store::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    let began = Instant::now();
    let mut attempt = 1;
    loop {
        let why = match ATTEMPT.scope(attempt, operation()).await {
            Err(why) if is_passing(&why) => why,
            done => return done,
        };
        if attempt >= OPERATION_ATTEMPTS_MAX || began.elapsed() >= ATTEMPTS_TIME {
            return Err(why);
        }
        tracing::debug!(error = %why, attempt, "a request to the object store is repeated");
        sleep(scattered(doubled(PAUSE, attempt, PAUSE_MAX))).await;
        attempt += 1;
    }
}

fn doubled(first: Duration, attempt: u32, max: Duration) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1))).min(max)
}

/// Returns a random pause of at least half of this one, so that callers do not repeat at the same time.
fn scattered(pause: Duration) -> Duration {
    let random = u32::from(Uuid::new_v4().as_bytes()[0]);
    pause / 2 + pause * random / (2 * u32::from(u8::MAX))
}

fn is_passing(why: &object_store::Error) -> bool {
    let object_store::Error::Generic { source, .. } = why else { return false };
    let mut cause: Option<&(dyn Error + 'static)> = Some(source.as_ref());
    while let Some(found) = cause {
        if found.is::<PassingFailure>() {
            return true;
        }
        cause = found.source();
    }
    let text = source.to_string();
    LATE_ERRORS.iter().any(|late| text.contains(late))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn failure(source: impl Error + Send + Sync + 'static) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: Box::new(source) }
    }

    fn passing() -> object_store::Error {
        failure(PassingFailure("it hangs".into()))
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_repeated_with_longer_limits() {
        let silences = Cell::new(Vec::new());
        let done = repeated(|| async {
            let mut seen = silences.take();
            seen.push(request_times(0).first_byte.as_secs());
            let number = seen.len();
            silences.set(seen);
            if number < 6 { Err(passing()) } else { Ok(number) }
        });
        assert_eq!(done.await.expect("done"), 6);
        assert_eq!(silences.take(), [4, 8, 16, 32, 60, 60]);
    }

    #[tokio::test(start_paused = true)]
    async fn repetition_ends() {
        let attempts = Cell::new(0);
        let count = || attempts.set(attempts.get() + 1);
        let done = repeated(|| async {
            count();
            Err::<(), _>(passing())
        });
        assert!(done.await.is_err());
        assert_eq!(attempts.take(), OPERATION_ATTEMPTS_MAX);
        let done = repeated(|| async {
            count();
            sleep(ATTEMPTS_TIME).await;
            Err::<(), _>(passing())
        });
        assert!(done.await.is_err());
        assert_eq!(attempts.take(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn errors_that_stay_are_returned_at_once() {
        let lasting = [
            failure(std::io::Error::other("the region is wrong")),
            object_store::Error::NotFound { path: "a".into(), source: Box::new(PassingFailure("no".into())) },
        ];
        for why in lasting {
            let (began, mut why) = (Instant::now(), Some(why));
            let done = repeated(|| std::future::ready(Err::<(), _>(why.take().expect("one attempt"))));
            assert!(done.await.is_err());
            assert_eq!(began.elapsed(), Duration::ZERO);
        }
        assert!(is_passing(&failure(std::io::Error::other("200 <Code>SlowDown</Code>"))));
    }

    #[test]
    fn an_upload_has_time_for_its_bytes() {
        assert_eq!(request_times(8_000_000).first_byte, SILENCE + Duration::from_secs(16));
    }
}
