package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk"
	"github.com/recurgentd/recurgentd/internal/store/postgres"
)

// exportPath is the REST path of the export.
const exportPath = "/v1/maintenance/export"

// exitsOfStore is the section of the help texts about exit codes.
const exitsOfStore = "Exit status: 0 when it was done, 1 when it failed or problems were found, 2 for a wrong command line."

// storeCommand returns the commands for the data directory of a stopped daemon, or a database. export can also ask a
// running daemon.
func storeCommand(sh Shell) *cobra.Command {
	root := &cobra.Command{Use: "store", Short: "Export, import, copy, verify and repair a store",
		Long:    "Export, import, verify and repair the data directory of a stopped daemon, or a database, and copy one into the other.\nExport also works with a running daemon.\n\n" + exitsOfStore,
		Example: "  recurgentd store export backup.tar.gz\n  recurgentd store verify", Args: cobra.NoArgs}
	root.AddCommand(storeExportCommand(sh), storeImportCommand(sh), storeVerifyCommand(sh), storeRepairCommand(sh),
		storeCopyCommand(sh))
	return root
}

func dataDirFlag(c *cobra.Command) *string {
	return c.Flags().String("data-dir", "",
		"the data directory [RECURGENT_DATA_DIR] (default $XDG_STATE_HOME/recurgent, else ~/.local/state/recurgent)")
}

// dataDir returns the absolute path of the data directory: that of the flag, of RECURGENT_DATA_DIR, or the default.
func dataDir(sh Shell, flag string) (string, error) {
	dir := flag
	if dir == "" {
		dir, _ = sh.Env("RECURGENT_DATA_DIR")
	}
	if dir == "" {
		var err error
		if dir, err = stateDir(sh.Env); err != nil {
			return "", exitWith(ExitUsage, fmt.Errorf("data-dir: %w", err))
		}
	}
	dir, err := filepath.Abs(dir)
	return dir, exitWith(ExitUsage, err)
}

// existing is dataDir for a directory that must exist, so that a mistyped name does not create a new store.
func existing(sh Shell, flag string) (string, error) {
	dir, err := dataDir(sh, flag)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", exitWith(ExitUsage,
			fmt.Errorf("there is no data directory %s; --data-dir or RECURGENT_DATA_DIR names another", dir))
	}
	return dir, nil
}

// diskOptions returns the store's options, with a log on stderr.
func diskOptions(sh Shell) disk.Options {
	o := disk.DefaultOptions()
	o.Logger = zerolog.New(zerolog.ConsoleWriter{Out: sh.Stderr, NoColor: true,
		PartsExclude: []string{zerolog.TimestampFieldName}})
	return o
}

func storeImportCommand(sh Shell) *cobra.Command {
	c := &cobra.Command{Use: "import FILE", Args: cobra.ExactArgs(1),
		Short: "Fill an empty data directory or database from an export (- for standard input)",
		Long: "Fill an empty data directory, or with --store an empty database, from an export, and verify what came.\n" +
			"With --namespace add that namespace of the export to a data directory, of a stopped daemon, or a database that holds others.\n" +
			"What an archive holds beside the files of a store is left out, and the output says how much of what: compiled programs, indexes, keys.\n" +
			"An archive that is damaged, or that no export has written, changes nothing.\n\n" + exitsOfStore,
		Example: "  recurgentd store import backup.tar.gz --data-dir /var/lib/recurgent\n  recurgentd store import acme.tar.gz --namespace acme\n  recurgentd store import - < backup.tar.gz"}
	dir, database, out := dataDirFlag(c), addDatabaseFlags(c), addOutput(c, sh)
	only := c.Flags().String("namespace", "",
		"add this namespace of the export alone, to a store that has none of that name")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		where, err := dataDir(sh, *dir)
		if err != nil {
			return err
		}
		address, shown, err := database.named(sh, *dir)
		if err != nil {
			return err
		}
		from := sh.Stdin
		if args[0] != "-" {
			f, err := os.Open(args[0])
			if err != nil {
				return exitWith(ExitUsage, err)
			}
			defer f.Close()
			from = f
		}
		i := importing{from, agent.Namespace(*only)}
		if address != "" {
			r, err := i.database(cmd.Context(), sh, address)
			return exitWith(ExitFailed, printReport(out, shown, r, err))
		}
		r, err := i.directory(cmd.Context(), sh, where)
		return exitWith(ExitFailed, printReport(out, where, r, err))
	}
	return c
}

// importing describes an import of a whole archive or of one namespace.
type importing struct {
	from io.Reader
	only agent.Namespace // "" means all
}

// directory imports into a data directory and verifies it.
func (i importing) directory(ctx context.Context, sh Shell, dir string) (r disk.Report, err error) {
	entry := offline("store.import", i.only)
	var in disk.Imported
	if i.only == "" {
		in, err = disk.Import(ctx, dir, i.from, diskOptions(sh), entry)
	} else {
		in, err = disk.ImportNamespace(ctx, dir, i.from, diskOptions(sh), disk.Addition{Name: i.only, Audit: entry})
	}
	if err != nil {
		return r, err
	}
	r, err = disk.Verify(ctx, dir, diskOptions(sh))
	r.Imported = in
	return r, err
}

// database imports into a database and verifies it.
func (i importing) database(ctx context.Context, sh Shell, address string) (r disk.Report, err error) {
	var in disk.Imported
	if err := withDatabase(ctx, sh, address, func(s *postgres.Store) error {
		entry := offline("store.import", i.only)
		if i.only == "" {
			in, err = s.Import(ctx, i.from, entry)
		} else {
			in, err = s.ImportNamespace(ctx, i.from, i.only, entry)
		}
		return err
	}); err != nil {
		return r, err
	}
	r, err = verifyDatabase(ctx, sh, address, nil)
	r.Imported = in
	return r, err
}

func storeRepairCommand(sh Shell) *cobra.Command {
	c := &cobra.Command{Use: "repair", Args: cobra.NoArgs,
		Short:   "Replay the journal, move unreadable files aside, rebuild derived files, verify",
		Long:    "Replay the journal of a stopped store, move unreadable files aside (nothing is deleted), rebuild derived files,\nand verify.\n\n" + exitsOfStore,
		Example: "  recurgentd store repair"}
	dir, out := dataDirFlag(c), addOutput(c, sh)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		where, err := existing(sh, *dir)
		if err != nil {
			return err
		}
		r, err := disk.Repair(cmd.Context(), where, diskOptions(sh), offline("store.repair", ""))
		return exitWith(ExitFailed, printReport(out, where, r, err))
	}
	return c
}
