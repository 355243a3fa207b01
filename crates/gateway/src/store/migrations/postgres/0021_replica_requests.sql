-- The sampled requests of a gateway, for the admin site of another one: one row each, replaced every few
-- seconds while somebody reads them, and deleted afterwards.
CREATE TABLE replica_requests (
    replica TEXT PRIMARY KEY,
    -- JSON, masked.
    sampled TEXT NOT NULL
);
