package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/store"
)

// keepCommands returns the commands that archive, delete, restore and undo.
func keepCommands(sh Shell) []*cobra.Command {
	return []*cobra.Command{pruneCommand(sh), archiveCommand(sh), restoreCommand(sh), undoCommand(sh)}
}

// consent adds the flags --yes and --dry-run. given reports whether the command may change anything.
func consent(c *cobra.Command) (given func() bool) {
	var yes, dry bool
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	c.Flags().BoolVar(&dry, "dry-run", true, "only say what would be done")
	return func() bool { return yes || !dry }
}

func pruneCommand(sh Shell) *cobra.Command {
	var days int
	var mode string
	var given func() bool
	c := operatorCommand(sh, "recurgentd tools", operation{use: "prune",
		short:   "Archive or delete what nobody used for some days (a dry run without --yes)",
		example: "--days 90 --yes", audited: true, run: func(t *errand) error {
			body := map[string]any{"stale_days": days, "mode": mode, "dry_run": !given()}
			t.withReason(body)
			data, err := t.c.Do(t.ctx, http.MethodPost, "/v1/maintenance/prune", body)
			if err != nil {
				return err
			}
			return t.pruned(data)
		}})
	c.Flags().IntVar(&days, "days", 90, "not used for that many days")
	c.Flags().StringVar(&mode, "mode", "archive",
		"archive (can be restored) or delete (for good a day later; --days 1 at least)")
	given = consent(c)
	return c
}

func (t *errand) pruned(data []byte) error {
	if !t.out.human() {
		return t.out.document(data)
	}
	var report operator.PruneReport
	if err := t.read("prune", data, &report); err != nil {
		return err
	}
	if err := t.targets(report.Targets); err != nil {
		return err
	}
	done := report.Mode + "d" // archived, deleted: both modes end in e
	if report.Mode == "delete" && !report.DryRun {
		done += "; tools restore brings them back for a day"
	}
	if report.DryRun {
		done = "would be " + done + "; nothing has changed, --yes does it"
	}
	return t.out.line("%d %s", len(report.Targets), done)
}

func (t *errand) stale(days int) error {
	var page struct {
		Data []store.Target `json:"data"`
	}
	if printed, err := t.fetch(fmt.Sprintf("/v1/maintenance/stale?days=%d", days), &page); printed || err != nil {
		return err
	}
	return t.targets(page.Data)
}

func (t *errand) targets(list []store.Target) error {
	var rows [][]string
	for _, x := range list {
		what := x.Method
		if what == "" {
			what = "(the tool)"
		}
		rows = append(rows, []string{x.Role, what, day(x.LastUsedAt)})
	}
	return t.table("ROLE METHOD LAST", rows)
}

func archiveCommand(sh Shell) *cobra.Command {
	var given func() bool
	c := operatorCommand(sh, "recurgentd tools", operation{use: "archive ROLE [METHOD]",
		short:   "Move a tool, or one program, out of the way (a dry run without --yes)",
		example: "calculator solve --yes", least: 1, most: 2, audited: true, run: func(t *errand) error {
			path, name := client.ToolPath(t.args[0]), t.args[0]
			if len(t.args) == 2 {
				path, name = client.MethodPath(t.args[0], t.args[1]), t.args[0]+"."+t.args[1]
			}
			if _, err := t.c.Do(t.ctx, http.MethodGet, path, nil); err != nil {
				return err
			}
			done := "would be archived; nothing has changed, --yes does it"
			if given() {
				if _, err := t.c.Do(t.ctx, http.MethodDelete, t.queryReason(path), nil); err != nil {
					return err
				}
				done = "archived; tools restore brings it back"
			}
			if !t.out.human() {
				return t.out.value(map[string]any{"target": name, "dry_run": !given()})
			}
			return t.out.line("%s: %s", text.Cell(name), done)
		}})
	given = consent(c)
	return c
}

func restoreCommand(sh Shell) *cobra.Command {
	return operatorCommand(sh, "recurgentd tools", operation{use: "restore ROLE [METHOD]",
		short:   "Bring back what was archived, or deleted in the last day, byte for byte",
		example: "calculator solve", least: 1, most: 2, audited: true, run: func(t *errand) error {
			body := map[string]any{"role": t.args[0]}
			if len(t.args) == 2 {
				body["method"] = t.args[1]
			}
			t.withReason(body)
			data, err := t.c.Do(t.ctx, http.MethodPost, "/v1/maintenance/restore", body)
			if err != nil {
				return err
			}
			if !t.out.human() {
				return t.out.document(data)
			}
			var report operator.RestoreReport
			if err := t.read("restore", data, &report); err != nil {
				return err
			}
			for _, g := range report.OlderGenerations {
				if err := t.out.line("%s.%s: restored as %s, behind the newer program; tools rollback --generation %s has it answer", text.Cell(g.Role), text.Cell(g.Method), text.Cell(g.Generation), text.Cell(g.Generation)); err != nil {
					return err
				}
			}
			if len(report.OlderGenerations) == 0 || len(t.args) == 1 {
				if err := t.out.line("%s: restored", text.Cell(strings.Join(t.args, "."))); err != nil {
					return err
				}
			}
			return t.broughtBack(report.BroughtBack)
		}})
}

// undoCommand undoes any operation in the audit trail: on programs, contracts and the policy.
func undoCommand(sh Shell) *cobra.Command {
	return operatorCommand(sh, "recurgentd tools", operation{use: "undo ID",
		short:   "Undo an operation of the audit trail, to the byte (tools audit lists them)",
		example: "aud_06gzqwq081srb0e6zx42fm96t6 --reason mistaken", least: 1, most: 1, audited: true,
		run: func(t *errand) error {
			body, path := map[string]any{}, "/v1/maintenance/audit/"+url.PathEscape(t.args[0])+"/undo"
			t.withReason(body)
			data, err := t.c.Do(t.ctx, http.MethodPost, path, body)
			if err != nil {
				return err
			}
			if !t.out.human() {
				return t.out.document(data)
			}
			var e operator.Undone
			if err := t.read(path, data, &e); err != nil {
				return err
			}
			if err := t.out.line("%s: undone; tools undo %s has it again", text.Cell(e.Target),
				text.Cell(e.ID)); err != nil {
				return err
			}
			return t.broughtBack(e.BroughtBack)
		}})
}

// broughtBack prints the programs that answer again although they break examples.
func (t *errand) broughtBack(back operator.BroughtBack) error {
	for _, p := range back.Programs {
		name := text.Cell(p.Role) + "." + text.Cell(p.Method)
		if err := t.out.line("%s: %s answers again and does not hold these examples: %s", name, text.Cell(p.Generation),
			text.Clean(strings.Join(p.BrokenExamples, " "), 400)); err != nil {
			return err
		}
	}
	if back.Unchecked > 0 {
		return t.out.line("%s more with another program: not all examples were run",
			text.Plural(back.Unchecked, "method"))
	}
	return nil
}

// policyCommand returns the commands that show and change the policy.
func policyCommand(sh Shell) *cobra.Command {
	root := &cobra.Command{Use: "policy", Short: "Show and change switches and thresholds, effective on the next call",
		Long: "Show and change switches and thresholds: budgets, retention, promotion, what a weak success is. A change is\neffective on the next call, survives a restart and is in the audit trail.\n\n" + exitsOfClients,
		Example: `  recurgentd policy get
  recurgentd policy simulate approval_required=true
  recurgentd policy set repair_enabled=false`, Args: cobra.NoArgs}
	get := operatorCommand(sh, "recurgentd policy", operation{use: "get [NAME]",
		short: "Show the policy, or one part of it", example: "degraded", most: 1, run: (*errand).policy})
	set := operatorCommand(sh, "recurgentd policy", operation{use: "set NAME=VALUE... | JSON",
		short:   "Change the policy; values are JSON where they parse, names may have dots",
		example: "artifact_read_enabled=false", least: 1, most: 64, run: (*errand).setPolicy})
	set.Example += "\n  recurgentd policy set maintenance.interval_hours=24 'artifact_read_roles=[\"calculator\"]'"
	root.AddCommand(get, set, simulateCommand(sh))
	return root
}

// policy prints the policy, or the part with that dotted name.
func (t *errand) policy() error {
	var all map[string]json.RawMessage
	data, err := t.c.Do(t.ctx, http.MethodGet, "/v1/policy", nil)
	if err != nil {
		return err
	}
	if err := t.read("policy", data, &all); err != nil {
		return err
	}
	for _, name := range t.args {
		for part := range strings.SplitSeq(name, ".") {
			var ok bool
			if data, ok = all[part]; !ok {
				return exitWith(ExitUsage, fmt.Errorf("the policy has no %q; recurgentd policy get shows what it has",
					name))
			}
			all = nil
			_ = json.Unmarshal(data, &all) // anything but an object has no parts
		}
	}
	return t.showPolicy(data)
}

// setPolicy changes the policy and prints what changed, or with --output the whole policy.
func (t *errand) setPolicy() error {
	patch, err := agent.PolicyPatch(t.args)
	if err != nil {
		return exitWith(ExitUsage, err)
	}
	before, unread := t.c.Do(t.ctx, http.MethodGet, "/v1/policy", nil)
	data, err := t.c.Do(t.ctx, http.MethodPatch, "/v1/policy", patch)
	if err != nil {
		return err
	}
	if unread != nil || !t.out.human() { // the token may change the policy and not read it
		return t.showPolicy(data)
	}
	was, is := map[string]string{}, map[string]string{}
	flatten(was, "", before)
	flatten(is, "", data)
	var lines []string
	shown := func(value string) string { return cmp.Or(text.Clean(value, 400), "(not set)") }
	for name, value := range is {
		if was[name] != value {
			lines = append(lines, name+"="+shown(value)+", was "+shown(was[name]))
		}
		delete(was, name)
	}
	for name, value := range was {
		lines = append(lines, name+"=(not set), was "+shown(value))
	}
	if len(lines) == 0 {
		return t.out.line("nothing changed")
	}
	slices.Sort(lines)
	return t.out.line("%s", strings.Join(lines, "\n"))
}

// flatten adds the members of a document to into, under their dotted names.
func flatten(into map[string]string, name string, document json.RawMessage) {
	var members map[string]json.RawMessage
	if json.Unmarshal(document, &members) != nil || len(members) == 0 {
		into[name] = string(document)
		return
	}
	for part, value := range members {
		flatten(into, strings.TrimPrefix(name+"."+part, "."), value)
	}
}

func (t *errand) showPolicy(data []byte) error {
	if !t.out.human() {
		return t.out.document(data)
	}
	return t.out.indented(data)
}

// maxInput bounds a file, or standard input, that is sent to the daemon, in bytes.
const maxInput = 1 << 20

// readFileOrInput reads a program or examples. "-" means standard input.
func readFileOrInput(sh Shell, path string) ([]byte, error) {
	if path != "-" {
		return readSmallFile(path)
	}
	data, err := io.ReadAll(io.LimitReader(sh.Stdin, maxInput+1))
	if err == nil && len(data) > maxInput {
		err = fmt.Errorf("standard input has more than %d bytes", maxInput)
	}
	return data, err
}

func readSmallFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxInput+1))
	if err == nil && len(data) > maxInput {
		err = fmt.Errorf("%s has more than %d bytes", path, maxInput)
	}
	return data, err
}
