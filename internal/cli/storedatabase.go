package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk"
	"github.com/recurgentd/recurgentd/internal/store/postgres"
)

// storeDatabase is the argument of store copy for the database named by RECURGENT_STORE or --store-file.
const storeDatabase = "database"

// databaseFlags select the database that a store command uses instead of a data directory.
type databaseFlags struct{ url, file *string }

func addDatabaseFlags(c *cobra.Command) databaseFlags {
	return databaseFlags{
		c.Flags().String("store", "",
			"work on a database, postgres://USER@HOST/NAME, instead of a data directory [RECURGENT_STORE]"),
		c.Flags().String("store-file", "", "file that holds the URL of the database [RECURGENT_STORE_FILE]"),
	}
}

// named returns the URL of the database and its form for reports, or "" if the data directory is meant. dir is the
// value of --data-dir, which takes precedence over the environment.
func (f databaseFlags) named(sh Shell, dir string) (address, shown string, err error) {
	text, file := *f.url, *f.file
	if text == "" && file == "" {
		if dir != "" {
			return "", "", nil
		}
		text, _ = sh.Env("RECURGENT_STORE")
		if direct, _ := sh.Env("RECURGENT_STORE_DIRECT"); direct != "" && isDatabase(text) {
			text = direct // a pooler may not keep the locks of migrations
		}
		file, _ = sh.Env("RECURGENT_STORE_FILE")
	} else if err := refusePassword(text); err != nil {
		return "", "", err
	}
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			var of *fs.PathError
			if errors.As(err, &of) {
				err = of.Err // drop the path, which may be a URL by mistake
			}
			return "", "", exitWith(ExitUsage, fmt.Errorf("store-file: %w", err))
		}
		lines := strings.Fields(string(data))
		if len(lines) == 0 {
			return "", "", exitWith(ExitUsage, errors.New("store-file: the file is empty; write the database's URL "+
				"into it"))
		}
		text = lines[len(lines)-1] // a second URL bypasses the pooler
	}
	if text == "" || text == "disk" {
		return "", "", nil
	}
	shown, err = shownDatabase(text)
	return text, shown, err
}

// refusePassword rejects a URL with a password on the command line, which every user of the machine can read.
func refusePassword(text string) error {
	u, err := url.Parse(text)
	if err != nil || !isDatabase(text) {
		return nil
	}
	_, inUser := u.User.Password()
	if inUser || u.Query().Has("password") {
		return exitWith(ExitUsage,
			errors.New("the URL has a password, and other users of this machine can read command lines: put it into RECURGENT_STORE or a file that --store-file names, or leave the password to PGPASSWORD or ~/.pgpass"))
	}
	return nil
}

// isDatabase reports whether the text is the URL of a PostgreSQL database.
func isDatabase(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// shownDatabase returns the URL reduced to host and name, without parts that may be secret.
func shownDatabase(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || !isDatabase(text) {
		// Do not quote the text: it may contain a password.
		return "", exitWith(ExitUsage, errors.New("store: not a URL such as postgres://USER@HOST/NAME"))
	}
	return "postgres://" + u.Host + u.Path, nil
}

// withDatabase opens the database for a command that fills it.
func withDatabase(ctx context.Context, sh Shell, address string, do func(*postgres.Store) error) error {
	return openDatabase(ctx, sh, postgres.DefaultOptions(address), do)
}

// withExisting opens the database for a command that reads it. It must exist, so that a mistyped name does not create a
// new store.
func withExisting(ctx context.Context, sh Shell, address string, do func(*postgres.Store) error) error {
	o := postgres.DefaultOptions(address)
	o.Existing = true
	return openDatabase(ctx, sh, o, do)
}

func openDatabase(ctx context.Context, sh Shell, o postgres.Options, do func(*postgres.Store) error) error {
	o.Logger = diskOptions(sh).Logger
	s, err := postgres.Open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close(context.WithoutCancel(ctx)))
}

// verifyDatabase verifies a database and returns a report in the form of the data directory's.
func verifyDatabase(ctx context.Context, sh Shell, address string, noted []disk.NotedHead) (r disk.Report, err error) {
	err = withExisting(ctx, sh, address, func(s *postgres.Store) error {
		heads := make([]postgres.NotedHead, len(noted))
		for i, n := range noted {
			heads[i] = postgres.NotedHead{Namespace: n.Namespace, Hash: n.Hash}
		}
		found, err := s.Verify(ctx, heads...)
		r = disk.Report{Sessions: found.Sessions, Records: found.Records, Artifacts: found.Artifacts,
			Programs: found.Programs, Tools: found.Tools, Calls: found.Calls, Problems: found.Problems,
			OtherForms: found.OtherForms}
		for _, a := range found.Audit {
			r.Audit = append(r.Audit, disk.AuditReport(a))
		}
		return err
	})
	return r, err
}

func storeCopyCommand(sh Shell) *cobra.Command {
	c := &cobra.Command{Use: "copy FROM TO", Args: cobra.ExactArgs(2),
		Short: "Copy everything between a data directory and a database, both ways",
		Long: `Copy everything from one store into an empty one, and verify the copy. FROM and TO are each a data directory of a
stopped daemon, the URL of a PostgreSQL database, or the word database for the one that RECURGENT_STORE or --store-file
names. The copy is whole, or there is none. Files that open secrets (secrets.key) are not copied: keep the same file.

` + exitsOfStore,
		Example: "  recurgentd store copy /var/lib/recurgent postgres://recurgent@db.example.org/recurgent\n  recurgentd store copy --store-file /run/secrets/store database ./copy"}
	flags, out := addDatabaseFlags(c), addOutput(c, sh)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		var places [2]copyPlace
		for i, arg := range args {
			var err error
			if places[i], err = placeOf(sh, flags, arg); err != nil {
				return err
			}
		}
		r, err := copyStore(cmd.Context(), sh, places[0], places[1])
		return exitWith(ExitFailed, printReport(out, places[1].shown, r, err))
	}
	return c
}

// copyPlace is one side of a copy: a directory, or a database if address is set.
type copyPlace struct{ dir, address, shown string }

// placeOf interprets an argument of store copy: the word database, the URL of a database, or a directory.
func placeOf(sh Shell, flags databaseFlags, arg string) (p copyPlace, err error) {
	switch {
	case arg == storeDatabase:
		if p.address, p.shown, err = flags.named(sh, ""); err == nil && p.address == "" {
			err = exitWith(ExitUsage, errors.New("neither RECURGENT_STORE nor --store-file names a database"))
		}
		return p, err
	case isDatabase(arg):
		if err := refusePassword(arg); err != nil {
			return p, err
		}
		p.address = arg
		p.shown, err = shownDatabase(arg)
		return p, err
	}
	p.dir, err = dataDir(sh, arg)
	p.shown = p.dir
	return p, err
}

// copyStore copies from one place to the other and verifies the copy.
func copyStore(ctx context.Context, sh Shell, from, to copyPlace) (r disk.Report, err error) {
	items := func(give func(*store.Item) error) error {
		if from.address == "" {
			return disk.Items(ctx, from.dir, diskOptions(sh), "", give)
		}
		return withExisting(ctx, sh, from.address, func(s *postgres.Store) error { return s.Items(ctx, give) })
	}
	if to.address == "" {
		if err := disk.Fill(ctx, to.dir, diskOptions(sh), items); err != nil {
			return r, err
		}
		return disk.Verify(ctx, to.dir, diskOptions(sh))
	}
	if err := withDatabase(ctx, sh, to.address,
		func(s *postgres.Store) error { return s.Fill(ctx, items) }); err != nil {
		return r, err
	}
	return verifyDatabase(ctx, sh, to.address, nil)
}

// noteOffline appends the audit entry of an offline operation to the database's default namespace.
func noteOffline(ctx context.Context, s *postgres.Store, action string, of agent.Namespace) error {
	n, err := s.Namespace(agent.DefaultNamespace)
	if err != nil {
		return err
	}
	return n.AppendAudit(ctx, *offline(action, of))
}
