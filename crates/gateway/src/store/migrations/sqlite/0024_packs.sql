-- The last packs that served, to go back to one of them. Mapping files and contracts; no secrets.
CREATE TABLE packs (
    -- SHA-256 of the names and contents of all files, in hexadecimal.
    hash TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    -- When it last began to serve.
    served_ms INTEGER NOT NULL,
    who TEXT NOT NULL,
    -- JSON: the digest of each operation's translation, to compare packs without compiling them.
    operations TEXT NOT NULL,
    -- The files, compressed.
    files BLOB NOT NULL,
    change INTEGER NOT NULL
);
-- A recorded pack that serves instead of one on disk; at most one row.
CREATE TABLE restored_pack (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL,
    -- The pack on disk that it replaces: gateways with other files serve those.
    instead_of TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    who TEXT NOT NULL
);
