-- A token opens the fronts of one side, or of all where `side` is empty, as those from before sides were noted. One client may
-- have the same token for several sides; two clients never have the same.
ALTER TABLE client_tokens ADD COLUMN side TEXT NOT NULL DEFAULT '';
ALTER TABLE client_tokens ALTER COLUMN side DROP DEFAULT;
ALTER TABLE client_tokens DROP CONSTRAINT client_tokens_pkey;
ALTER TABLE client_tokens ADD PRIMARY KEY (hash, side);

-- What calls of a client to a side go out with, where that is a token that does not change by itself (a grant's tokens do).
-- `token` is sealed; a new value is a new `id`. `refused_ms`: since when the service takes it no more.
CREATE TABLE client_credentials (
    id TEXT PRIMARY KEY,
    client TEXT NOT NULL REFERENCES clients (id),
    side TEXT NOT NULL,
    origin TEXT NOT NULL,
    token BYTEA NOT NULL,
    set_ms BIGINT NOT NULL,
    refused_ms BIGINT,
    UNIQUE (client, side)
);
