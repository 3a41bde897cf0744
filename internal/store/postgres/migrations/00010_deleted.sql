-- +goose Up
-- What was deleted, and is gone for good a day after "at".
ALTER TABLE archive ADD COLUMN deleted bool NOT NULL DEFAULT false;
CREATE INDEX archive_deleted ON archive (ns, at) WHERE deleted;
