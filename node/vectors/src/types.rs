//! What columns are, and what is known of an expression's values before there are any.

use arrow::datatypes::{DataType, TimeUnit};
use assay_node_btql::values::{SAFE, Value};

/// What a column physically is. All of them may have nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Nothing but nulls.
    Null,
    Bool,
    /// Int64.
    Int,
    /// Float64, of numbers: one that equals a whole number of 53 bits is that whole number.
    Float,
    /// Decimal128(38, 0): what comes of whole numbers of 64 bits, and may have more. Beyond -2^63 and 2^64 it stands for
    /// the float that is nearest.
    Wide,
    /// Utf8; what comes in may be a dictionary of it, by Int32.
    Text,
    /// Microseconds, without a zone, of a time that was computed: it is shown to the second where it has no more (D-66).
    Time,
    /// The same of a time that rows have: it is shown with its milliseconds, as it is stored.
    Created,
    /// UInt64: shown as a text of digits, compared as a number.
    Xact,
    /// UInt64: shown and compared as `p` and twenty digits.
    Key,
    /// Utf8, such as `7 day`.
    Interval,
    /// Utf8: the JSON text of each value. Where that is null there is a null, and never its text.
    Json,
}

/// The digits that a [`Type::Wide`] has room for, and the bits that they always hold.
const WIDE_DIGITS: u8 = 38;
const WIDE_BITS: u16 = 126;
/// Whole numbers of so many bits are certain to be an Int, and of so many a Float without loss.
const INT_BITS: u16 = 62;
const FLOAT_BITS: u16 = 53;

impl Type {
    pub fn data_type(self) -> DataType {
        match self {
            Type::Null => DataType::Null,
            Type::Bool => DataType::Boolean,
            Type::Int => DataType::Int64,
            Type::Float => DataType::Float64,
            Type::Wide => DataType::Decimal128(WIDE_DIGITS, 0),
            Type::Text | Type::Interval | Type::Json => DataType::Utf8,
            Type::Time | Type::Created => DataType::Timestamp(TimeUnit::Microsecond, None),
            Type::Xact | Type::Key => DataType::UInt64,
        }
    }

    pub(crate) fn is_time(self) -> bool {
        matches!(self, Type::Time | Type::Created)
    }

    pub(crate) fn is_whole(self) -> bool {
        matches!(self, Type::Bool | Type::Int | Type::Wide)
    }
}

/// A type, and of whole numbers how many bits they have at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub ty: Type,
    pub bits: u16,
}

impl Known {
    pub fn of(ty: Type) -> Known {
        let bits = match ty {
            Type::Bool => 1,
            Type::Int => 64,
            Type::Wide => WIDE_BITS,
            _ => 0,
        };
        Known { ty, bits }
    }

    /// Whole numbers of so many bits.
    pub fn whole(bits: u16) -> Known {
        let ty = if bits <= INT_BITS {
            Type::Int
        } else if bits <= WIDE_BITS {
            Type::Wide
        } else {
            Type::Json
        };
        Known { ty, bits }
    }

    pub fn of_value(value: &Value<'_>) -> Known {
        Known::of(match value {
            Value::Null => Type::Null,
            Value::Boolean(_) => Type::Bool,
            Value::Integer(number) => {
                let bits = (u64::BITS - number.unsigned_abs().leading_zeros()) as u16;
                return Known { ty: Type::Int, bits };
            }
            Value::Unsigned(_) => return Known { ty: Type::Wide, bits: 64 },
            Value::Float(_) => Type::Float,
            Value::Text(_) => Type::Text,
            Value::Time(_) => Type::Time,
            Value::Stored(_) => Type::Created,
            Value::Xact(_) => Type::Xact,
            Value::Interval(_) => Type::Interval,
            Value::Array(_) | Value::Object(_) | Value::List(_) | Value::Members(_) => Type::Json,
        })
    }

    /// What may be one or the other.
    pub fn or(self, other: Known) -> Known {
        let bits = self.bits.max(other.bits);
        let ty = match (self.ty, other.ty) {
            (one, same) if one == same => one,
            (Type::Null, one) | (one, Type::Null) => one,
            (Type::Int, Type::Wide) | (Type::Wide, Type::Int) => Type::Wide,
            (Type::Int, Type::Float) | (Type::Float, Type::Int) if bits <= FLOAT_BITS => Type::Float,
            (one, other) if one.is_time() && other.is_time() => Type::Time,
            _ => Type::Json,
        };
        Known { ty, bits }
    }
}

/// Whether a float holds it too.
pub(crate) fn is_safe(whole: i64) -> bool {
    whole.unsigned_abs() <= SAFE
}
