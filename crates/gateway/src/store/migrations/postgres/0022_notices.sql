-- Notices to operators that a gateway has claimed: one of those on a store sends each. The id names the change.
CREATE TABLE notices (
    id TEXT PRIMARY KEY,
    at_ms BIGINT NOT NULL
);
