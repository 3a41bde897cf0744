-- +goose Up
ALTER TABLE programs ADD unreferenced timestamptz; -- since when no artifact refers to it; NULL: one does, or nobody has looked
