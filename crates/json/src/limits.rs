//! Limits for JSON text. The memory for a text within the limits is proportional to its size. A
//! text that exceeds one is rejected, never truncated.

/// Limits for one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Nesting of arrays and objects; a scalar at the root has depth 0.
    pub depth: usize,
    /// Bytes of one member name, with its escapes.
    pub key_bytes: usize,
    /// Bytes of one number, or of one string with its escapes.
    pub scalar_bytes: usize,
    /// Members of one object.
    pub members: usize,
    /// Values of every kind, including containers, without names.
    pub nodes: usize,
    /// Bytes of the text, including white space.
    pub total_bytes: u64,
}

impl Limits {
    /// For a document in memory, which costs at most a few times its text.
    pub const DOCUMENT: Limits = Limits {
        depth: 64,
        key_bytes: 4 * 1024,
        scalar_bytes: 1024 * 1024,
        members: 10_000,
        nodes: 200_000,
        total_bytes: 16 * 1024 * 1024,
    };

    /// For a streamed text. Only data that is in memory at one time is limited: depth, names of
    /// open objects, single scalars. Values and total bytes cost only time.
    pub const STREAM: Limits = Limits { nodes: usize::MAX, total_bytes: u64::MAX, ..Limits::DOCUMENT };

    /// No limits, for text written by this program and for tests.
    pub const UNLIMITED: Limits = Limits {
        depth: usize::MAX,
        key_bytes: usize::MAX,
        scalar_bytes: usize::MAX,
        members: usize::MAX,
        nodes: usize::MAX,
        total_bytes: u64::MAX,
    };

    /// Returns these limits with another limit for the members of one object.
    pub const fn with_members(self, members: usize) -> Limits {
        Limits { members, ..self }
    }

    /// Returns these limits with another limit for the total bytes.
    pub const fn with_total_bytes(self, total_bytes: u64) -> Limits {
        Limits { total_bytes, ..self }
    }
}

impl Default for Limits {
    /// [`Limits::DOCUMENT`].
    fn default() -> Limits {
        Limits::DOCUMENT
    }
}
