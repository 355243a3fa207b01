-- Keyed hashes of tokens that selected a client until they were rotated, expired or the client was revoked. They stay for good:
-- a call that carries one is never forwarded to the old service. Operators alone make such rows, one for each token.
CREATE TABLE retired_tokens (
    hash BYTEA PRIMARY KEY,
    change BIGINT NOT NULL
);
CREATE INDEX retired_tokens_by_change ON retired_tokens (change);

-- Sessions of the admin port, by the keyed hash of their random id. A cookie without a row is no session.
CREATE TABLE admin_sessions (
    hash BYTEA PRIMARY KEY,
    began_ms BIGINT NOT NULL,
    ends_ms BIGINT NOT NULL
);
