-- The column kind holds outcomes of one closed list from here on. Rows with another word were counted before: what became of
-- their calls is not known exactly. A refused operation may have been answered by the old service.
ALTER TABLE client_usage ADD COLUMN is_unknown INTEGER NOT NULL DEFAULT 0;
UPDATE client_usage SET is_unknown = 1 WHERE kind = 'unknown';
UPDATE client_usage SET kind = 'refused before outcomes' WHERE kind = 'refused';
