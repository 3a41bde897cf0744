package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// leastVersion is the oldest server version with all features that the store uses.
const leastVersion = 130000

// Examination describes a database.
type Examination struct {
	Server   string   // version
	Form     int64    // version of the tables; 0 if there are none yet
	Newest   int64    // table version that this program creates
	Problems []string // reasons why the store would not open or work
	Durable  bool     // acknowledged commits survive the loss of any one machine
	Promise  string   // the worst-case loss, as a sentence
}

// Examine examines a database without changing it. It returns an error if the database cannot be reached; errors never
// contain the password.
func Examine(ctx context.Context, o Options) (x Examination, err error) {
	conn, err := o.look(ctx)
	if err != nil {
		return x, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // it only reads, so the error does not matter
	for _, look := range []func(context.Context, *pgx.Conn) error{x.server, x.tables, x.durability} {
		if err := look(ctx, conn); err != nil {
			return x, unavailable(err)
		}
	}
	return x, nil
}

// made returns nil if the database has the tables of this version.
func (o *Options) made(ctx context.Context) error {
	x, err := Examine(ctx, *o)
	switch {
	case err != nil:
		return err
	case x.Form == 0:
		return errors.New("there is no store in this database: it has none of the tables")
	case x.Form < x.Newest:
		return fmt.Errorf("the tables have schema version %d of an earlier recurgentd, and this one reads version "+
			"%d: use the earlier one, or start a daemon of this one, which migrates them", x.Form, x.Newest)
	case x.Form > x.Newest:
		return errors.New("the tables were made by a newer recurgentd: use that one")
	}
	return nil
}

// look connects to the database directly, bypassing the pool and any pooler. The caller closes the connection.
func (o *Options) look(ctx context.Context) (*pgx.Conn, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	config, err := o.direct()
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	return conn, unavailable(err)
}

func (x *Examination) problem(format string, args ...any) {
	x.Problems = append(x.Problems, fmt.Sprintf(format, args...))
}

// server checks the version and the encoding of the server, and that it is a primary.
func (x *Examination) server(ctx context.Context, conn *pgx.Conn) error {
	var number int
	var encoding string
	var standby bool
	if err := conn.QueryRow(ctx,
		`SELECT current_setting('server_version'), current_setting('server_version_num')::int4, current_setting('server_encoding'), pg_is_in_recovery()`).
		Scan(&x.Server, &number, &encoding, &standby); err != nil {
		return err
	}
	if number < leastVersion {
		x.problem("PostgreSQL %s is too old; use version %d or newer", x.Server, leastVersion/10000)
	}
	if encoding != "UTF8" {
		x.problem("the database's encoding is %s; create a database with the encoding UTF8", encoding)
	}
	if standby {
		x.problem("this server is a standby, which cannot write; name the primary, or both with " +
			"target_session_attrs=read-write")
	}
	return nil
}

// tables checks the version of the tables and the user's privileges.
func (x *Examination) tables(ctx context.Context, conn *pgx.Conn) error {
	known, err := migrations.ReadDir("migrations")
	if err != nil {
		return err
	}
	x.Newest = int64(len(known) + len(written()))
	var made, create bool
	if err := conn.QueryRow(ctx,
		"SELECT to_regclass('schema_version') IS NOT NULL, coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)").Scan(&made, &create); err != nil {
		return err
	}
	if made {
		if err := conn.QueryRow(ctx,
			"SELECT coalesce(max(version_id), 0) FROM schema_version WHERE is_applied").Scan(&x.Form); err != nil {
			return err
		}
	}
	switch {
	case x.Form > x.Newest:
		x.problem("the tables have schema version %d, but this recurgentd knows versions up to %d: use the newer one",
			x.Form, x.Newest)
	case x.Form < x.Newest && !create:
		x.problem("the user may not create tables in this database; grant CREATE on its schema")
	}
	if !made {
		return nil
	}
	var refused *string
	if err := conn.QueryRow(ctx,
		`SELECT string_agg(tablename, ', ') FROM pg_tables WHERE schemaname = current_schema() AND tablename = ANY($1::text[])
		AND NOT (has_table_privilege(format('%I.%I', schemaname, tablename), 'SELECT') AND has_table_privilege(format('%I.%I', schemaname, tablename), 'INSERT')
		AND has_table_privilege(format('%I.%I', schemaname, tablename), 'UPDATE') AND has_table_privilege(format('%I.%I', schemaname, tablename), 'DELETE'))`,
		append([]string{"namespaces", "feed", "blobs", "pieces", "spend_erased"},
			spaceTables...)).Scan(&refused); err != nil {
		return err
	}
	if refused != nil {
		x.problem("grant SELECT, INSERT, UPDATE and DELETE to the user, who lacks some of them on these tables: %s",
			*refused)
	}
	return nil
}

// durability determines what acknowledged data can be lost in the worst case.
func (x *Examination) durability(ctx context.Context, conn *pgx.Conn) error {
	var commit, standbys, fsync string
	var connected int
	if err := conn.QueryRow(ctx,
		`SELECT current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), current_setting('fsync'),
		(SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum'))`).Scan(&commit, &standbys, &fsync, &connected); err != nil {
		return err
	}
	switch {
	case fsync == "off":
		x.Promise = "fsync is off: a power cut can damage the whole database"
	case commit == "off":
		x.Promise = "synchronous_commit is off: a crash of the database's server takes the newest calls, although they were acknowledged"
	case standbys == "":
		x.Promise = "there is no synchronous standby: what was acknowledged survives a crash and a power cut, but not the loss of the database's machine"
	case commit == "local":
		x.Promise = "synchronous_commit is local: commits do not wait for the synchronous standby; the loss of the database's machine takes the newest calls"
	case connected == 0:
		x.Promise = "a synchronous standby is required and none is seen: commits wait until there is one, or this user may not see it (GRANT pg_monitor)"
	case commit == "remote_write":
		x.Promise = "synchronous_commit is remote_write: a power cut of primary and standby at the same time takes the newest calls"
	default:
		x.Durable = true
		x.Promise = fmt.Sprintf("nothing acknowledged is lost: each commit waits for a synchronous standby, of which %d is connected", connected)
	}
	return nil
}
