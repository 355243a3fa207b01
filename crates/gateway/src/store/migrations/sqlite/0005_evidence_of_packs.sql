-- Evidence about one pack is none about another: `pack` is the hash of the one by which all of it was translated, empty in what
-- was counted before it was noted.
CREATE TABLE evidence_of_packs (
    side TEXT NOT NULL,
    operation TEXT NOT NULL,
    phase TEXT NOT NULL,
    stay INTEGER NOT NULL,
    pack TEXT NOT NULL,
    summary TEXT NOT NULL,
    updated_ms INTEGER NOT NULL,
    PRIMARY KEY (side, operation, phase, stay, pack)
);
INSERT INTO evidence_of_packs (side, operation, phase, stay, pack, summary, updated_ms)
    SELECT side, operation, phase, stay, '', summary, updated_ms FROM dual_evidence;
DROP TABLE dual_evidence;
ALTER TABLE evidence_of_packs RENAME TO dual_evidence;
