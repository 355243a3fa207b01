-- The rollout of an operation: its plan, its state, and the phase before it. The steps are in the configuration; the
-- current one follows from the phase. `back_share` is in millionths.
CREATE TABLE rollouts (
    side TEXT NOT NULL,
    operation TEXT NOT NULL,
    plan TEXT NOT NULL,
    state TEXT NOT NULL,
    back_phase TEXT NOT NULL,
    back_share INTEGER,
    who TEXT NOT NULL,
    reason TEXT NOT NULL,
    started_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    change INTEGER NOT NULL,
    PRIMARY KEY (side, operation)
);
