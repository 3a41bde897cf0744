package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/trail"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk"
	"github.com/recurgentd/recurgentd/internal/store/postgres"
)

func storeExportCommand(sh Shell) *cobra.Command {
	c := &cobra.Command{Use: "export [FILE]", Args: cobra.MaximumNArgs(1),
		Short: "Write an archive of everything, or of one namespace, also of a running daemon",
		Long: `Write an archive (tar, gzip, with checksums) of everything, or with --namespace of that namespace
alone, to FILE, or to standard output when there is none. With --url, and no data directory named, a running daemon, here or elsewhere, is asked
for it; so is the daemon of RECURGENT_URL where this machine has no data directory, and a daemon that
holds the data directory. It goes on answering calls meanwhile. With --store the database is read, at one
moment, by way of a temporary directory.

` + exitsOfStore, Example: "  recurgentd store export backup.tar.gz\n  recurgentd store export --url http://127.0.0.1:8420 backup.tar.gz\n  recurgentd store export --namespace acme acme.tar.gz\n  recurgentd store export | ssh elsewhere recurgentd store import -"}
	dir, database := dataDirFlag(c), addDatabaseFlags(c)
	addFlags(ClientScope, c.Flags())
	c.RunE = func(cmd *cobra.Command, args []string) error {
		write := func(w io.Writer) (string, error) { return exportDaemon(cmd, sh, w) }
		only, err := onlyNamespace(cmd, sh)
		if err != nil {
			return err
		}
		address, _, err := database.named(sh, *dir)
		if err != nil {
			return err
		}
		if address != "" && !cmd.Flags().Changed("url") {
			write = func(w io.Writer) (string, error) {
				return "the database", withExisting(cmd.Context(), sh, address, func(s *postgres.Store) error {
					return errors.Join(noteOffline(cmd.Context(), s, "store.export", only),
						s.Export(cmd.Context(), w, only))
				})
			}
		} else if !asksDaemon(cmd, sh, *dir) {
			where, err := existing(sh, *dir)
			if err != nil {
				return exitWith(ExitUsage, fmt.Errorf("%w; --url asks a running daemon", err))
			}
			write = func(w io.Writer) (string, error) { return exportStore(cmd, sh, where, only, w) }
		}
		if len(args) == 0 {
			_, err := write(sh.Stdout)
			return exitWith(ExitFailed, err)
		}
		from, err := exportInto(sh, args[0], write)
		if err == nil && !strings.HasPrefix(from, ofDaemon) {
			sh.otherDaemon(*dir)
		}
		return exitWith(ExitFailed, err)
	}
	return c
}

// exportInto writes the archive to the file and reports its source, which may not be the one that the user meant.
func exportInto(sh Shell, file string, write func(io.Writer) (from string, err error)) (from string, err error) {
	err = writeWhole(file, func(w io.Writer) (err error) {
		from, err = write(w)
		return err
	})
	if err == nil {
		fmt.Fprintf(sh.Stderr, "%s holds the content of %s\n", text.Clean(file, 0), text.Clean(from, 0))
	}
	return from, err
}

const ofDaemon = "the daemon at "

// otherDaemon warns that the daemon of RECURGENT_URL was not asked, because the default data directory took precedence.
func (sh Shell) otherDaemon(dir string) {
	url, _ := sh.Env("RECURGENT_URL")
	named, _ := sh.Env("RECURGENT_DATA_DIR")
	if url != "" && dir+named == "" {
		fmt.Fprintf(sh.Stderr, "the daemon at %s was not asked; --url %s asks it\n", text.Clean(url, 0),
			text.Clean(url, 0))
	}
}

// asksDaemon reports whether to export from a daemon instead of a data directory: with --url, or with RECURGENT_URL on
// a machine without a data directory. A named data directory takes precedence.
func asksDaemon(cmd *cobra.Command, sh Shell, dir string) bool {
	named, _ := sh.Env("RECURGENT_DATA_DIR")
	if dir != "" || named != "" {
		return false
	}
	if cmd.Flags().Changed("url") {
		return true
	}
	url, _ := sh.Env("RECURGENT_URL")
	_, err := existing(sh, dir)
	return url != "" && err != nil
}

// exportDaemon writes the export of the daemon selected by the flags.
func exportDaemon(cmd *cobra.Command, sh Shell, w io.Writer) (from string, err error) {
	err = sh.withClient(cmd, func(ctx context.Context, c *client.Client) error {
		from = ofDaemon + c.URL()
		return c.Download(ctx, exportPath, w)
	})
	return from, err
}

// onlyNamespace returns the namespace selected for client commands, to which the export is limited; "" means all.
func onlyNamespace(cmd *cobra.Command, sh Shell) (agent.Namespace, error) {
	o, err := loadOptions(ClientScope, cmd.Flags(), sh.Env)
	return agent.Namespace(o.Namespace), exitWith(ExitUsage, err)
}

// exportStore writes the export of a data directory. If a daemon holds the directory, it asks that daemon instead.
func exportStore(cmd *cobra.Command, sh Shell, dir string, only agent.Namespace, w io.Writer) (from string, err error) {
	s, err := disk.Open(dir, diskOptions(sh))
	if errors.Is(err, store.ErrInUse) {
		return exportDaemon(cmd, sh, w)
	}
	if err != nil {
		return "", err
	}
	n, err := s.Namespace(agent.DefaultNamespace)
	if err == nil {
		err = n.AppendAudit(cmd.Context(), *offline("store.export", only))
	}
	// A store that cannot be written must still be exportable.
	if errors.Is(err, store.ErrReadOnly) {
		fmt.Fprintf(sh.Stderr, "warning: the audit trail lacks this export: %v\n", err)
		err = nil
	}
	if err == nil {
		err = s.Export(cmd.Context(), w, only)
	}
	return "the data directory " + dir, errors.Join(err, s.Close(context.WithoutCancel(cmd.Context())))
}

// offline returns the audit entry of an operation on a stopped store, or on one namespace of it; "" means the whole
// store. It records the name of the system's user.
func offline(action string, of agent.Namespace) *agent.AuditEntry {
	target := "store"
	if of != "" {
		target = "namespace " + string(of)
	}
	entry := trail.Entry(time.Now(), "local", action, target)
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	entry.After = agent.Encoded(struct {
		User string `json:"system_user"`
	}{name})
	return &entry
}

// writeWhole writes a file atomically. It fails if the file exists.
func writeWhole(name string, write func(io.Writer) error) error {
	if _, err := os.Stat(name); err == nil {
		return fmt.Errorf("%s exists already; name another file", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".part-*")
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // report the error of the export instead
	}
	return err
}
