-- +goose Up
-- How many bytes things take, by whose they are and of what kind, so that nobody need sum them up. Each statement that changes them notes by how much as
-- new rows of stored_changes, for which nobody waits; readers fold these into stored. The owner "" is all of a namespace, the namespace 0 all of them.
CREATE TABLE stored (
	ns        int8 NOT NULL,
	owner     text COLLATE "C" NOT NULL,
	files     int8 NOT NULL DEFAULT 0,
	contexts  int8 NOT NULL DEFAULT 0,
	histories int8 NOT NULL DEFAULT 0,
	values    int8 NOT NULL DEFAULT 0,
	tools     int8 NOT NULL DEFAULT 0,
	examples  int8 NOT NULL DEFAULT 0,
	PRIMARY KEY (ns, owner)
) WITH (fillfactor = 70);
CREATE TABLE stored_changes (
	ns        int8 NOT NULL,
	owner     text COLLATE "C" NOT NULL,
	files     int8 NOT NULL DEFAULT 0,
	contexts  int8 NOT NULL DEFAULT 0,
	histories int8 NOT NULL DEFAULT 0,
	values    int8 NOT NULL DEFAULT 0,
	tools     int8 NOT NULL DEFAULT 0,
	examples  int8 NOT NULL DEFAULT 0
);
-- What artifacts and, with the method "", the contracts of roles take: their documents do not say whose the parts are.
CREATE TABLE tool_bytes (
	ns       int8 NOT NULL,
	role     text COLLATE "C" NOT NULL,
	method   text COLLATE "C" NOT NULL,
	owner    text COLLATE "C" NOT NULL,
	tools    int8 NOT NULL,
	examples int8 NOT NULL,
	PRIMARY KEY (ns, role, method, owner)
);
ALTER TABLE call_values ADD owner text COLLATE "C", -- of the call; NULL: that of its session
	ADD debug int4 NOT NULL DEFAULT 0; -- bytes of the log entry that go with it

-- A session takes 4096 bytes beside its texts, a file 512, as store.SessionBytes and store.FileBytes have it.
-- A session goes after what belongs to it, so that the triggers find whose that was.
-- +goose StatementBegin
CREATE FUNCTION note_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO stored_changes (ns, owner, contexts) SELECT ns, owner, CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * sum(4096 + octet_length(doc)) FROM changed GROUP BY 1, 2;
	RETURN NULL;
END $$;
CREATE FUNCTION note_contexts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO stored_changes (ns, owner, contexts) SELECT c.ns, s.owner, CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * sum(octet_length(c.name) + octet_length(c.value))
		FROM changed c JOIN sessions s ON (s.ns, s.id) = (c.ns, c.session) GROUP BY 1, 2;
	RETURN NULL;
END $$;
CREATE FUNCTION note_changed_contexts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO stored_changes (ns, owner, contexts) SELECT c.ns, s.owner, sum(c.bytes)
		FROM (SELECT ns, session, octet_length(value) AS bytes FROM changed UNION ALL SELECT ns, session, -octet_length(value) FROM was) c
		JOIN sessions s ON (s.ns, s.id) = (c.ns, c.session) GROUP BY 1, 2;
	RETURN NULL;
END $$;
CREATE FUNCTION note_records() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO stored_changes (ns, owner, histories) SELECT c.ns, s.owner, CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * sum(octet_length(c.doc))
		FROM changed c JOIN sessions s ON (s.ns, s.id) = (c.ns, c.session) GROUP BY 1, 2;
	RETURN NULL;
END $$;
CREATE FUNCTION note_values() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO stored_changes (ns, owner, values) SELECT c.ns, coalesce(c.owner, s.owner, 'local'), CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END *
		sum(coalesce(octet_length(c.outcome), 0) + coalesce(octet_length(c.effects), 0) + c.debug) FROM changed c LEFT JOIN sessions s ON (s.ns, s.id) = (c.ns, c.session) GROUP BY 1, 2;
	RETURN NULL;
END $$;
CREATE FUNCTION note_replies() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO stored_changes (ns, owner, values) SELECT c.ns, coalesce(s.owner, 'local'), CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * sum(coalesce(octet_length(c.reply), 0))
		FROM changed c LEFT JOIN sessions s ON (s.ns, s.id) = (c.ns, c.session) GROUP BY 1, 2;
	RETURN NULL;
END $$;
CREATE FUNCTION note_changed_replies() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO stored_changes (ns, owner, values) SELECT c.ns, coalesce(s.owner, 'local'), sum(c.bytes)
		FROM (SELECT ns, session, coalesce(octet_length(reply), 0) AS bytes FROM changed UNION ALL SELECT ns, session, -coalesce(octet_length(reply), 0) FROM was) c
		LEFT JOIN sessions s ON (s.ns, s.id) = (c.ns, c.session) GROUP BY 1, 2;
	RETURN NULL;
END $$;
-- A part of a call that lives as long as its session is an argument; any other is a value.
CREATE FUNCTION note_files() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	sign int8 := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
	INSERT INTO stored_changes (ns, owner, files, histories, values) SELECT ns, CASE owner WHEN '' THEN 'local' ELSE owner END, sign * coalesce(sum(512 + bytes) FILTER (WHERE NOT internal), 0),
		sign * coalesce(sum(bytes) FILTER (WHERE internal AND expires_at IS NULL), 0), sign * coalesce(sum(bytes) FILTER (WHERE internal AND expires_at IS NOT NULL), 0)
		FROM changed GROUP BY 1, 2;
	RETURN NULL;
END $$;
CREATE FUNCTION note_tools() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	sign int8 := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
	INSERT INTO stored_changes (ns, owner, tools, examples) SELECT ns, owner, sign * sum(tools), sign * sum(examples) FROM changed GROUP BY 1, 2;
	RETURN NULL;
END $$;
CREATE FUNCTION forget_artifacts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM tool_bytes t USING changed c WHERE (t.ns, t.role, t.method) = (c.ns, c.role, c.method);
	RETURN NULL;
END $$;
CREATE FUNCTION forget_tools() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM tool_bytes t USING changed c WHERE (t.ns, t.role, t.method) = (c.ns, c.role, '');
	RETURN NULL;
END $$;
-- fold_stored adds changes to the sums: those of one namespace; or of all (NULL), which leaves alone what others fold at the same time, and whose
-- transaction does not wait for the disk: it is done again where that loses it.
CREATE FUNCTION fold_stored(space int8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	found tid[];
BEGIN
	IF space IS NULL THEN
		PERFORM set_config('synchronous_commit', 'off', true);
		found := ARRAY(SELECT ctid FROM stored_changes LIMIT 100000 FOR UPDATE SKIP LOCKED);
	ELSE
		found := ARRAY(SELECT ctid FROM stored_changes WHERE ns = space FOR UPDATE);
	END IF;
	IF cardinality(found) = 0 THEN
		RETURN;
	END IF;
	WITH gone AS (DELETE FROM stored_changes WHERE ctid = ANY(found) RETURNING *)
	INSERT INTO stored AS s (ns, owner, files, contexts, histories, values, tools, examples)
		SELECT CASE WHEN grouping(ns) = 1 THEN 0 ELSE ns END, CASE WHEN grouping(owner) = 1 THEN '' ELSE owner END,
			sum(files), sum(contexts), sum(histories), sum(values), sum(tools), sum(examples)
		FROM gone GROUP BY GROUPING SETS ((ns, owner), (ns), ()) ORDER BY 1, 2
		ON CONFLICT (ns, owner) DO UPDATE SET files = s.files + excluded.files, contexts = s.contexts + excluded.contexts, histories = s.histories + excluded.histories,
			values = s.values + excluded.values, tools = s.tools + excluded.tools, examples = s.examples + excluded.examples;
END $$;
-- +goose StatementEnd

CREATE TRIGGER note_added AFTER INSERT ON sessions REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_sessions();
CREATE TRIGGER note_gone AFTER DELETE ON sessions REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_sessions();
CREATE TRIGGER note_added AFTER INSERT ON session_context REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_contexts();
CREATE TRIGGER note_gone AFTER DELETE ON session_context REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_contexts();
CREATE TRIGGER note_changed AFTER UPDATE ON session_context REFERENCING OLD TABLE AS was NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_changed_contexts();
CREATE TRIGGER note_added AFTER INSERT ON records REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_records();
CREATE TRIGGER note_gone AFTER DELETE ON records REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_records();
CREATE TRIGGER note_added AFTER INSERT ON call_values REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_values();
CREATE TRIGGER note_gone AFTER DELETE ON call_values REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_values();
CREATE TRIGGER note_added AFTER INSERT ON replies REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_replies();
CREATE TRIGGER note_gone AFTER DELETE ON replies REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_replies();
CREATE TRIGGER note_changed AFTER UPDATE ON replies REFERENCING OLD TABLE AS was NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_changed_replies();
CREATE TRIGGER note_added AFTER INSERT ON files REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_files();
CREATE TRIGGER note_gone AFTER DELETE ON files REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_files();
CREATE TRIGGER note_added AFTER INSERT ON tool_bytes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_tools();
CREATE TRIGGER note_gone AFTER DELETE ON tool_bytes REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_tools();
CREATE TRIGGER forget_bytes AFTER DELETE ON artifacts REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION forget_artifacts();
CREATE TRIGGER forget_bytes AFTER DELETE ON tools REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION forget_tools();

INSERT INTO stored_changes (ns, owner, contexts) SELECT ns, owner, sum(4096 + octet_length(doc)) FROM sessions GROUP BY 1, 2;
INSERT INTO stored_changes (ns, owner, contexts) SELECT s.ns, s.owner, sum(octet_length(c.name) + octet_length(c.value)) FROM session_context c JOIN sessions s ON s.ns = c.ns AND s.id = c.session GROUP BY 1, 2;
INSERT INTO stored_changes (ns, owner, histories) SELECT s.ns, s.owner, sum(octet_length(r.doc)) FROM records r JOIN sessions s ON s.ns = r.ns AND s.id = r.session GROUP BY 1, 2;
INSERT INTO stored_changes (ns, owner, values) SELECT c.ns, coalesce(s.owner, 'local'), sum(coalesce(octet_length(c.outcome), 0) + coalesce(octet_length(c.effects), 0))
	FROM call_values c LEFT JOIN sessions s ON s.ns = c.ns AND s.id = c.session GROUP BY 1, 2;
INSERT INTO stored_changes (ns, owner, values) SELECT c.ns, coalesce(s.owner, 'local'), sum(coalesce(octet_length(c.reply), 0))
	FROM replies c LEFT JOIN sessions s ON s.ns = c.ns AND s.id = c.session GROUP BY 1, 2;
INSERT INTO stored_changes (ns, owner, files, histories, values) SELECT ns, CASE owner WHEN '' THEN 'local' ELSE owner END, coalesce(sum(512 + bytes) FILTER (WHERE NOT internal), 0),
	coalesce(sum(bytes) FILTER (WHERE internal AND expires_at IS NULL), 0), coalesce(sum(bytes) FILTER (WHERE internal AND expires_at IS NOT NULL), 0) FROM files GROUP BY 1, 2;
