-- Events of one side on their way to receivers of the other. What an event says is sealed for just this row; its key is kept as a
-- keyed hash, by which events of one key stay in order. A row goes when its event was delivered; one that cannot be is `dead`
-- until somebody has it tried again or drops it.
CREATE TABLE events (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    receiver TEXT NOT NULL,
    event_key BYTEA NOT NULL,
    name TEXT NOT NULL,
    sealed BYTEA NOT NULL,
    bytes BIGINT NOT NULL,
    state TEXT NOT NULL,
    came_ms BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    next_ms BIGINT NOT NULL,
    failure TEXT,
    lease TEXT NOT NULL,
    lease_ms BIGINT NOT NULL
);
CREATE INDEX events_in_order ON events (receiver, event_key, state, seq);
CREATE INDEX events_due ON events (state, next_ms);

-- Which messages came already: what a sender sends once more, or somebody else, is not delivered twice.
CREATE TABLE event_messages (
    receiver TEXT NOT NULL,
    message BYTEA NOT NULL,
    expires_ms BIGINT NOT NULL,
    PRIMARY KEY (receiver, message)
);
