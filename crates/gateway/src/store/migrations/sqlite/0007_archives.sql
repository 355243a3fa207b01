-- What the gateway keeps of its own, by client and account: marks of what is gone, and what only one version knows. The key of an
-- entry is kept as a keyed hash; its value and the moment it was kept are sealed for just this place.
CREATE TABLE archive_entries (
    client TEXT NOT NULL,
    account TEXT NOT NULL,
    archive TEXT NOT NULL,
    entry BLOB NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (client, account, archive, entry)
);

-- How far harvests have come: the next page, and when the last one was read.
CREATE TABLE archive_harvests (
    client TEXT NOT NULL,
    account TEXT NOT NULL,
    harvest TEXT NOT NULL,
    page INTEGER NOT NULL,
    elements INTEGER NOT NULL,
    kept INTEGER NOT NULL,
    finished_ms INTEGER,
    changed_ms INTEGER NOT NULL,
    PRIMARY KEY (client, account, harvest)
);
