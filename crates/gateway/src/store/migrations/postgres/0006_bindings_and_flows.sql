-- Keyed hashes over what says which token selects which client, what the client acts on, and what its calls go out with: a row
-- that was written by anybody else is known by it. Rows from before get theirs once, when the program first opens the store.
ALTER TABLE clients ADD COLUMN mac BYTEA;
ALTER TABLE client_tokens ADD COLUMN mac BYTEA;
ALTER TABLE client_credentials ADD COLUMN mac BYTEA;
ALTER TABLE grants ADD COLUMN mac BYTEA;

-- How a grant gets its access tokens: by a person who authorizes, or by the application alone.
ALTER TABLE grants ADD COLUMN flow TEXT NOT NULL DEFAULT 'authorization_code';

-- What proves that a code was asked for here (RFC 7636), sealed for its client. Links from before end, which live ten minutes.
DELETE FROM connect_states;
ALTER TABLE connect_states ADD COLUMN verifier BYTEA NOT NULL DEFAULT '';
