-- What was counted of each stay of an operation in a phase. `stay` is the number of the write that began it, 0 for the
-- configured phase. `summary` is JSON.
CREATE TABLE dual_evidence (
    side TEXT NOT NULL,
    operation TEXT NOT NULL,
    phase TEXT NOT NULL,
    stay INTEGER NOT NULL,
    summary TEXT NOT NULL,
    updated_ms INTEGER NOT NULL,
    PRIMARY KEY (side, operation, phase, stay)
);

-- Samples: pairs of answers that differed, and calls that were planned and not made. Redacted JSON.
CREATE TABLE dual_records (
    id TEXT PRIMARY KEY,
    side TEXT NOT NULL,
    operation TEXT NOT NULL,
    kind TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    record TEXT NOT NULL,
    change INTEGER NOT NULL
);
CREATE INDEX dual_records_by_operation ON dual_records (side, operation, kind, at_ms);
CREATE INDEX dual_records_by_time ON dual_records (at_ms);

-- What is known to differ when one side is asked twice. JSON.
CREATE TABLE dual_noise (
    side TEXT NOT NULL,
    operation TEXT NOT NULL,
    noise TEXT NOT NULL,
    updated_ms INTEGER NOT NULL,
    PRIMARY KEY (side, operation)
);
