-- The gateways of this store, each with what it says of itself now and then.
CREATE TABLE replicas (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    -- Counts what it has said: whether it goes on is seen without comparing clocks.
    beats BIGINT NOT NULL,
    seen_ms BIGINT NOT NULL,
    -- When it took leave; none while it runs, or where it went without a word.
    left_ms BIGINT,
    -- JSON: its program, its pack and the numbers of its last seconds.
    standing TEXT NOT NULL
);

-- What each of them has counted, slot by slot, for the charts of all.
CREATE TABLE replica_traffic (
    replica TEXT NOT NULL,
    number BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    -- JSON.
    counted TEXT NOT NULL,
    PRIMARY KEY (replica, number)
);
