package cli

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
)

func filesCommand(sh Shell) *cobra.Command {
	root := &cobra.Command{
		Use:   "files",
		Short: "Upload, list, download and delete files",
		Long: `Upload, list, download and delete files: large arguments of calls, and large values that programs make. A
file is referred to as {"$file": "ID"}, also in arguments. recurgentd call --file and --out do both in one command.

` + exitsOfClients,
		Example: `  recurgentd files put sales.csv
  recurgentd files list`,
		Args: cobra.NoArgs,
	}
	var session, owner string
	var d download
	add := func(op operation) *cobra.Command {
		c := operatorCommand(sh, "recurgentd files", op)
		root.AddCommand(c)
		return c
	}
	list := add(operation{use: "list", short: "List your files, newest first",
		run: func(t *errand) error { return t.files(owner) }})
	list.Flags().StringVar(&owner, "owner", "", "whose files (scope operate; default: yours)")
	put := add(operation{use: "put FILE", short: "Upload a file, - for standard input, and print its id", example: "sales.csv", least: 1,
		most: 1, run: func(t *errand) error { return t.putFile(session) }})
	put.Flags().StringVar(&session, "session", "", "id of the session that it is erased with")
	get := add(operation{use: "get ID", short: "Download a file into a directory", example: "FILE --out reports",
		least: 1, most: 1, run: func(t *errand) error {
			return d.all(t.ctx, t.c, t.sh.Stderr, agent.FileRef(t.args[0]))
		}})
	get.Flags().StringVar(&d.dir, "out", ".", "the directory, which is made if it is missing")
	get.Flags().BoolVar(&d.overwrite, "overwrite", false, "replace a file that exists")
	add(operation{use: "rm ID...", short: "Delete files", example: "FILE", least: 1, most: 1000,
		run: (*errand).removeFiles})
	return root
}

func (t *errand) files(owner string) error {
	path := "/v1/files"
	if owner != "" {
		path += "?owner=" + url.QueryEscape(owner)
	}
	all, err := pages[agent.File](t, path)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, f := range all {
		expires := "never"
		if !f.ExpiresAt.IsZero() {
			expires = day(f.ExpiresAt)
		}
		rows = append(rows, []string{f.ID, number(f.Bytes), f.MediaType, expires, f.Name})
	}
	return t.table("FILE BYTES TYPE EXPIRES NAME", rows)
}

func (t *errand) putFile(session string) error {
	f, err := uploadFile(t.ctx, t.c, t.sh, t.args[0], session)
	if err != nil {
		return err
	}
	if t.out.human() {
		return t.out.line("%s", text.Clean(f.ID, 0))
	}
	data, err := t.c.Do(t.ctx, http.MethodGet, client.FilePath(f.ID), nil)
	if err != nil {
		return err
	}
	return t.out.document(data)
}

func (t *errand) removeFiles() error {
	for _, id := range t.args {
		if _, err := t.c.Do(t.ctx, http.MethodDelete, "/v1/files/"+url.PathEscape(id), nil); err != nil {
			return err
		}
		if t.out.human() {
			if err := t.out.line("deleted %s", text.Clean(id, 0)); err != nil {
				return err
			}
		}
	}
	return nil
}
