-- A token opens the fronts of one side, or of all where `side` is empty, as those from before sides were noted. One client may
-- have the same token for several sides; two clients never have the same.
CREATE TABLE tokens_of_sides (
    hash BLOB NOT NULL,
    side TEXT NOT NULL,
    client TEXT NOT NULL REFERENCES clients (id),
    origin TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    PRIMARY KEY (hash, side)
);
INSERT INTO tokens_of_sides (hash, side, client, origin, created_ms, expires_ms)
    SELECT hash, '', client, origin, created_ms, expires_ms FROM client_tokens;
DROP TABLE client_tokens;
ALTER TABLE tokens_of_sides RENAME TO client_tokens;
CREATE INDEX client_tokens_by_client ON client_tokens (client);

-- What calls of a client to a side go out with, where that is a token that does not change by itself (a grant's tokens do).
-- `token` is sealed; a new value is a new `id`. `refused_ms`: since when the service takes it no more.
CREATE TABLE client_credentials (
    id TEXT PRIMARY KEY,
    client TEXT NOT NULL REFERENCES clients (id),
    side TEXT NOT NULL,
    origin TEXT NOT NULL,
    token BLOB NOT NULL,
    set_ms INTEGER NOT NULL,
    refused_ms INTEGER,
    UNIQUE (client, side)
);
