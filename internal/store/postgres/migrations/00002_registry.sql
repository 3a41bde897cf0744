-- +goose Up
CREATE TABLE tools (
	ns          int8 NOT NULL,
	role        text COLLATE "C" NOT NULL,
	revision    int8 NOT NULL,
	usage_count int8 NOT NULL,
	last_used   text NOT NULL, -- as the document would have it
	doc         bytea NOT NULL, -- what a use does not change
	PRIMARY KEY (ns, role)
) WITH (fillfactor = 70);

-- The kept rank of each role: store.Ranking's rules, as columns that follow from the figures. Times are microseconds since 1970.
CREATE TABLE ranks (
	ns            int8 NOT NULL,
	role          text COLLATE "C" NOT NULL,
	success       int8 NOT NULL DEFAULT 0, -- sums over the role's artifacts
	failure       int8 NOT NULL DEFAULT 0,
	degraded      int4 NOT NULL DEFAULT 0, -- artifacts by lifecycle state
	candidate     int4 NOT NULL DEFAULT 0,
	probation     int4 NOT NULL DEFAULT 0,
	durable       int4 NOT NULL DEFAULT 0,
	artifact_used int8, -- NULL: no artifact
	tool_used     int8, -- NULL: the role is not registered
	stale         bool NOT NULL DEFAULT false, -- nobody used it for store.StaleAfter when somebody last looked
	used          int8 GENERATED ALWAYS AS (greatest(tool_used, artifact_used)) STORED,
	level         int2 GENERATED ALWAYS AS (CASE WHEN durable > 0 THEN 3 WHEN probation > 0 THEN 2 WHEN candidate > 0 OR degraded = 0 THEN 1 ELSE 0 END) STORED,
	behind        bool GENERATED ALWAYS AS (durable + probation + candidate = 0 AND degraded > 0) STORED,
	rank          float8 GENERATED ALWAYS AS (ln(CASE WHEN success + failure > 0 THEN greatest(success::float8 / (success + failure), 1e-9) ELSE 0.5 END)
		+ coalesce(greatest(tool_used, artifact_used), 0) / 2.592e12) STORED, -- microseconds of 30 days
	PRIMARY KEY (ns, role)
) WITH (fillfactor = 70);
CREATE INDEX ranks_best ON ranks (ns, behind, stale, level DESC, rank DESC, role) WHERE tool_used IS NOT NULL;
CREATE INDEX ranks_used ON ranks (ns, used) WHERE tool_used IS NOT NULL AND NOT stale;

-- What was archived: an artifact, or a tool, whole.
CREATE TABLE archive (
	ns     int8 NOT NULL,
	n      int8 GENERATED ALWAYS AS IDENTITY, -- later ones are larger
	role   text COLLATE "C" NOT NULL,
	method text COLLATE "C" NOT NULL, -- "" of a tool
	tool   bool NOT NULL,
	by     text COLLATE "C" NOT NULL, -- the audit id of the operation
	at     timestamptz NOT NULL,
	doc    bytea NOT NULL,
	PRIMARY KEY (ns, role, method, n)
);

CREATE TABLE policies (
	ns       int8 PRIMARY KEY,
	revision int8 NOT NULL,
	doc      bytea NOT NULL
);

CREATE TABLE connections (
	ns       int8 NOT NULL,
	name     text COLLATE "C" NOT NULL,
	revision int8 NOT NULL,
	doc      bytea NOT NULL,
	PRIMARY KEY (ns, name)
);

-- The trail: line is the entry as the chain has it. Entries of an earlier version, which are not linked, have numbers up to 0.
CREATE TABLE audit (
	ns      int8 NOT NULL,
	n       int8 NOT NULL,
	id      text COLLATE "C" NOT NULL,
	session text COLLATE "C" NOT NULL, -- whose data the entry has; "" once it is erased
	line    bytea NOT NULL,
	PRIMARY KEY (ns, n)
);
CREATE INDEX audit_id ON audit (ns, id);
CREATE INDEX audit_session ON audit (ns, session) WHERE session <> '';
CREATE TABLE audit_heads (
	ns   int8 PRIMARY KEY, -- the row is locked while an entry is linked
	seq  int8 NOT NULL,
	hash text NOT NULL
);

-- The bytes of a file, in pieces. A blob without a file is a draft, or what somebody still reads: it goes when no pin holds it.
CREATE SEQUENCE blob_ids;
CREATE TABLE blobs (
	id   int8 PRIMARY KEY,
	ns   int8 NOT NULL,
	file text COLLATE "C" -- NULL: none
);
CREATE INDEX blobs_loose ON blobs (id) WHERE file IS NULL;
CREATE INDEX blobs_ns ON blobs (ns);
CREATE TABLE pieces (
	blob int8 NOT NULL,
	n    int4 NOT NULL,
	data bytea NOT NULL,
	PRIMARY KEY (blob, n)
);
ALTER TABLE pieces ALTER data SET STORAGE EXTERNAL; -- parts of a piece are read without the rest
CREATE TABLE pins (
	blob       int8 NOT NULL,
	id         int8 NOT NULL,
	expires_at timestamptz NOT NULL, -- by the clock of the database
	PRIMARY KEY (blob, id)
);
CREATE TABLE files (
	ns         int8 NOT NULL,
	id         text COLLATE "C" NOT NULL,
	owner      text COLLATE "C" NOT NULL,
	session    text COLLATE "C" NOT NULL,
	internal   bool NOT NULL,
	bytes      int8 NOT NULL,
	expires_at timestamptz, -- NULL: never
	blob       int8 NOT NULL,
	doc        bytea NOT NULL,
	PRIMARY KEY (ns, id)
);
CREATE INDEX files_owner ON files (ns, owner, id) WHERE NOT internal;
CREATE INDEX files_session ON files (ns, session) WHERE session <> '';
CREATE INDEX files_expires ON files (ns, expires_at) WHERE expires_at IS NOT NULL;

-- What the models were asked, by day; store.Ledger's rows.
CREATE TABLE spend_rows (
	ns     int8 NOT NULL,
	day    int4 NOT NULL, -- days since 1970
	hash   text COLLATE "C" NOT NULL, -- of role, method and owner
	calls  int8 NOT NULL DEFAULT 0,
	warm   int8 NOT NULL DEFAULT 0,
	role   bytea NOT NULL,
	method bytea NOT NULL,
	owner  bytea NOT NULL,
	models bytea NOT NULL DEFAULT 'null', -- []agent.ModelTokens
	PRIMARY KEY (ns, day, hash)
) WITH (fillfactor = 70);
CREATE TABLE spend_open (
	ns  int8 NOT NULL,
	id  text COLLATE "C" NOT NULL,
	doc bytea NOT NULL,
	PRIMARY KEY (ns, id)
);
CREATE TABLE spend_forges (
	ns   int8 NOT NULL,
	hash text COLLATE "C" NOT NULL, -- of role, method and model
	doc  bytea NOT NULL,
	PRIMARY KEY (ns, hash)
);
