package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// artifactFields are what the tables tell of an artifact, whole or in a list.
type artifactFields struct {
	agent.Artifact
	Current string `json:"current_generation"`
}

// standing is an artifact's state in words.
func (a artifactFields) standing() string {
	words := []string{a.LifecycleState, a.Current}
	if a.Quarantined {
		words = append(words, "quarantined")
	}
	if a.Pinned {
		words = append(words, "pinned")
	}
	if a.Approved {
		words = append(words, "approved")
	}
	if a.ForceRegenerate != "" {
		words = append(words, "regenerates at the next call")
	}
	return strings.Join(words, ", ")
}

func day(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04")
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// lookCommands only read.
func lookCommands(sh shell) []*cobra.Command {
	var days int
	stale := operatorCommand(sh, "stale", "List what nobody used for some days", 0, 0, func(t *errand) error { return t.stale(days) })
	stale.Flags().IntVar(&days, "days", 30, "not used for that many days")
	return []*cobra.Command{
		operatorCommand(sh, "list [ROLE]", "List the known tools, or the programs of one", 0, 1, (*errand).list),
		operatorCommand(sh, "show ROLE [METHOD]", "Show a tool, or a program whole", 1, 2, (*errand).show),
		operatorCommand(sh, "lineage ROLE METHOD", "Show a program's generations and what was not let in", 2, 2, (*errand).lineage),
		operatorCommand(sh, "diff ROLE METHOD [FROM [TO]]", "Compare two generations; the current one with its parent by default", 2, 4, (*errand).diff),
		operatorCommand(sh, "scorecards ROLE [METHOD]", "Show what the promotion gates look at", 1, 2, (*errand).scorecards),
		operatorCommand(sh, "decisions [ROLE [METHOD]]", "Show what was decided for recent calls, and why", 0, 2, (*errand).decisions),
		operatorCommand(sh, "audit", "Show who did what, when, why, and how to undo it", 0, 0, (*errand).audit),
		stale,
	}
}

func (t *errand) list() error {
	if len(t.args) == 1 {
		return t.programs(t.args[0])
	}
	tools, err := pages[agent.Tool](t, "/v1/tools")
	if err != nil {
		return err
	}
	var rows [][]string
	for _, tool := range tools {
		rows = append(rows, []string{tool.Role, number(tool.UsageCount), day(tool.LastUsedAt), tool.Purpose})
	}
	return t.table("ROLE USED LAST PURPOSE", rows)
}

func (t *errand) programs(role string) error {
	all, err := pages[artifactFields](t, toolURL(role)+"/methods")
	if err != nil {
		return err
	}
	var rows [][]string
	for _, a := range all {
		rows = append(rows, []string{a.MethodName, a.standing(), number(a.SuccessCount), number(a.FailureCount), fmt.Sprintf("%.0f%%", 100*a.RecentFailureRate), day(a.LastUsedAt)})
	}
	return t.table("METHOD STATE OK FAILED RECENT LAST", rows)
}

func (t *errand) show() error {
	if len(t.args) == 1 {
		data, err := t.c.do(t.ctx, "GET", toolURL(t.args[0]), nil)
		if err != nil {
			return err
		}
		if t.json {
			return t.print(data)
		}
		var tool json.RawMessage
		if err := t.read("tool", data, &tool); err != nil {
			return err
		}
		pretty, err := json.MarshalIndent(tool, "", "  ")
		if err != nil {
			return err
		}
		if err := t.print(pretty); err != nil {
			return err
		}
		return t.programs(t.args[0])
	}
	var a artifactFields
	if printed, err := t.fetch(methodURL(t.args[0], t.args[1]), &a); printed || err != nil {
		return err
	}
	_, err := fmt.Fprintf(t.sh.stdout, `%s.%s: %s
ok %d, failed %d (intrinsic %d, adaptive %d, extrinsic %d), authored errors %d, recent failure rate %.0f%%
repairs since the last regeneration %d; contract %s; %s; forged by %s
last used %s, last failure %s

%s
`, cell(a.Role), cell(a.MethodName), a.standing(), a.SuccessCount, a.FailureCount, a.IntrinsicFailureCount, a.AdaptiveFailureCount, a.ExtrinsicFailureCount,
		a.AuthoredErrorCount, 100*a.RecentFailureRate, a.RepairCountSinceRegen, a.ContractFingerprint, a.CacheabilityReason, cell(a.Model), day(a.LastUsedAt),
		cell(string(a.LastFailureClass)+" "+a.LastFailureReason), printable(a.Code))
	return err
}

// printable is code that cannot play with the terminal.
func printable(code string) string {
	lines := strings.Split(strings.TrimRight(code, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.Map(func(r rune) rune {
			if r != '\t' && !strconv.IsPrint(r) {
				return '?'
			}
			return r
		}, line)
	}
	return strings.Join(lines, "\n")
}

// generations is the reply of .../generations.
type generations struct {
	Data       []*agent.Generation `json:"data"`
	Rejections []agent.Rejection   `json:"rejections"`
}

func (g generations) find(id string) *agent.Generation {
	if i := slices.IndexFunc(g.Data, func(x *agent.Generation) bool { return x.ID == id }); i >= 0 {
		return g.Data[i]
	}
	return nil
}

func (t *errand) lineage() error {
	var all generations
	if printed, err := t.fetch(methodURL(t.args[0], t.args[1])+"/generations", &all); printed || err != nil {
		return err
	}
	var rows [][]string
	for _, g := range all.Data {
		parent := "-"
		if g.ParentID != nil {
			parent = *g.ParentID
		}
		rows = append(rows, []string{g.ID, parent, g.Trigger, g.State, g.Window, day(g.CreatedAt), short(g.CodeChecksum)})
	}
	if err := t.table("GENERATION PARENT TRIGGER STATE WINDOW MADE CODE", rows); err != nil || len(all.Rejections) == 0 {
		return err
	}
	fmt.Fprintln(t.sh.stdout, "\nnot let in:")
	rows = nil
	for _, r := range all.Rejections {
		rows = append(rows, []string{day(r.At), r.Trigger, r.Stage, r.Fixture, r.Reason})
	}
	return t.table("WHEN TRIGGER STAGE BROKE REASON", rows)
}

func short(checksum string) string { return checksum[:min(len(checksum), len("sha256:")+12)] }

func (t *errand) diff() error {
	var a artifactFields
	path := methodURL(t.args[0], t.args[1])
	if err := t.c.get(t.ctx, path, &a); err != nil {
		return err
	}
	var all generations
	if err := t.c.get(t.ctx, path+"/generations", &all); err != nil {
		return err
	}
	to := all.find(a.Current)
	if len(t.args) == 4 {
		to = all.find(t.args[3])
	}
	var from *agent.Generation
	switch {
	case len(t.args) > 2:
		from = all.find(t.args[2])
	case to != nil && to.ParentID != nil:
		from = all.find(*to.ParentID)
	}
	if from == nil || to == nil {
		return exitWith(exitUsage, fmt.Errorf("%s.%s keeps no two such generations; tools lineage lists them", a.Role, a.MethodName))
	}
	lines := diffLines(strings.Split(printable(from.Code), "\n"), strings.Split(printable(to.Code), "\n"))
	if t.json {
		data, err := json.Marshal(map[string]any{"from": from.ID, "to": to.ID, "diff": lines})
		if err != nil {
			return err
		}
		return t.print(data)
	}
	_, err := fmt.Fprintf(t.sh.stdout, "--- %s (%s)\n+++ %s (%s)\n%s\n", from.ID, from.Trigger, to.ID, to.Trigger, strings.Join(lines, "\n"))
	return err
}

// diffLines compares by the longest common subsequence, each line behind a space, - or +. Programs are short: at most
// 64 KiB; beyond 2,000 lines a side, everything has changed.
func diffLines(a, b []string) []string {
	const most = 2000
	var out []string
	if len(a) > most || len(b) > most {
		for _, l := range a {
			out = append(out, "-"+l)
		}
		for _, l := range b {
			out = append(out, "+"+l)
		}
		return out
	}
	common := make([][]int, len(a)+1) // of a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, " "+a[i])
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common[i+1][j] >= common[i][j+1]):
			out = append(out, "-"+a[i])
			i++
		default:
			out = append(out, "+"+b[j])
			j++
		}
	}
	return out
}

func (t *errand) scorecards() error {
	role, methods := t.args[0], t.args[1:]
	if len(methods) == 0 {
		quiet := *t
		quiet.json = false
		all, err := pages[artifactFields](&quiet, toolURL(role)+"/methods")
		if err != nil {
			return err
		}
		for _, a := range all {
			methods = append(methods, a.MethodName)
		}
	}
	var rows [][]string
	for _, m := range methods {
		var a artifactFields
		if err := t.c.get(t.ctx, methodURL(role, m), &a); err != nil {
			return err
		}
		s := a.Scorecard
		if t.json {
			data, err := json.Marshal(map[string]any{"role": a.Role, "method_name": a.MethodName, "lifecycle_state": a.LifecycleState, "scorecard": s})
			if err != nil {
				return err
			}
			if err := t.print(data); err != nil {
				return err
			}
		}
		rows = append(rows, []string{a.MethodName, a.LifecycleState, number(int64(len(s.Sessions))), fmt.Sprintf("%d/%d", s.ContractPassed, s.ContractChecked),
			number(s.GuardrailExhausted), number(s.OutcomeRepairExhausted), number(s.WrongToolBoundary), number(s.ProvenanceViolations)})
	}
	return t.table("METHOD STATE SESSIONS CONTRACT GUARDRAILS REPAIRS BOUNDARY PROVENANCE", rows)
}

func (t *errand) decisions() error {
	q := url.Values{"limit": {"50"}}
	for i, name := range []string{"role", "method"} {
		if len(t.args) > i {
			q.Set(name, t.args[i])
		}
	}
	var page struct {
		Data []agent.LogEntry `json:"data"`
	}
	if printed, err := t.fetch("/v1/calls?"+q.Encode(), &page); printed || err != nil {
		return err
	}
	var rows [][]string
	for _, e := range page.Data {
		rows = append(rows, []string{e.Timestamp, e.Role + "." + e.Method, e.Selection.Decision, e.Selection.Reason, e.ProgramSource, e.Generation,
			orDash(e.OutcomeErrorType, "ok"), string(e.FailureClass), e.LifecycleState, e.LifecycleDecision})
	}
	return t.table("WHEN CALL DECISION REASON SOURCE GENERATION OUTCOME CLASS STATE GATES", rows)
}

func orDash(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func (t *errand) audit() error {
	var page struct {
		Data []agent.AuditEntry `json:"data"`
	}
	if printed, err := t.fetch("/v1/maintenance/audit?limit=100", &page); printed || err != nil {
		return err
	}
	var rows [][]string
	for _, e := range page.Data {
		rows = append(rows, []string{e.Timestamp, e.Actor, e.Action, e.Target, e.Reason, e.Undo})
	}
	return t.table("WHEN WHO ACTION TARGET WHY UNDO", rows)
}
