//! Upper bound of durations in settings, beyond which a sum with the time of the clock could overflow.

use toml::Value;

/// Upper bound of every duration: a hundred years.
const SECONDS_MAX: i64 = 100 * 365 * 24 * 3600;
/// Units in names of settings, with their number in a second.
const UNITS: [(&str, i64); 2] = [("seconds", 1), ("ms", 1000)];

/// Refuses a duration above the upper bound. The error says what the value may be.
pub fn check(name: &str, value: &Value) -> Result<(), String> {
    let (Some(most), Some(found)) = (most(name), value.as_integer()) else { return Ok(()) };
    if found <= most {
        return Ok(());
    }
    Err(format!("`{name}` is {found}; it should be at most {most}, which is a hundred years"))
}

/// Returns the upper bound of a setting; `None` if its name has no unit of time.
fn most(name: &str) -> Option<i64> {
    let last = name.rsplit('.').next()?;
    let last = last.strip_suffix("_max").or_else(|| last.strip_suffix("_min")).unwrap_or(last);
    let unit = last.rsplit('_').next()?;
    UNITS.iter().find(|(known, _)| *known == unit).map(|(_, in_second)| SECONDS_MAX * in_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_known_by_the_unit_in_their_name() {
        for name in ["http.request_seconds_max", "queries.seconds_max", "retention.every_seconds"] {
            assert_eq!(most(name), Some(SECONDS_MAX), "{name}");
        }
        assert_eq!(most("cluster.election_min_ms"), Some(SECONDS_MAX * 1000));
        for name in ["http.body_bytes_per_second_min", "cluster.move_bytes_per_second", "http.listen"] {
            assert_eq!(most(name), None, "{name}");
        }
    }
}
