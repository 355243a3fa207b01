-- Calls of clients, by side, operation and what became of them (`kind`), summed over all gateways since the first one.
-- `client` is empty where nobody enrolled it; `operation` of an unknown call is method and path as logs show it.
CREATE TABLE client_usage (
    side TEXT NOT NULL,
    client TEXT NOT NULL,
    operation TEXT NOT NULL,
    kind TEXT NOT NULL,
    calls BIGINT NOT NULL,
    first_ms BIGINT NOT NULL,
    last_ms BIGINT NOT NULL,
    PRIMARY KEY (side, client, operation, kind)
);

-- Windows in which calls of a side are turned away on purpose. `operations` and `clients` are JSON lists; empty ones mean all.
CREATE TABLE brownouts (
    id TEXT PRIMARY KEY,
    side TEXT NOT NULL,
    operations TEXT NOT NULL,
    clients TEXT NOT NULL,
    from_ms BIGINT NOT NULL,
    until_ms BIGINT NOT NULL,
    reason TEXT NOT NULL,
    set_by TEXT NOT NULL,
    set_ms BIGINT NOT NULL,
    change BIGINT NOT NULL
);

-- When a side ends for a client. Without `at_ms` the configured date was taken back.
CREATE TABLE client_sunsets (
    client TEXT NOT NULL,
    side TEXT NOT NULL,
    at_ms BIGINT,
    deprecated_ms BIGINT,
    announce BIGINT NOT NULL,
    set_by TEXT NOT NULL,
    set_ms BIGINT NOT NULL,
    change BIGINT NOT NULL,
    PRIMARY KEY (client, side)
);
