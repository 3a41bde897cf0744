package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
)

// toolsCommand returns the operator's commands. Each makes a few requests of the REST interface, so the audit trail
// records every operation with its actor, time, reason and undo.
func toolsCommand(sh Shell) *cobra.Command {
	root := &cobra.Command{
		Use:        "tools",
		SuggestFor: []string{"list", "ls", "methods", "roles", "programs", "show"},
		Short:      "Look after known tools and their programs",
		Long: `Look after known tools and their programs: list and inspect them, and operate on them. Lists are
tables, or the daemon's documents with --output json or yaml. A command that removes something only
says what it would do, unless --yes is given. Every operation is audited; tools undo undoes it, to the
byte.

` + exitsOfClients,
		Example: `  recurgentd tools list
  recurgentd tools show calculator add
  recurgentd tools quarantine calculator solve --reason "wrong for negative numbers"
  recurgentd tools try tax net 1000 --code net.go
  recurgentd tools audit`,
		Args: cobra.NoArgs,
	}
	root.AddCommand(lookCommands(sh)...)
	root.AddCommand(actCommands(sh)...)
	root.AddCommand(effectsCommands(sh)...)
	root.AddCommand(keepCommands(sh)...)
	root.AddCommand(contractCommand(sh), examplesCommand(sh), tryCommand(sh))
	root.AddCommand(moveCommands(sh)...)
	return root
}

// An errand is one run of an operator's subcommand.
type errand struct {
	ctx    context.Context
	c      *client.Client
	sh     Shell
	out    *output
	reason string
	args   []string
}

// An operation describes an operator's subcommand. It takes least to most arguments. The example follows the command's
// name.
type operation struct {
	use, short, example string
	long, exits         string // override the summary and exitsOfClients
	least, most         int
	audited             bool // takes --reason
	everywhere          bool // concerns all namespaces, so it takes no --namespace
	run                 func(t *errand) error
}

// operatorCommand returns a subcommand of parent ("recurgentd tools") that uses a daemon.
func operatorCommand(sh Shell, parent string, op operation) *cobra.Command {
	t := &errand{sh: sh}
	name, _, _ := strings.Cut(op.use, " ")
	count := cobra.RangeArgs(op.least, op.most)
	if op.least == op.most {
		count = cobra.ExactArgs(op.most)
	}
	c := &cobra.Command{Use: op.use, Short: op.short, Long: cmp.Or(op.long, op.short+".") + "\n\n" + cmp.Or(op.exits,
		exitsOfClients),
		Example: "  " + strings.TrimSpace(parent+" "+name+" "+op.example), Args: count,
		RunE: func(cmd *cobra.Command, args []string) error {
			return sh.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				if op.everywhere {
					c = c.In("")
				}
				t.ctx, t.c, t.args = ctx, c, args
				err := op.run(t)
				var exit *exitError
				if errors.As(err, &exit) {
					return err
				}
				return exitWith(ExitUnreachable, err)
			})
		}}
	t.out = addOutput(c, sh)
	completeArgs(sh, c, strings.HasSuffix(parent, " policy"))
	if op.audited {
		c.Flags().StringVar(&t.reason, "reason", "", "why, for the audit trail")
	}
	if op.everywhere {
		addFlags(ClientScope, c.Flags(), "namespace")
	} else {
		addFlags(ClientScope, c.Flags())
	}
	return c
}

// queryReason adds the reason to a path, for requests without a body.
func (t *errand) queryReason(path string) string {
	if t.reason == "" {
		return path
	}
	return path + "?reason=" + url.QueryEscape(t.reason)
}

// withReason adds the reason to the body, if one was given.
func (t *errand) withReason(body map[string]any) {
	if t.reason != "" {
		body["reason"] = t.reason
	}
}

// fetch decodes a reply into v. With --output for scripts it prints the reply as received instead, and returns printed.
func (t *errand) fetch(path string, v any) (printed bool, err error) {
	data, err := t.c.Do(t.ctx, http.MethodGet, path, nil)
	if err != nil {
		return false, err
	}
	if !t.out.human() {
		return true, t.out.document(data)
	}
	return false, t.read(path, data, v)
}

// read decodes a reply. path names it in errors.
func (t *errand) read(path string, data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("the reply of %s is not in recurgentd's format: %w", path, err)
	}
	return nil
}

// pages reads all pages of a list, at most 100. With --output for scripts it also prints each page as a document.
func pages[T any](t *errand, path string) ([]T, error) {
	const most = 100
	var all []T
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	after := ""
	for range most {
		var page struct {
			Data []T     `json:"data"`
			Next *string `json:"next_cursor"`
		}
		at := path + sep + "limit=1000"
		if after != "" {
			at += "&after=" + url.QueryEscape(after)
		}
		data, err := t.c.Do(t.ctx, http.MethodGet, at, nil)
		if err != nil {
			return nil, err
		}
		if err := t.read(at, data, &page); err != nil {
			return nil, err
		}
		if !t.out.human() {
			if err := t.out.document(data); err != nil {
				return nil, err
			}
		}
		all = append(all, page.Data...)
		if page.Next == nil {
			break
		}
		after = *page.Next
	}
	return all, nil
}

// table prints rows for people. With --output for scripts it prints nothing, because the documents are already printed.
func (t *errand) table(header string, rows [][]string) error {
	if !t.out.human() {
		return nil
	}
	return t.out.table(header, rows)
}

// actCommands returns the commands that operate on one artifact.
func actCommands(sh Shell) []*cobra.Command {
	operations := []struct{ name, short, example string }{
		{"quarantine", "Do not run a program until it is released",
			`calculator solve --reason "wrong for negative numbers"`},
		{"release", "Let a quarantined program run again", "calculator solve"},
		{"regenerate", "Have the next call forge a new program, with a fresh repair budget",
			`calculator solve --reason "the API has changed"`},
		{"promote", "Make a program durable", "calculator solve --reset-metrics"},
		{"rollback", "Go back to an earlier generation", "calculator solve --generation gen-1"},
		{"pin", "Never repair or replace a program by itself", "calculator solve"},
		{"unpin", "Undo pin", "calculator solve"},
		{"approve", "Let a program that waits for a person run", "calculator solve"},
	}
	var all []*cobra.Command
	for _, op := range operations {
		var reset bool
		var generation string
		c := operatorCommand(sh, "recurgentd tools", operation{use: op.name + " ROLE METHOD", short: op.short,
			example: op.example, least: 2, most: 2, audited: true,
			run: func(t *errand) error {
				body := map[string]any{}
				if reset {
					body["reset_metrics"] = true
				}
				if generation != "" {
					body["generation"] = generation
				}
				return t.operate(http.MethodPost, client.MethodPath(t.args[0], t.args[1])+"/"+op.name, body)
			}})
		switch op.name {
		case "promote":
			c.Flags().BoolVar(&reset, "reset-metrics", false, "start its counters anew")
		case "rollback":
			c.Flags().StringVar(&generation, "generation", "", "to which; the parent of the current one without")
		case "approve":
			c.Flags().StringVar(&generation, "generation", "", "which; the current one without")
		}
		all = append(all, c)
	}
	return append(all, operatorCommand(sh, "recurgentd tools",
		operation{use: "put ROLE METHOD FILE",
			short:   "Put in a program of your own, through the gate (FILE - is standard input)",
			example: "calculator solve solve.go", least: 3, most: 3, audited: true, run: (*errand).put}))
}

func (t *errand) put() error {
	code, err := readFileOrInput(t.sh, t.args[2])
	if err != nil {
		return exitWith(ExitUsage, err)
	}
	return t.operate(http.MethodPut, client.MethodPath(t.args[0], t.args[1]), map[string]any{"code": string(code)})
}

// operate sends an operation and prints the resulting state of the artifact.
func (t *errand) operate(method, path string, body map[string]any) error {
	t.withReason(body)
	data, err := t.c.Do(t.ctx, method, path, body)
	if err != nil {
		return err
	}
	if !t.out.human() {
		return t.out.document(data)
	}
	var a artifactFields
	if err := t.read(path, data, &a); err != nil {
		return err
	}
	if err := t.out.line("%s.%s: %s", text.Cell(a.Role), text.Cell(a.MethodName), a.standing()); err != nil {
		return err
	}
	if g := a.Artifact.Find(a.Current); g != nil && (method == http.MethodPut || strings.HasSuffix(path, "/approve")) {
		if hosts := a.NewHosts(g); len(hosts) > 0 {
			if err := t.out.line("it reaches or names hosts that its predecessor does not: %s",
				listOr(hosts, "")); err != nil {
				return err
			}
		}
		if more := beyondHosts(g); more != "" {
			if err := t.out.line("it may do what its predecessor never did: %s", more); err != nil {
				return err
			}
		}
	}
	if len(a.BrokenExamples) == 0 {
		return nil
	}
	return t.out.line("it does not hold these examples: %s", text.Clean(strings.Join(a.BrokenExamples, " "), 400))
}
