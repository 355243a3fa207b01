//! Bounds on what is read, each with its unit. A body that keeps within them costs memory in
//! proportion to its size; one that does not is refused, never cut.

/// How much JSON is acceptable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open arrays and objects at one time; a scalar at the top has depth 0.
    pub depth: usize,
    /// Bytes of one member name as it stands between its quotes.
    pub key_bytes: usize,
    /// Bytes of one number, or of one string as it stands between its quotes.
    pub scalar_bytes: usize,
    /// Members of one object.
    pub members: usize,
    /// Values of every kind, containers included, names not.
    pub nodes: usize,
    /// Bytes of the whole text, white space included.
    pub total_bytes: u64,
}

impl Limits {
    /// For a document held whole: a body of this size costs at most a few times its bytes.
    pub const DOCUMENT: Limits = Limits {
        depth: 64,
        key_bytes: 4 * 1024,
        scalar_bytes: 1024 * 1024,
        members: 10_000,
        nodes: 200_000,
        total_bytes: 16 * 1024 * 1024,
    };

    /// For text that only passes by: values and total bytes cost nothing there but time, so only what
    /// must be held at one time (depth, the names of open objects, single scalars) is bounded.
    pub const STREAM: Limits = Limits { nodes: usize::MAX, total_bytes: u64::MAX, ..Limits::DOCUMENT };

    /// No bounds, for text that we wrote ourselves and for tests.
    pub const UNLIMITED: Limits = Limits {
        depth: usize::MAX,
        key_bytes: usize::MAX,
        scalar_bytes: usize::MAX,
        members: usize::MAX,
        nodes: usize::MAX,
        total_bytes: u64::MAX,
    };

    /// These limits with another bound on the members of one object.
    pub const fn with_members(self, members: usize) -> Limits {
        Limits { members, ..self }
    }

    /// These limits with another bound on the whole text.
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
