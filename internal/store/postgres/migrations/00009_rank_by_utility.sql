-- +goose Up
-- The lifecycle state of a tool decides only between tools that are worth the same.
CREATE INDEX ranks_by_utility ON ranks (ns, stale, rank DESC, level DESC, role) WHERE tool_used IS NOT NULL;
DROP INDEX ranks_best;
