-- Records are asked for by operation whatever its side: the index begins with it. What is forgotten names side, operation and
-- kind, and finds them as before.
DROP INDEX dual_records_by_operation;
CREATE INDEX dual_records_of_operation ON dual_records (operation, side, kind, at_ms);
