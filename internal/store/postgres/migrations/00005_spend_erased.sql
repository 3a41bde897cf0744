-- +goose Up
-- What erased namespaces used on the day on which they were erased, for the cap of all namespaces: sums, of nobody.
CREATE TABLE spend_erased (
	day    int4 NOT NULL,
	models bytea NOT NULL
);
