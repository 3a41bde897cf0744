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

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/trail"
	"github.com/recurgentd/recurgentd/internal/store"
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

func storeVerifyCommand(sh Shell) *cobra.Command {
	c := &cobra.Command{Use: "verify", Args: cobra.NoArgs,
		Short: "Check a store against all of its promises; changes nothing",
		Long: `Check a stopped store against all of its promises: every file, record, counter and checksum, in all namespaces.
With --store a database is checked, at one moment, while daemons may work. Nothing is changed. The chain of each namespace's audit trail is checked too, and its head is printed: the number and
the hash of its last entry. Note it elsewhere: a trail that was cut off together with its checkpoint shows only against
a noted head.

` + exitsOfStore,
		Example: "  recurgentd store verify\n  recurgentd store verify --data-dir /var/lib/recurgent --output json"}
	dir, database, out := dataDirFlag(c), addDatabaseFlags(c), addOutput(c, sh)
	heads := c.Flags().StringArray("audit-head", nil,
		"a hash that was noted of the audit trail, which must have it; NAMESPACE=HASH for another namespace than default")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		address, shown, err := database.named(sh, *dir)
		if err != nil {
			return err
		}
		if address != "" {
			r, err := verifyDatabase(cmd.Context(), sh, address, notedHeads(*heads))
			return exitWith(ExitFailed, printReport(out, shown, r, err))
		}
		where, err := existing(sh, *dir)
		if err != nil {
			return err
		}
		r, err := disk.Verify(cmd.Context(), where, diskOptions(sh), notedHeads(*heads)...)
		return exitWith(ExitFailed, printReport(out, where, r, err))
	}
	return c
}

// notedHeads parses the values of --audit-head.
func notedHeads(values []string) (heads []disk.NotedHead) {
	for _, v := range values {
		name, hash, found := strings.Cut(v, "=")
		if !found {
			name, hash = string(agent.DefaultNamespace), v
		}
		heads = append(heads, disk.NotedHead{Namespace: agent.Namespace(name), Hash: strings.ToLower(hash)})
	}
	return heads
}

// printReport prints a report. It returns an error if there are problems, for scripts.
func printReport(out *output, dir string, r disk.Report, err error) error {
	if err != nil {
		return err
	}
	if out.human() {
		err = out.line("%s", text.Plain(describeReport(dir, r)))
	} else {
		err = out.value(storeReport{dir, r.Sessions, r.Records, r.Artifacts, r.Programs, r.Tools, r.Calls, r.Journal,
			append([]string{}, r.Aside...), append([]string{}, r.Problems...), auditTrails(r.Audit), r.Unknown.Files,
			r.LeftOut, r.Sealed, r.OtherForms})
	}
	if err != nil {
		return err
	}
	if n := len(r.Problems); n > 0 && isDatabase(dir) {
		return fmt.Errorf("%d problems; restore a backup of the database, or copy what is sound with recurgentd store copy", n)
	} else if n > 0 {
		return fmt.Errorf("%d problems; recurgentd store repair fixes what can be fixed", n)
	}
	return nil
}

// storeReport is the JSON form of a disk.Report.
type storeReport struct {
	Directory string   `json:"directory"`
	Sessions  int      `json:"sessions"`
	Records   int      `json:"records"`
	Artifacts int      `json:"artifacts"`
	Programs  int      `json:"programs"`
	Tools     int      `json:"tools"`
	Calls     int      `json:"calls"`
	Journal   int      `json:"journal"`
	Aside     []string `json:"set_aside"`
	Problems  []string `json:"problems"`

	Audit []auditTrail `json:"audit"`

	Unknown int            `json:"unknown_files,omitempty"`  // files that do not belong to a store
	LeftOut []disk.LeftOut `json:"left_out,omitempty"`       // files of the archive
	Sealed  int            `json:"sealed_secrets,omitempty"` // of connections in the archive

	OtherForms []string `json:"other_forms,omitempty"` // names not in Unicode's normal form C
}

// auditTrail is the JSON form of a disk.AuditReport.
type auditTrail struct {
	Namespace agent.Namespace `json:"namespace"`
	Entries   int64           `json:"entries"`
	Earlier   int64           `json:"earlier_entries"`
	Erased    int64           `json:"erased"`
	Head      chain.Head      `json:"head"`
}

func auditTrails(reports []disk.AuditReport) []auditTrail {
	out := []auditTrail{}
	for _, a := range reports {
		out = append(out, auditTrail(a))
	}
	return out
}

func describeLeft(l disk.LeftOut) string {
	names := strings.Join(l.Names, ", ")
	if l.Files > len(l.Names) {
		names += ", ..."
	}
	return fmt.Sprintf("%s, %s: %s", text.Plural(l.Files, "file"), l.Why, names)
}

// describeReport formats a report for people.
func describeReport(dir string, r disk.Report) string {
	lines := []string{fmt.Sprintf(
		"%s: %d sessions with %d records, %d artifacts, %d programs, %d tools, %d calls in the log", dir, r.Sessions,
		r.Records, r.Artifacts, r.Programs, r.Tools, r.Calls)}
	if r.Journal > 0 {
		lines = append(lines, fmt.Sprintf("the journal holds %d commits that the next start writes to the files",
			r.Journal))
	}
	for _, a := range r.Audit {
		lines = append(lines, fmt.Sprintf(
			"audit trail of %s: %d linked entries (%d erased), %d of earlier versions; head %d %s", a.Namespace,
			a.Entries, a.Erased, a.Earlier, a.Head.Seq, a.Head.Hash))
	}
	if r.Unknown.Files > 0 {
		lines = append(lines, "beside the store, and in no export: "+describeLeft(r.Unknown))
	}
	for _, l := range r.LeftOut {
		lines = append(lines, "left out of the archive: "+describeLeft(l))
	}
	if r.Sealed > 0 {
		lines = append(lines, text.Plural(r.Sealed, "connection")+
			" with a stored secret: archives do not contain the key file; copy it from the original installation to "+
			"secrets.key here with mode 0600, name it with --secrets-key-file, or set the secrets again")
	}
	for _, line := range r.OtherForms {
		lines = append(lines, "name: "+line)
	}
	for _, name := range r.Aside {
		lines = append(lines, "moved aside before: "+name)
	}
	for _, p := range r.Problems {
		lines = append(lines, "problem: "+p)
	}
	return strings.Join(lines, "\n")
}

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
