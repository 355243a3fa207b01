-- Phases that were set at run time; an operation without a row is in its configured phase. `share` is in millionths.
CREATE TABLE phases (
    side TEXT NOT NULL,
    operation TEXT NOT NULL,
    phase TEXT NOT NULL,
    share BIGINT,
    set_by TEXT NOT NULL,
    set_ms BIGINT NOT NULL,
    change BIGINT NOT NULL,
    PRIMARY KEY (side, operation)
);

-- Every move of an operation from one phase to another, with what spoke for it.
CREATE TABLE phase_moves (
    id TEXT PRIMARY KEY,
    side TEXT NOT NULL,
    operation TEXT NOT NULL,
    moved_from TEXT NOT NULL,
    moved_to TEXT NOT NULL,
    moved_by TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    evidence TEXT NOT NULL,
    change BIGINT NOT NULL
);
CREATE INDEX phase_moves_by_change ON phase_moves (change);
