-- Events of one side on their way to receivers of the other. What an event says is sealed for just this row; its key is kept as a
-- keyed hash, by which events of one key stay in order. A row goes when its event was delivered; one that cannot be is `dead`
-- until somebody has it tried again or drops it.
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    receiver TEXT NOT NULL,
    event_key BLOB NOT NULL,
    name TEXT NOT NULL,
    sealed BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    state TEXT NOT NULL,
    came_ms INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_ms INTEGER NOT NULL,
    failure TEXT,
    lease TEXT NOT NULL,
    lease_ms INTEGER NOT NULL
);
CREATE INDEX events_in_order ON events (receiver, event_key, state, seq);
CREATE INDEX events_due ON events (state, next_ms);

-- Which messages came already: what a sender sends once more, or somebody else, is not delivered twice.
CREATE TABLE event_messages (
    receiver TEXT NOT NULL,
    message BLOB NOT NULL,
    expires_ms INTEGER NOT NULL,
    PRIMARY KEY (receiver, message)
);
