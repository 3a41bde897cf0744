package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// leastVersion is the oldest server that has what the store uses.
const leastVersion = 130000

// Examination is what a database is, without changing it.
type Examination struct {
	Server   string   // its version
	Form     int64    // of the tables; 0: there are none yet
	Newest   int64    // form that this version makes
	Problems []string // why the store would not open or not work
	Durable  bool     // what is acknowledged survives the loss of any one machine
	Promise  string   // what is lost at worst, in words
}

// Examine looks at a database and changes nothing. The error says that it cannot be reached; no error holds a password.
func Examine(ctx context.Context, o Options) (x Examination, err error) {
	conn, err := o.look(ctx)
	if err != nil {
		return x, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // it changed nothing
	for _, look := range []func(context.Context, *pgx.Conn) error{x.server, x.tables, x.durability} {
		if err := look(ctx, conn); err != nil {
			return x, unavailable(err)
		}
	}
	return x, nil
}

// made returns nil where the database has the tables of this version.
func (o *Options) made(ctx context.Context) error {
	x, err := Examine(ctx, *o)
	switch {
	case err != nil:
		return err
	case x.Form == 0:
		return errors.New("there is no store in this database: it has none of the tables")
	case x.Form < x.Newest:
		return fmt.Errorf("the tables have the form %d of an earlier version, and this one reads the form %d: use that version, or start a daemon of this one, which brings them up to date", x.Form, x.Newest)
	case x.Form > x.Newest:
		return errors.New("the tables were made by a later version")
	}
	return nil
}

// look connects to the database past the pool and a pooler. The caller closes the connection.
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
		x.problem("PostgreSQL %s is too old; %d is the oldest that works", x.Server, leastVersion/10000)
	}
	if encoding != "UTF8" {
		x.problem("the database's encoding is %s, not UTF8", encoding)
	}
	if standby {
		x.problem("this server is a standby, which takes no writes; name the primary, or both with target_session_attrs=read-write")
	}
	return nil
}

// tables looks which form the tables have, and whether the user may work with them.
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
		x.problem("the tables have the form %d, which a later version made; this one knows forms up to %d", x.Form,
			x.Newest)
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
		x.problem("the user may not read or write these tables: %s", *refused)
	}
	return nil
}

// durability says what is lost at worst of what was acknowledged.
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
