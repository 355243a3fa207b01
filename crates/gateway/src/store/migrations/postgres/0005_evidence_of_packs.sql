-- Evidence about one pack is none about another: `pack` is the hash of the one by which all of it was translated, empty in what
-- was counted before it was noted.
ALTER TABLE dual_evidence ADD COLUMN pack TEXT NOT NULL DEFAULT '';
ALTER TABLE dual_evidence DROP CONSTRAINT dual_evidence_pkey;
ALTER TABLE dual_evidence ADD PRIMARY KEY (side, operation, phase, stay, pack);
