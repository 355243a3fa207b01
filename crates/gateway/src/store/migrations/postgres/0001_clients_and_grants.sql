-- One row, bumped first by every transaction that writes: it puts writers in one order, and tells readers that something changed.
CREATE TABLE change_counter (id BIGINT PRIMARY KEY CHECK (id = 1), value BIGINT NOT NULL);
INSERT INTO change_counter (id, value) VALUES (1, 0);

-- Sealing keys in use. `proof` is a known text sealed with the key: a wrong key is noticed before anything else is read.
CREATE TABLE sealing_keys (id TEXT PRIMARY KEY, proof BYTEA NOT NULL, created_ms BIGINT NOT NULL);

-- The key of all keyed hashes, itself sealed. It stays the same when the sealing key rotates, so hashes stay findable.
CREATE TABLE hash_key (id BIGINT PRIMARY KEY CHECK (id = 1), sealed BYTEA NOT NULL);

CREATE TABLE clients (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    company TEXT,
    created_ms BIGINT NOT NULL,
    revoked_ms BIGINT,
    change BIGINT NOT NULL
);
CREATE INDEX clients_by_change ON clients (change);

-- Old tokens, as keyed hashes. `expires_ms` is set when a token was rotated out with a grace period.
CREATE TABLE client_tokens (
    hash BYTEA PRIMARY KEY,
    client TEXT NOT NULL REFERENCES clients (id),
    origin TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT
);
CREATE INDEX client_tokens_by_client ON client_tokens (client);

-- `app_*`, `access`, `refresh` and `previous_refresh` are sealed. `seed_mark` is the keyed hash of the credentials that the
-- configuration gave, so that a restart with the same file does not undo later rotations.
CREATE TABLE grants (
    id TEXT PRIMARY KEY,
    client TEXT NOT NULL UNIQUE REFERENCES clients (id),
    generation BIGINT NOT NULL,
    state TEXT NOT NULL,
    state_reason TEXT,
    app_id BYTEA,
    app_secret BYTEA,
    access BYTEA,
    refresh BYTEA,
    previous_refresh BYTEA,
    issued_ms BIGINT,
    lifetime_ms BIGINT,
    seed_mark BYTEA,
    lease_owner TEXT,
    lease_until_ms BIGINT,
    updated_ms BIGINT NOT NULL,
    change BIGINT NOT NULL
);
CREATE INDEX grants_by_change ON grants (change);

-- Written before a refresh token is spent, removed with the result: a row that outlives its refresh says "outcome unknown".
CREATE TABLE refresh_intents (
    grant_id TEXT PRIMARY KEY REFERENCES grants (id),
    generation BIGINT NOT NULL,
    refresh_hash BYTEA NOT NULL,
    owner TEXT NOT NULL,
    started_ms BIGINT NOT NULL
);

-- Pending authorizations: the keyed hash of `state`, for one client, until it is used or expires.
CREATE TABLE connect_states (
    hash BYTEA PRIMARY KEY,
    client TEXT NOT NULL REFERENCES clients (id),
    expires_ms BIGINT NOT NULL
);

-- Half-done work of several calls: what each finished step gave, sealed, so that a repeated request goes on and repeats nothing.
CREATE TABLE resume_steps (
    client TEXT NOT NULL,
    work BYTEA NOT NULL,
    step TEXT NOT NULL,
    sealed BYTEA NOT NULL,
    expires_ms BIGINT NOT NULL,
    PRIMARY KEY (client, work, step)
);
CREATE INDEX resume_steps_by_expiry ON resume_steps (expires_ms);
