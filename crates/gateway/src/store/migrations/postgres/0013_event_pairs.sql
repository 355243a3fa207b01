-- Events of both sides that tell the same, in a dual run: the first of two waits here for the other. What it says is sealed for
-- just this row; what it is found by is kept as a keyed hash. Of the two exactly one is delivered, and the first to come decides
-- which: a change of phase between them loses and doubles nothing.
CREATE TABLE event_pairs (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    receiver TEXT NOT NULL,
    operation TEXT NOT NULL,
    pair_key BYTEA NOT NULL,
    is_own BIGINT NOT NULL,
    is_delivered BIGINT NOT NULL,
    is_compared BIGINT NOT NULL,
    sealed BYTEA NOT NULL,
    bytes BIGINT NOT NULL,
    pack TEXT NOT NULL,
    came_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL
);
CREATE INDEX event_pairs_found ON event_pairs (receiver, operation, pair_key, is_own, seq);
CREATE INDEX event_pairs_old ON event_pairs (expires_ms);

-- Up to when events of a receiver may lack the other one because there was no room for it.
CREATE TABLE event_pair_gaps (
    receiver TEXT PRIMARY KEY,
    until_ms BIGINT NOT NULL
);

-- Whether an event is delivered as it came: its receiver knows the form.
ALTER TABLE events ADD COLUMN is_own BIGINT NOT NULL DEFAULT 0;
