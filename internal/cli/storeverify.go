package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/store/disk"
)

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
			" with a stored secret: the key file of the installation that the archive is of opens them, and no archive holds it; put it to secrets.key here with mode 0600, name it with --secrets-key-file, or put the secrets again")
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
