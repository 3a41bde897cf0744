package cli

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/cli/text"
)

// namespace is a namespace in the form of the REST interface.
type namespace struct {
	Name      string  `json:"name"`
	CreatedAt *string `json:"created_at"` // null if it is not known
	Holds     struct {
		Sessions    int `json:"sessions"`
		Tools       int `json:"tools"`
		Methods     int `json:"methods"`
		Connections int `json:"connections"`
	} `json:"holds"`
}

func namespacesCommand(sh Shell) *cobra.Command {
	root := &cobra.Command{
		Use:   "namespaces",
		Short: "Make, list and delete namespaces, each with tools and sessions of its own",
		Long: `Make, list and delete namespaces. A namespace holds everything of its people: sessions, tools, programs,
connections, files, the policy and the audit trail. Nothing of one shows in another. Where tokens are configured these
commands need one with the scope admin; every other client command acts in the namespace of its token, or with
--namespace in the one that it names.

` + exitsOfClients,
		Example: `  recurgentd namespaces create acme
  recurgentd namespaces list
  recurgentd namespaces rm acme --yes`,
		Args: cobra.NoArgs,
	}
	const parent = "recurgentd namespaces"
	root.AddCommand(
		operatorCommand(sh, parent, operation{use: "create NAME",
			short: "Make an empty namespace; one that exists stays as it is", example: "acme", least: 1, most: 1,
			everywhere: true, audited: true,
			long: `Make an empty namespace; one that exists stays as it is. A name has 1 to 63 characters of a-z, 0-9 and -, and no - at
either end. The namespace of a token line exists without this command.`,
			run: (*errand).createNamespace}),
		operatorCommand(sh, parent, operation{use: "list", short: "List namespaces", example: "--output yaml",
			everywhere: true, run: (*errand).listNamespaces}),
		namespacesRemove(sh, parent))
	return root
}

func namespacePath(name string) string { return "/v1/namespaces/" + url.PathEscape(name) }

func (t *errand) createNamespace() error {
	data, err := t.c.Do(t.ctx, http.MethodPut, t.queryReason(namespacePath(t.args[0])), nil)
	if err != nil {
		return err
	}
	if !t.out.human() {
		return t.out.document(data)
	}
	return t.out.line("%s: ready", text.Cell(t.args[0]))
}

func (t *errand) listNamespaces() error {
	all, err := pages[namespace](t, "/v1/namespaces")
	if err != nil {
		return err
	}
	var rows [][]string
	for _, n := range all {
		created := "unknown"
		if n.CreatedAt != nil {
			created = *n.CreatedAt
		}
		rows = append(rows, []string{n.Name, created})
	}
	return t.table("NAME CREATED", rows)
}

func namespacesRemove(sh Shell, parent string) *cobra.Command {
	var given func() bool
	c := operatorCommand(sh, parent, operation{use: "rm NAME",
		short: "Erase a namespace and everything in it, for good (a dry run without --yes)", example: "acme --yes",
		least: 1, most: 1, everywhere: true, audited: true,
		long: `Erase a namespace and everything in it: calls and streams end, and its bytes are gone from the disk when the command
returns. No undo brings them back. Without --yes it only says what the namespace holds. The namespace default cannot be
erased.`,
		run: func(t *errand) error { return t.removeNamespace(given()) }})
	given = consent(c)
	return c
}

// removeNamespace prints what a namespace holds and, if really is set, erases it.
func (t *errand) removeNamespace(really bool) error {
	path := namespacePath(t.args[0])
	var n namespace
	if err := t.c.Get(t.ctx, path, &n); err != nil {
		return err
	}
	done := "would be erased; nothing has changed, --yes does it"
	if really {
		if _, err := t.c.Do(t.ctx, http.MethodDelete, t.queryReason(path), nil); err != nil {
			return err
		}
		done = "erased"
	}
	if !t.out.human() {
		return t.out.value(map[string]any{"name": t.args[0], "dry_run": !really, "holds": n.Holds})
	}
	held := fmt.Sprintf("%d sessions, %d tools with %d methods, %d connections", n.Holds.Sessions, n.Holds.Tools,
		n.Holds.Methods, n.Holds.Connections)
	return t.out.line("%s, with %s: %s", text.Cell(t.args[0]), held, done)
}
