//! Protocol versions of MCP.

/// Protocol version that this server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum McpVersion {
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl McpVersion {
    /// Versions from the newest to the oldest.
    pub const ALL: [McpVersion; 4] =
        [McpVersion::V2026_07_28, McpVersion::V2025_11_25, McpVersion::V2025_06_18, McpVersion::V2025_03_26];
    /// Newest version with a handshake.
    const NEWEST_WITH_HANDSHAKE: McpVersion = McpVersion::V2025_11_25;
    /// Version of a request that names none, as the protocol defines.
    pub(crate) const UNNAMED: McpVersion = McpVersion::V2025_03_26;

    pub fn name(self) -> &'static str {
        match self {
            McpVersion::V2025_03_26 => "2025-03-26",
            McpVersion::V2025_06_18 => "2025-06-18",
            McpVersion::V2025_11_25 => "2025-11-25",
            McpVersion::V2026_07_28 => "2026-07-28",
        }
    }

    pub fn parse(name: &str) -> Option<McpVersion> {
        McpVersion::ALL.into_iter().find(|version| version.name() == name)
    }

    /// Returns whether every request describes itself, without a handshake.
    pub fn is_modern(self) -> bool {
        self >= McpVersion::V2026_07_28
    }

    /// Returns whether a body may be a list of messages.
    pub(crate) fn has_batches(self) -> bool {
        self == McpVersion::V2025_03_26
    }

    /// Returns whether results may have structured content, which older clients do not know.
    pub(crate) fn has_structured_content(self) -> bool {
        self >= McpVersion::V2025_06_18
    }

    /// Returns the version of a handshake: the requested one, or else the newest.
    pub(crate) fn negotiated(requested: &str) -> McpVersion {
        let known = McpVersion::parse(requested).filter(|version| !version.is_modern());
        known.unwrap_or(McpVersion::NEWEST_WITH_HANDSHAKE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_never_agrees_on_a_version_without_handshake() {
        for (requested, agreed) in [
            ("2025-03-26", McpVersion::V2025_03_26),
            ("2025-06-18", McpVersion::V2025_06_18),
            ("2025-11-25", McpVersion::V2025_11_25),
            ("2026-07-28", McpVersion::V2025_11_25),
            ("2024-11-05", McpVersion::V2025_11_25),
            ("", McpVersion::V2025_11_25),
        ] {
            assert_eq!(McpVersion::negotiated(requested), agreed, "{requested}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for version in McpVersion::ALL {
            assert_eq!(McpVersion::parse(version.name()), Some(version));
        }
        assert_eq!(McpVersion::parse("1900-01-01"), None);
    }
}
