-- Documents are bytea, never json or jsonb: what is stored comes back byte for byte, with numbers of any size, U+0000 and text that is not
-- UTF-8. What is searched for stands beside them in columns. Text columns of keys are made by key() in text.go and compared bytewise.
-- ns is namespaces.id and the first column of every key: a namespace that is made again under a name that was erased has another id.

-- +goose Up
CREATE TABLE namespaces (
	id         int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name       text COLLATE "C" NOT NULL UNIQUE,
	created_at timestamptz, -- NULL: not known, as of the default one
	due        timestamptz  -- NULL: it changed since it was last expired
);
INSERT INTO namespaces (name) VALUES ('default');

CREATE TABLE replicas (
	id         text COLLATE "C" PRIMARY KEY,
	started_at timestamptz NOT NULL, -- by the clock of the database, as the below
	expires_at timestamptz NOT NULL,
	doc        bytea NOT NULL
);

CREATE SEQUENCE epochs; -- of all sessions, so that one that is made again under an id has another
CREATE TABLE sessions (
	ns           int8 NOT NULL,
	id           text COLLATE "C" NOT NULL,
	owner        text COLLATE "C" NOT NULL,
	ephemeral    bool NOT NULL,
	updated_at   timestamptz NOT NULL,
	history_size int4 NOT NULL DEFAULT 0,
	revision     int8 NOT NULL DEFAULT 1,
	replica      text COLLATE "C", -- the owner while it is in use; NULL: nobody
	epoch        int8 NOT NULL DEFAULT 0, -- of the last change of the owner
	doc          bytea NOT NULL, -- what a call does not change
	PRIMARY KEY (ns, id)
) WITH (fillfactor = 70); -- room for the updates of each call in the same page, without a change of the index
CREATE INDEX sessions_replica ON sessions (replica) WHERE replica IS NOT NULL;

CREATE TABLE session_context (
	ns      int8 NOT NULL,
	session text COLLATE "C" NOT NULL,
	hash    text COLLATE "C" NOT NULL, -- key() of name
	name    bytea NOT NULL,
	value   bytea NOT NULL,
	PRIMARY KEY (ns, session, hash)
) WITH (fillfactor = 70);

CREATE TABLE records (
	ns      int8 NOT NULL,
	session text COLLATE "C" NOT NULL,
	seq     int4 NOT NULL,
	call_id text COLLATE "C" NOT NULL,
	role    text COLLATE "C" NOT NULL,
	method  text COLLATE "C" NOT NULL,
	status  text COLLATE "C" NOT NULL,
	depth   int4 NOT NULL,
	at      timestamptz, -- NULL: its timestamp is none
	doc     bytea NOT NULL,
	PRIMARY KEY (ns, session, seq) INCLUDE (role, method, status, depth, at) -- so that what a filter passes over is not read
);

-- A call's place in the log is its transaction's number, then its own in it: below the oldest transaction that is running nothing is added any
-- more. Where a database is restored from a dump its transactions are counted anew: added then makes up for it.
CREATE TABLE era (added int8 NOT NULL);
INSERT INTO era VALUES (0);
CREATE FUNCTION call_place() RETURNS int8 LANGUAGE sql VOLATILE AS 'SELECT (pg_current_xact_id()::text::int8 + added) << 20 FROM era';
-- What is below it is stable.
CREATE FUNCTION call_horizon() RETURNS int8 LANGUAGE sql VOLATILE AS 'SELECT (pg_snapshot_xmin(pg_current_snapshot())::text::int8 + added) << 20 FROM era';

CREATE TABLE calls (
	ns             int8 NOT NULL,
	call_id        text COLLATE "C" NOT NULL,
	n              int8 NOT NULL, -- the order of the log: see call_place
	session        text COLLATE "C" NOT NULL,
	root           text COLLATE "C" NOT NULL,
	parent         text COLLATE "C" NOT NULL,
	trace          text COLLATE "C" NOT NULL,
	role           text COLLATE "C" NOT NULL,
	method         text COLLATE "C" NOT NULL,
	status         text COLLATE "C" NOT NULL,
	error_type     text COLLATE "C" NOT NULL,
	source         text COLLATE "C" NOT NULL,
	weak           bool NOT NULL,
	history_access bool NOT NULL,
	debug          bool NOT NULL, -- it holds prompts, which go with the values
	owner          text COLLATE "C", -- of the entry, else of its session; NULL: nobody
	named          bool NOT NULL, -- the entry names its owner
	at             timestamptz, -- of the entry; NULL: its timestamp is none
	corrected_by   text COLLATE "C" NOT NULL DEFAULT '',
	doc            bytea NOT NULL,
	PRIMARY KEY (ns, call_id)
);
CREATE UNIQUE INDEX calls_n ON calls (ns, n);
CREATE INDEX calls_session ON calls (ns, session, n);
CREATE INDEX calls_method ON calls (ns, role, method, n);
CREATE INDEX calls_trace ON calls (ns, trace, n);
CREATE INDEX calls_at ON calls (ns, at);
-- What most calls have in common is found without an index.
CREATE INDEX calls_parent ON calls (ns, parent, n) WHERE parent <> '';
CREATE INDEX calls_root ON calls (ns, root) WHERE root <> '';
CREATE INDEX calls_status ON calls (ns, status, n) WHERE status <> 'ok';
CREATE INDEX calls_error_type ON calls (ns, error_type, n) WHERE error_type <> '';
CREATE INDEX calls_source ON calls (ns, source, n) WHERE source <> 'persisted';
CREATE INDEX calls_weak ON calls (ns, n) WHERE weak;
CREATE INDEX calls_history_access ON calls (ns, n) WHERE history_access;
CREATE INDEX calls_owner ON calls (ns, owner, n) WHERE owner <> 'local';
CREATE INDEX calls_debug ON calls (ns, at) WHERE debug;

CREATE TABLE call_values (
	ns      int8 NOT NULL,
	call_id text COLLATE "C" NOT NULL,
	session text COLLATE "C" NOT NULL,
	at      timestamptz NOT NULL, -- when the call was committed
	outcome bytea,
	effects bytea,
	PRIMARY KEY (ns, call_id)
);
CREATE INDEX call_values_session ON call_values (ns, session);
CREATE INDEX call_values_at ON call_values (ns, at);

CREATE TABLE replies (
	ns        int8 NOT NULL,
	key       text COLLATE "C" NOT NULL,
	session   text COLLATE "C" NOT NULL,
	at        timestamptz NOT NULL,
	call_id   bytea NOT NULL,
	body_hash bytea NOT NULL,
	reply     bytea,
	PRIMARY KEY (ns, key)
);
CREATE INDEX replies_session ON replies (ns, session);
CREATE INDEX replies_at ON replies (ns, at);

CREATE SEQUENCE content_order;
CREATE TABLE contents (
	ns       int8 NOT NULL,
	ref      text COLLATE "C" NOT NULL,
	used     int8 NOT NULL, -- the order of use
	sessions text[] NOT NULL, -- that stored it
	value    bytea NOT NULL,
	PRIMARY KEY (ns, ref)
);

CREATE TABLE patterns (
	ns      int8 NOT NULL,
	role    text COLLATE "C" NOT NULL,
	n       int8 GENERATED ALWAYS AS IDENTITY,
	session text COLLATE "C" NOT NULL,
	doc     bytea NOT NULL,
	PRIMARY KEY (ns, role, n)
);
CREATE INDEX patterns_session ON patterns (ns, session);

CREATE TABLE evidence (
	ns         int8 NOT NULL,
	role       text COLLATE "C" NOT NULL,
	method     text COLLATE "C" NOT NULL,
	version    int8 NOT NULL, -- another with each change
	last       text COLLATE "C" NOT NULL,
	weight     int8 NOT NULL, -- calls kept
	remarkable bool NOT NULL, -- it has notes or a verdict
	doc        bytea NOT NULL,
	PRIMARY KEY (ns, role, method)
) WITH (fillfactor = 70);

-- An artifact in two parts: the head, which every counted call writes, and the body, which few do.
CREATE TABLE artifacts (
	ns           int8 NOT NULL,
	role         text COLLATE "C" NOT NULL,
	method       text COLLATE "C" NOT NULL,
	version      int8 NOT NULL, -- another with each change of the head
	body_version int8 NOT NULL, -- another with each change of the body
	state        text COLLATE "C" NOT NULL,
	head         bytea NOT NULL,
	PRIMARY KEY (ns, role, method)
) WITH (fillfactor = 70);
CREATE TABLE artifact_bodies (
	ns     int8 NOT NULL,
	role   text COLLATE "C" NOT NULL,
	method text COLLATE "C" NOT NULL,
	body   bytea NOT NULL,
	PRIMARY KEY (ns, role, method)
);
CREATE TABLE programs (
	ns       int8 NOT NULL,
	checksum text COLLATE "C" NOT NULL,
	code     bytea NOT NULL,
	unreferenced timestamptz, -- since when no artifact refers to it; NULL: one does, or nobody has looked
	PRIMARY KEY (ns, checksum)
);

-- All times by the clock of the database.
CREATE TABLE leases (
	ns         int8 NOT NULL,
	key        text COLLATE "C" NOT NULL,
	token      int8 NOT NULL, -- of who holds it
	holder     text NOT NULL,
	expires_at timestamptz NOT NULL,
	PRIMARY KEY (ns, key)
);
CREATE TABLE candidates (
	ns         int8 NOT NULL,
	key        text COLLATE "C" NOT NULL,
	value      bytea NOT NULL,
	expires_at timestamptz NOT NULL,
	PRIMARY KEY (ns, key)
);

-- The change feed. Numbers are not in the order of the commits: readers page by (xid, n) below the oldest transaction that is running.
CREATE TABLE feed (
	xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
	n   int8 GENERATED ALWAYS AS IDENTITY,
	at  timestamptz NOT NULL DEFAULT clock_timestamp(),
	ns      int8 NOT NULL,
	call_id text COLLATE "C" NOT NULL, -- of a call, else ''
	doc     bytea NOT NULL,
	PRIMARY KEY (xid, n)
);
CREATE INDEX feed_at ON feed (at);
CREATE TABLE feed_floor (
	xid xid8 NOT NULL, -- what is not above (xid, n) may be gone
	n   int8 NOT NULL
);
INSERT INTO feed_floor VALUES ('0', 0);
