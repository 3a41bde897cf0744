package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// written returns the migrations written in Go.
func written() []*goose.Migration {
	return []*goose.Migration{goose.NewGoMigration(8, &goose.GoFunc{RunTx: countTools}, nil)}
}

// migrate brings the tables to the version that this program knows. A lock serializes replicas. It returns an error if
// the tables have a newer version.
func migrate(ctx context.Context, config *pgx.ConnConfig) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config)
	defer db.Close() // its connection is done
	// Another replica may be migrating: wait for up to two minutes.
	const second, tries = 1, 120
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(second, tries))
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker),
		goose.WithTableName("schema_version"), goose.WithGoMigrations(written()...))
	if err != nil {
		return err
	}
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if have > want {
		return fmt.Errorf("the database's tables have the form %d, which a later version made; this one knows forms up to %d", have, want)
	}
	if have == want {
		return nil
	}
	_, err = p.Up(ctx)
	return err
}
