//! Types of columns, and bounds on an expression's values that hold before any row is read.

use arrow_schema::{DataType, TimeUnit};
use assay_node_btql::values::{SAFE, Value};

/// Physical type of a column. Every column may have nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Nulls only.
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
    /// Microseconds of a time that was stored with a row: it is shown with its milliseconds.
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

/// Digits of a [`Type::Wide`], and bits that always fit into them.
const WIDE_DIGITS: u8 = 38;
const WIDE_BITS: u16 = 126;
/// Bits of whole numbers that always fit into an Int, and into a Float without loss.
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

/// Type that all values of an expression fit into, with the most bits that whole numbers among them have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValueType {
    pub ty: Type,
    pub bits: u16,
}

impl ValueType {
    pub fn of(ty: Type) -> ValueType {
        let bits = match ty {
            Type::Bool => 1,
            Type::Int => 64,
            Type::Wide => WIDE_BITS,
            _ => 0,
        };
        ValueType { ty, bits }
    }

    /// Returns the type of whole numbers of `bits` bits.
    pub fn whole(bits: u16) -> ValueType {
        let ty = if bits <= INT_BITS {
            Type::Int
        } else if bits <= WIDE_BITS {
            Type::Wide
        } else {
            Type::Json
        };
        ValueType { ty, bits }
    }

    pub fn of_value(value: &Value<'_>) -> ValueType {
        ValueType::of(match value {
            Value::Null => Type::Null,
            Value::Boolean(_) => Type::Bool,
            Value::Integer(number) => {
                let bits = (u64::BITS - number.unsigned_abs().leading_zeros()) as u16;
                return ValueType { ty: Type::Int, bits };
            }
            Value::Unsigned(_) => return ValueType { ty: Type::Wide, bits: 64 },
            Value::Float(_) => Type::Float,
            Value::Text(_) => Type::Text,
            Value::Time(_) => Type::Time,
            Value::Stored(_) => Type::Created,
            Value::Xact(_) => Type::Xact,
            Value::Interval(_) => Type::Interval,
            Value::Array(_) | Value::Object(_) | Value::List(_) | Value::Members(_) => Type::Json,
        })
    }

    /// Returns the type that holds values of both.
    pub fn or(self, other: ValueType) -> ValueType {
        let bits = self.bits.max(other.bits);
        let ty = match (self.ty, other.ty) {
            (one, same) if one == same => one,
            (Type::Null, one) | (one, Type::Null) => one,
            (Type::Int, Type::Wide) | (Type::Wide, Type::Int) => Type::Wide,
            (Type::Int, Type::Float) | (Type::Float, Type::Int) if bits <= FLOAT_BITS => Type::Float,
            (one, other) if one.is_time() && other.is_time() => Type::Time,
            _ => Type::Json,
        };
        ValueType { ty, bits }
    }
}

/// Whether a float holds the number exactly.
pub(crate) fn is_safe(whole: i64) -> bool {
    whole.unsigned_abs() <= SAFE
}
