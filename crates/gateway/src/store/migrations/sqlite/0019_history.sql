-- How far a change reaches, and from when until when it holds.
ALTER TABLE history ADD COLUMN scope TEXT NOT NULL DEFAULT '';
ALTER TABLE history ADD COLUMN from_ms INTEGER;
ALTER TABLE history ADD COLUMN until_ms INTEGER;
