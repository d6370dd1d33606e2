//! Operators and types: their names in each form, and their precedence.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Not,
    Minus,
    IsNull,
    IsNotNull,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logic {
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `<=>`: null equals null.
    Same,
    NotSame,
    Like,
    ILike,
    Match,
    In,
    Includes,
    Regex,
    NotRegex,
    RegexAnyCase,
    NotRegexAnyCase,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Concat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Text,
    Boolean,
    Integer,
    Number,
    Date,
    Timestamp,
    Json,
}

impl Type {
    pub fn name(self) -> &'static str {
        match self {
            Type::Text => "string",
            Type::Boolean => "boolean",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Date => "date",
            Type::Timestamp => "timestamp",
            Type::Json => "json",
        }
    }

    /// D-74.
    pub fn of(name: &str) -> Option<Type> {
        Some(match name.to_ascii_lowercase().as_str() {
            "string" | "text" | "varchar" => Type::Text,
            "boolean" | "bool" => Type::Boolean,
            "int" | "bigint" | "integer" => Type::Integer,
            "float" | "double" | "number" => Type::Number,
            "date" => Type::Date,
            "timestamp" | "datetime" => Type::Timestamp,
            "json" => Type::Json,
            _ => return None,
        })
    }
}

impl Binary {
    /// Returns the symbol in SQL and BTQL.
    pub fn symbol(self) -> &'static str {
        match self {
            Binary::Eq => "=",
            Binary::Ne => "!=",
            Binary::Lt => "<",
            Binary::Le => "<=",
            Binary::Gt => ">",
            Binary::Ge => ">=",
            Binary::Same => "<=>",
            Binary::NotSame => "<!=>",
            Binary::Like => "LIKE",
            Binary::ILike => "ILIKE",
            Binary::Match => "MATCH",
            Binary::In => "IN",
            Binary::Includes => "INCLUDES",
            Binary::Regex => "~",
            Binary::NotRegex => "!~",
            Binary::RegexAnyCase => "~*",
            Binary::NotRegexAnyCase => "!~*",
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::Div => "/",
            Binary::Mod => "%",
            Binary::Concat => "||",
        }
    }

    /// Returns the name in the JSON form.
    pub fn op(self) -> &'static str {
        match self {
            Binary::Eq => "eq",
            Binary::Ne => "ne",
            Binary::Lt => "lt",
            Binary::Le => "le",
            Binary::Gt => "gt",
            Binary::Ge => "ge",
            Binary::Same => "nseq",
            Binary::NotSame => "nsne",
            Binary::Like => "like",
            Binary::ILike => "ilike",
            Binary::Match => "match",
            Binary::In => "in",
            Binary::Includes => "includes",
            Binary::Regex => "regex",
            Binary::NotRegex => "nregex",
            Binary::RegexAnyCase => "iregex",
            Binary::NotRegexAnyCase => "niregex",
            Binary::Add => "add",
            Binary::Sub => "sub",
            Binary::Mul => "mul",
            Binary::Div => "div",
            Binary::Mod => "mod",
            Binary::Concat => "concat",
        }
    }

    pub const ALL: [Binary; 23] = [
        Binary::Eq,
        Binary::Ne,
        Binary::Lt,
        Binary::Le,
        Binary::Gt,
        Binary::Ge,
        Binary::Same,
        Binary::NotSame,
        Binary::Like,
        Binary::ILike,
        Binary::Match,
        Binary::In,
        Binary::Includes,
        Binary::Regex,
        Binary::NotRegex,
        Binary::RegexAnyCase,
        Binary::NotRegexAnyCase,
        Binary::Add,
        Binary::Sub,
        Binary::Mul,
        Binary::Div,
        Binary::Mod,
        Binary::Concat,
    ];

    /// Higher binds tighter: `* /` before `+ -` before comparisons.
    pub(crate) fn precedence(self) -> Precedence {
        match self {
            Binary::Mul | Binary::Div | Binary::Mod => Precedence::Product,
            Binary::Add | Binary::Sub | Binary::Concat => Precedence::Sum,
            _ => Precedence::Comparison,
        }
    }
}

/// Loosest first (btql.md, section 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Precedence {
    Or,
    And,
    Not,
    Comparison,
    Sum,
    Product,
    Minus,
    Cast,
    Primary,
}
