-- +goose Up
-- What replicas keep of caps in advance: tokens that are neither used nor reserved by a request. Rows of replicas that are dead count for nothing.
CREATE TABLE spend_chunks (
	ns      int8 NOT NULL, -- 0: the cap is of all namespaces
	cap     text COLLATE "C" NOT NULL,
	replica text COLLATE "C" NOT NULL,
	most    int8 NOT NULL, -- the cap's limit when they were taken
	tokens  int8 NOT NULL CHECK (tokens >= 0),
	last    int4 NOT NULL, -- day of the cap's window
	PRIMARY KEY (ns, cap, replica)
);
CREATE INDEX spend_chunks_replica ON spend_chunks (replica);
