-- +goose Up
-- How many bytes files have, so that nobody need sum them up. Triggers of files keep both tables.
CREATE TABLE file_bytes (
	ns     int8 NOT NULL,
	holder text COLLATE "C" NOT NULL, -- file_holder of the files; internal ones have none
	bytes  int8 NOT NULL,
	PRIMARY KEY (ns, holder)
) WITH (fillfactor = 70);
-- Those of all namespaces, internal ones too, in sum: connections add to several rows, so that few wait for each other. One alone may be below 0.
CREATE TABLE file_totals (
	slot  int4 PRIMARY KEY,
	bytes int8 NOT NULL
) WITH (fillfactor = 10);

-- A session, or the owner of a file that belongs to none.
CREATE FUNCTION file_holder(session text, owner text) RETURNS text LANGUAGE sql IMMUTABLE AS
	$$SELECT CASE WHEN session <> '' THEN 'session ' || session ELSE 'owner ' || owner END$$;

-- +goose StatementBegin
CREATE FUNCTION count_files() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	sign int8 := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
	total int8 := sign * (SELECT sum(bytes) FROM changed);
BEGIN
	IF total IS NULL THEN
		RETURN NULL;
	END IF;
	INSERT INTO file_bytes AS b (ns, holder, bytes) SELECT ns, file_holder(session, owner), sign * sum(bytes) FROM changed WHERE NOT internal GROUP BY 1, 2 ORDER BY 1, 2
		ON CONFLICT (ns, holder) DO UPDATE SET bytes = b.bytes + excluded.bytes;
	IF sign < 0 THEN
		DELETE FROM file_bytes b USING changed c WHERE b.ns = c.ns AND b.holder = file_holder(c.session, c.owner) AND b.bytes = 0;
	END IF;
	INSERT INTO file_totals AS t (slot, bytes) VALUES (pg_backend_pid() & 15, total) ON CONFLICT (slot) DO UPDATE SET bytes = t.bytes + excluded.bytes;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER count_added AFTER INSERT ON files REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_files();
CREATE TRIGGER count_gone AFTER DELETE ON files REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_files();

INSERT INTO file_bytes SELECT ns, file_holder(session, owner), sum(bytes) FROM files WHERE NOT internal GROUP BY 1, 2;
INSERT INTO file_totals SELECT 0, coalesce(sum(bytes), 0) FROM files;
