//! Units of time, intervals, and parts of dates.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Year,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
}

impl Unit {
    pub const ALL: [Unit; 9] = [
        Unit::Year,
        Unit::Month,
        Unit::Week,
        Unit::Day,
        Unit::Hour,
        Unit::Minute,
        Unit::Second,
        Unit::Millisecond,
        Unit::Microsecond,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Unit::Year => "year",
            Unit::Month => "month",
            Unit::Week => "week",
            Unit::Day => "day",
            Unit::Hour => "hour",
            Unit::Minute => "minute",
            Unit::Second => "second",
            Unit::Millisecond => "millisecond",
            Unit::Microsecond => "microsecond",
        }
    }

    /// Returns the unit with this name, singular or plural.
    pub fn of(name: &str) -> Option<Unit> {
        let name = name.to_ascii_lowercase();
        let one = name.strip_suffix('s').unwrap_or(&name);
        Unit::ALL.into_iter().find(|unit| unit.name() == one)
    }
}

/// Interval of time: a number of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub value: i64,
    pub unit: Unit,
}

/// Part of a time (D-67).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatePart {
    Unit(Unit),
    /// Day of the week; Sunday is 0.
    DayOfWeek,
    DayOfYear,
    Quarter,
    Epoch,
}
