-- What a person who moved an operation is called, by their own word; empty where nobody said so.
ALTER TABLE phase_moves ADD COLUMN who TEXT NOT NULL DEFAULT '';

-- Operations that the gate leaves where they are.
CREATE TABLE phase_holds (
    side TEXT NOT NULL,
    operation TEXT NOT NULL,
    who TEXT NOT NULL,
    reason TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (side, operation)
);

-- What happened beside moves: reloads, clients that were added, connected, changed and revoked, holds.
CREATE TABLE history (
    id TEXT PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    who TEXT NOT NULL,
    detail TEXT NOT NULL,
    change BIGINT NOT NULL
);
CREATE INDEX history_by_change ON history (change);
