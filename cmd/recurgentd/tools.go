package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"
)

// toolsCommand is the operator's playbook (seed 001): each subcommand is one or a few requests of the REST interface, so
// that whatever it does stands in the audit trail with who, when, why and how to undo it.
func toolsCommand(sh shell) *cobra.Command {
	root := &cobra.Command{
		Use:   "tools",
		Short: "Look after known tools and their programs",
		Long: `Look after known tools and their programs: what there is, how it does, and the playbook of an
operator. Lists are tables, or the daemon's JSON with --json. What makes something go away only
says what it would do until it is told --yes. Everything is audited; archive, prune and rollback can
be undone to the byte.`,
		Args: cobra.NoArgs,
	}
	root.AddCommand(lookCommands(sh)...)
	root.AddCommand(actCommands(sh)...)
	root.AddCommand(keepCommands(sh)...)
	return root
}

// An errand is one run of an operator's subcommand.
type errand struct {
	ctx    context.Context
	c      *client
	sh     shell
	json   bool
	reason string
	args   []string
}

// operatorCommand makes a subcommand that speaks to a daemon. between bounds its arguments.
func operatorCommand(sh shell, use, short string, least, most int, run func(t *errand) error) *cobra.Command {
	t := &errand{sh: sh}
	c := &cobra.Command{Use: use, Short: short, Args: cobra.RangeArgs(least, most),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := loadOptions(clientScope, cmd.Flags(), sh.env)
			if err != nil {
				return exitWith(exitUsage, err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			t.ctx, t.c, t.args = ctx, newClient(o), args
			err = run(t)
			var exit *exitError
			if errors.As(err, &exit) {
				return err
			}
			return exitWith(exitUnreachable, err)
		}}
	c.Flags().BoolVar(&t.json, "json", false, "print the daemon's JSON")
	addFlags(clientScope, c.Flags())
	return c
}

// withReason adds the flag for what is written into the audit trail.
func (t *errand) withReason(c *cobra.Command) {
	c.Flags().StringVar(&t.reason, "reason", "", "why, for the audit trail")
}

func toolURL(role string) string { return "/v1/tools/" + url.PathEscape(role) }

func methodURL(role, method string) string {
	return toolURL(role) + "/methods/" + url.PathEscape(method)
}

// fetch reads a reply into v. With --json it is printed as it came and v stays empty; printed tells.
func (t *errand) fetch(path string, v any) (printed bool, err error) {
	data, err := t.c.do(t.ctx, http.MethodGet, path, nil)
	if err != nil {
		return false, err
	}
	if t.json {
		return true, t.print(data)
	}
	return false, t.read(path, data, v)
}

func (t *errand) read(path string, data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("the reply of %s is not what a recurgentd answers: %w", path, err)
	}
	return nil
}

func (t *errand) print(data []byte) error {
	_, err := fmt.Fprintf(t.sh.stdout, "%s\n", bytes.TrimSpace(data))
	return err
}

// pages reads all pages of a list, at most 100 of them. With --json they are printed, a page a line.
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
		data, err := t.c.do(t.ctx, http.MethodGet, at, nil)
		if err != nil {
			return nil, err
		}
		if err := t.read(at, data, &page); err != nil {
			return nil, err
		}
		if t.json {
			if err := t.print(data); err != nil {
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

// table prints rows below a header, or says that there is nothing.
func (t *errand) table(header string, rows [][]string) error {
	if t.json {
		return nil
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(t.sh.stdout, "nothing")
		return err
	}
	w := tabwriter.NewWriter(t.sh.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, strings.ReplaceAll(header, " ", "\t"))
	for _, row := range rows {
		for i := range row {
			row[i] = cell(row[i])
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// cell makes text of strangers fit for one cell on a terminal.
func cell(text string) string {
	const most = 72
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	if text == "" {
		return "-"
	}
	return text
}

// actCommands are the acts on one artifact.
func actCommands(sh shell) []*cobra.Command {
	acts := []struct{ name, short string }{
		{"quarantine", "Do not run a program until it is released"},
		{"release", "Let a quarantined program run again"},
		{"regenerate", "Have the next call forge a new program, with a fresh repair budget"},
		{"promote", "Bless a program as durable"},
		{"rollback", "Go back to an earlier generation"},
		{"pin", "Never repair or replace a program by itself"},
		{"unpin", "Undo pin"},
		{"approve", "Let a program that waits for a person run"},
	}
	var all []*cobra.Command
	for _, act := range acts {
		var t *errand
		var reset bool
		var generation string
		c := operatorCommand(sh, act.name+" ROLE METHOD", act.short, 2, 2, func(run *errand) error {
			body := map[string]any{}
			if t.reason != "" {
				body["reason"] = t.reason
			}
			if reset {
				body["reset_metrics"] = true
			}
			if generation != "" {
				body["generation"] = generation
			}
			return run.act(http.MethodPost, methodURL(run.args[0], run.args[1])+"/"+act.name, body)
		})
		t = &errand{}
		t.withReason(c)
		switch act.name {
		case "promote":
			c.Flags().BoolVar(&reset, "reset-metrics", false, "start its counters anew")
		case "rollback":
			c.Flags().StringVar(&generation, "generation", "", "to which; the parent of the current one without")
		}
		all = append(all, c)
	}
	return append(all, putCommand(sh))
}

func putCommand(sh shell) *cobra.Command {
	flags := &errand{}
	c := operatorCommand(sh, "put ROLE METHOD FILE", "Put in a program of your own, through the gate (FILE - is standard input)", 3, 3, func(t *errand) error {
		code, err := readFileOrInput(t.sh, t.args[2])
		if err != nil {
			return exitWith(exitUsage, err)
		}
		body := map[string]any{"code": string(code)}
		if flags.reason != "" {
			body["reason"] = flags.reason
		}
		return t.act(http.MethodPut, methodURL(t.args[0], t.args[1]), body)
	})
	flags.withReason(c)
	return c
}

// act sends a change and tells in a line what is there after it.
func (t *errand) act(method, path string, body any) error {
	data, err := t.c.do(t.ctx, method, path, body)
	if err != nil {
		return err
	}
	if t.json {
		return t.print(data)
	}
	var a artifactFields
	if err := t.read(path, data, &a); err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.sh.stdout, "%s.%s: %s\n", cell(a.Role), cell(a.MethodName), a.standing())
	return err
}
