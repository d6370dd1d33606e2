//! Tests of browser sessions on a server whose clock is moved by days.
//!
//! If the library that moves clocks is unavailable, the test reports "not covered" and passes, unless
//! `ASSAY_REQUIRE=all`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::server::{Options, Server};
use assay_test_clients::suite::{covered, until};

/// Paths at which the package `faketime` installs its library.
const FAKE_TIME: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];
/// Seconds between two reads of the clock file by the server.
const CLOCK_KEPT_SECONDS: u64 = 1;
const CONSOLE: (&str, &str) = ("x-assay-console", "1");
const SESSION: &str = "/console/session";

fn library() -> Result<PathBuf, String> {
    let found = FAKE_TIME.iter().map(PathBuf::from).find(|path| path.is_file());
    found.ok_or_else(|| format!("the library libfaketimeMT is at none of {FAKE_TIME:?}: install the package faketime"))
}

/// Server with a clock file, which contains the offset of its clock.
struct Moved {
    server: Server,
    clock: PathBuf,
}

impl Moved {
    fn start(dir: &Path, library: &Path) -> Moved {
        let clock = dir.join("clock");
        fs::write(&clock, "+0m").expect("the clock is written");
        let text = |path: &Path| path.to_str().expect("a path that is text").to_owned();
        let environment = [
            ("LD_PRELOAD", text(library)),
            ("FAKETIME_TIMESTAMP_FILE", text(&clock)),
            ("FAKETIME_CACHE_DURATION", CLOCK_KEPT_SECONDS.to_string()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ];
        let environment = environment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let options = Options { environment, ..Options::new(&dir.join("data")) };
        Moved { server: Server::start(&options).unwrap_or_else(|error| panic!("{error:#}")), clock }
    }

    /// Moves the clock this many minutes ahead of the real time.
    fn move_to(&self, minutes: u64) {
        fs::write(&self.clock, format!("+{minutes}m")).expect("the clock is written");
        std::thread::sleep(Duration::from_secs(2 * CLOCK_KEPT_SECONDS));
    }

    fn call(&self, method: &str, path: &str, header: (&str, &str)) -> HttpResponse {
        let headers = [CONSOLE, header].map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let request = Request { method: method.into(), target: path.into(), headers, ..Request::default() };
        send(&self.server.url, &request).unwrap_or_else(|error| panic!("{error:#}"))
    }

    fn sign_in(&self) -> String {
        let key = format!("Bearer {}", self.server.key);
        cookie_of(&self.call("POST", SESSION, ("Authorization", &key))).expect("a cookie")
    }

    /// Renews the session as the page does, and returns the cookie of the response, if any.
    fn renew(&self, cookie: &str) -> Option<String> {
        let response = self.call("GET", SESSION, ("Cookie", cookie));
        assert_eq!(response.status, 200, "{}", response.text());
        cookie_of(&response)
    }

    fn opens(&self, cookie: &str) -> bool {
        let response = self.call("GET", "/v1/project", ("Cookie", cookie));
        assert!([200, 401].contains(&response.status), "{} {}", response.status, response.text());
        response.status == 200
    }
}

/// Returns the name and value of the cookie that a response sets.
fn cookie_of(response: &HttpResponse) -> Option<String> {
    response.header("set-cookie").and_then(|set| set.split(';').next().map(str::to_owned))
}

#[test]
fn a_session_gets_a_new_value_after_a_day_and_ends_when_nobody_uses_it() {
    let Some(library) = covered("sessions of browsers over days", library()) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let moved = Moved::start(dir.path(), &library);
    let (used, unused) = (moved.sign_in(), moved.sign_in());
    assert!(moved.opens(&used) && moved.opens(&unused));

    let hours = |hours: u64| hours * 60;
    moved.move_to(hours(11));
    assert_eq!(value_of(moved.renew(&used), &used), used, "the value is younger than a day");
    moved.move_to(hours(13));
    assert!(moved.opens(&used), "it was used two hours ago");
    assert!(!moved.opens(&unused), "nobody used it for 13 hours");
    moved.renew(&used);
    moved.move_to(hours(24) + 10);
    let next = value_of(moved.renew(&used), &used);
    assert_ne!(next, used, "the value is older than a day");
    assert!(moved.opens(&used) && moved.opens(&next), "requests under way have the value before");
    moved.move_to(hours(24) + 12);
    until("the value before opens nothing", || !moved.opens(&used));
    assert!(moved.opens(&next));

    moved.move_to(hours(24) + 10 + hours(12) - 5);
    assert!(moved.opens(&next), "a use nearly twelve hours ago");
    moved.move_to(hours(24) + 10 + hours(12) + 5);
    assert!(!moved.opens(&next), "a use more than twelve hours ago");
    assert_eq!(moved.call("GET", SESSION, ("Cookie", &next)).status, 401);
}

/// Returns the cookie that a browser holds after a response.
fn value_of(set: Option<String>, held: &str) -> String {
    set.unwrap_or_else(|| held.to_owned())
}
