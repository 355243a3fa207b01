-- One row, bumped first by every transaction that writes: it puts writers in one order, and tells readers that something changed.
CREATE TABLE change_counter (id INTEGER PRIMARY KEY CHECK (id = 1), value INTEGER NOT NULL);
INSERT INTO change_counter (id, value) VALUES (1, 0);

-- Sealing keys in use. `proof` is a known text sealed with the key: a wrong key is noticed before anything else is read.
CREATE TABLE sealing_keys (id TEXT PRIMARY KEY, proof BLOB NOT NULL, created_ms INTEGER NOT NULL);

-- The key of all keyed hashes, itself sealed. It stays the same when the sealing key rotates, so hashes stay findable.
CREATE TABLE hash_key (id INTEGER PRIMARY KEY CHECK (id = 1), sealed BLOB NOT NULL);

CREATE TABLE clients (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    company TEXT,
    created_ms INTEGER NOT NULL,
    revoked_ms INTEGER,
    change INTEGER NOT NULL
);
CREATE INDEX clients_by_change ON clients (change);

-- Old tokens, as keyed hashes. `expires_ms` is set when a token was rotated out with a grace period.
CREATE TABLE client_tokens (
    hash BLOB PRIMARY KEY,
    client TEXT NOT NULL REFERENCES clients (id),
    origin TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER
);
CREATE INDEX client_tokens_by_client ON client_tokens (client);

-- `app_*`, `access`, `refresh` and `previous_refresh` are sealed. `seed_mark` is the keyed hash of the credentials that the
-- configuration gave, so that a restart with the same file does not undo later rotations.
CREATE TABLE grants (
    id TEXT PRIMARY KEY,
    client TEXT NOT NULL UNIQUE REFERENCES clients (id),
    generation INTEGER NOT NULL,
    state TEXT NOT NULL,
    state_reason TEXT,
    app_id BLOB,
    app_secret BLOB,
    access BLOB,
    refresh BLOB,
    previous_refresh BLOB,
    issued_ms INTEGER,
    lifetime_ms INTEGER,
    seed_mark BLOB,
    lease_owner TEXT,
    lease_until_ms INTEGER,
    updated_ms INTEGER NOT NULL,
    change INTEGER NOT NULL
);
CREATE INDEX grants_by_change ON grants (change);

-- Written before a refresh token is spent, removed with the result: a row that outlives its refresh says "outcome unknown".
CREATE TABLE refresh_intents (
    grant_id TEXT PRIMARY KEY REFERENCES grants (id),
    generation INTEGER NOT NULL,
    refresh_hash BLOB NOT NULL,
    owner TEXT NOT NULL,
    started_ms INTEGER NOT NULL
);

-- Pending authorizations: the keyed hash of `state`, for one client, until it is used or expires.
CREATE TABLE connect_states (
    hash BLOB PRIMARY KEY,
    client TEXT NOT NULL REFERENCES clients (id),
    expires_ms INTEGER NOT NULL
);

-- Half-done work of several calls: what each finished step gave, sealed, so that a repeated request goes on and repeats nothing.
CREATE TABLE resume_steps (
    client TEXT NOT NULL,
    work BLOB NOT NULL,
    step TEXT NOT NULL,
    sealed BLOB NOT NULL,
    expires_ms INTEGER NOT NULL,
    PRIMARY KEY (client, work, step)
);
CREATE INDEX resume_steps_by_expiry ON resume_steps (expires_ms);
