package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
)

func day(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04")
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// lookCommands returns the commands that only read.
func lookCommands(sh Shell) []*cobra.Command {
	var days int
	var bare bool
	var principal, format string
	var find search
	list := []operation{
		{use: "list [ROLE]", short: "List the known tools, or the programs of one", example: "calculator", most: 1,
			run: func(t *errand) error { return t.list(find) }},
		{use: "show ROLE [METHOD]", short: "Show a tool, or a program with its source", example: "calculator add",
			least: 1, most: 2, run: func(t *errand) error {
				if bare {
					return t.source()
				}
				return t.show()
			}},
		{use: "lineage ROLE METHOD", short: "Show a program's generations, and candidates that were refused",
			example: "calculator add", least: 2, most: 2, run: (*errand).lineage},
		{use: "diff ROLE METHOD [FROM [TO]]",
			short:   "Compare two generations; the current one with its parent by default",
			example: "calculator add gen-1 gen-2", least: 2, most: 4, run: (*errand).diff},
		{use: "scorecards ROLE [METHOD]", short: "Show the figures that promotion is decided by", example: "calculator",
			least: 1, most: 2, run: (*errand).scorecards},
		{use: "decisions [ROLE [METHOD]]", short: "Show what was decided for recent calls, and why",
			example: "calculator add", most: 2, run: (*errand).decisions},
		{use: "audit", short: "Show who did what, when, why, and how to undo it",
			example: "--principal alice\n  recurgentd tools audit --format jsonl > trail.jsonl",
			long:    "Show who did what, when, why, and how to undo it: the newest 100 entries. With --format jsonl the whole trail\nas JSON lines, newest first, with the hashes that link each entry to the one before it.",
			run:     func(t *errand) error { return t.audit(principal, format) }},
		{use: "stale", short: "List what nobody used for some days", example: "--days 30",
			run: func(t *errand) error { return t.stale(days) }},
	}
	all := make([]*cobra.Command, len(list))
	for i, op := range list {
		all[i] = operatorCommand(sh, "recurgentd tools", op)
	}
	all[0].Flags().StringVarP(&find.words, "query", "q", "",
		"only tools that have these words in their role, in the name of a method or in what they are for")
	all[0].Flags().StringVar(&find.sort, "sort", "",
		"name, used (the most used first), failed (those that fail most first) or cost (the most expensive first)")
	all[0].Example += "\n  recurgentd tools list --sort failed --query movie"
	all[1].Flags().BoolVar(&bare, "code", false, "print the source alone, as tools put takes it")
	all[1].Example += "\n  recurgentd tools show calculator add --code > add.go"
	all[len(all)-2].Flags().StringVar(&principal, "principal", "", "operations of this principal only")
	all[len(all)-2].Flags().StringVar(&format, "format", "", "jsonl prints the whole trail as JSON lines")
	all[len(all)-1].Flags().IntVar(&days, "days", 30, "not used for that many days")
	return all
}

// A search selects the tools of a list and their order.
type search struct{ words, sort string }

func (t *errand) list(find search) error {
	if len(t.args) == 1 {
		if find != (search{}) {
			return exitWith(ExitUsage, errors.New("--query and --sort are for the list of tools, without a role"))
		}
		return t.programs(t.args[0])
	}
	v := url.Values{}
	for name, given := range map[string]string{"q": find.words, "sort": find.sort} {
		if given != "" {
			v.Set(name, given)
		}
	}
	tools, err := pages[operator.KnownTool](t, strings.TrimSuffix("/v1/tools?"+v.Encode(), "?"))
	if err != nil {
		return err
	}
	var rows [][]string
	for _, tool := range tools {
		failed, recent, tokens := "-", "-", "-"
		if h := tool.Health; h != nil {
			failed, recent = number(h.FailureCount), fmt.Sprintf("%.0f%%", 100*h.RecentFailureRate)
		}
		if u := tool.Usage; u != nil {
			tokens = number(u.PromptTokens + u.CompletionTokens)
		}
		rows = append(rows, []string{tool.Role, number(tool.UsageCount), failed, recent, tokens,
			fmt.Sprintf("%.2f", tool.Score), day(tool.LastUsedAt), tool.Purpose})
	}
	return t.table("ROLE USED FAILED RECENT TOKENS SCORE LAST PURPOSE", rows)
}

func (t *errand) programs(role string) error {
	all, err := pages[artifactFields](t, client.ToolPath(role)+"/methods")
	if err == nil && len(all) == 0 { // a role that nobody knows has an empty list, too
		_, err = t.c.Do(t.ctx, http.MethodGet, client.ToolPath(role), nil)
	}
	if err != nil {
		return err
	}
	var rows [][]string
	for _, a := range all {
		rows = append(rows, []string{a.MethodName, a.standing(), number(a.SuccessCount), number(a.FailureCount),
			fmt.Sprintf("%.0f%%", 100*a.RecentFailureRate), day(a.LastUsedAt), a.ShownTo})
	}
	return t.table("METHOD STATE OK FAILED RECENT LAST AGENTS", rows)
}

// show prints a tool with its programs, or one program with its source.
func (t *errand) show() error {
	if len(t.args) == 1 {
		return t.showTool()
	}
	var a artifactFields
	if printed, err := t.fetch(client.MethodPath(t.args[0], t.args[1]), &a); printed || err != nil {
		return err
	}
	correction := ""
	if a.Correction != nil && a.Correction.State != agent.CorrectionNone {
		correction = "\ncorrection " + text.Correction(*a.Correction)
	}
	_, err := fmt.Fprintf(t.sh.Stdout, `%s.%s: %s
ok %d, failed %d (intrinsic %d, adaptive %d, extrinsic %d), authored errors %d, recent failure rate %.0f%%
repairs since the last regeneration %d; contract %s; %s; forged by %s
last used %s, last failure %s%s
runs on: %s
agents: %s
may reach: %s
%s

%s
`, text.Cell(a.Role), text.Cell(a.MethodName), a.standing(), a.SuccessCount, a.FailureCount, a.IntrinsicFailureCount, a.AdaptiveFailureCount, a.ExtrinsicFailureCount,
		a.AuthoredErrorCount, 100*a.RecentFailureRate, a.RepairCountSinceRegen, text.Cell(a.ContractFingerprint),
		text.Cell(a.CacheabilityReason), text.Cell(a.Model), day(a.LastUsedAt),
		text.Cell(string(a.LastFailureClass)+" "+a.LastFailureReason), correction, a.tier(), a.agents(),
		manifestLine(a.Manifest), a.takes(), text.Printable(a.Code))
	return err
}

// showTool prints a tool with its programs.
func (t *errand) showTool() error {
	var tool operator.KnownTool
	if printed, err := t.fetch(client.ToolPath(t.args[0]), &tool); printed || err != nil {
		return err
	}
	lines := contractLines(tool.Role, tool.Contract)
	for _, name := range slices.Sorted(maps.Keys(tool.Methods)) {
		lines = append(lines, contractLines(tool.Role+"."+name, tool.Methods[name])...)
	}
	if tool.Proposals != nil {
		lines = append(lines, "programs proposed other contracts: recurgentd inbox "+why.Argument(tool.Role))
	}
	lines = append(lines, fmt.Sprintf("used %d times, last %s; score %.2f", tool.UsageCount, day(tool.LastUsedAt),
		tool.Score), "")
	if err := t.out.line("%s", strings.Join(lines, "\n")); err != nil {
		return err
	}
	return t.programs(t.args[0])
}

// contractLines describes the contract of a role or method: its purpose, and a line for each other part.
func contractLines(name string, c agent.Contract) []string {
	lines := []string{text.Cell(name) + ": " + cmp.Or(text.Clean(c.Purpose, 2000), "no purpose is registered")}
	for _, part := range []struct {
		name  string
		value json.RawMessage
	}{{"deliverable", c.Deliverable}, {"acceptance", c.Acceptance}, {"failure policy", c.FailurePolicy},
		{"signature", c.Signature}} {
		if len(part.value) > 0 {
			lines = append(lines, "  "+part.name+": "+text.Clean(text.JSON(string(part.value)), 2000))
		}
	}
	return lines
}

// source prints only the program. For a terminal it is made printable; a file or pipe gets the original bytes.
func (t *errand) source() error {
	if len(t.args) < 2 {
		return exitWith(ExitUsage, errors.New("--code needs a role and a method"))
	}
	var a artifactFields
	if err := t.c.Get(t.ctx, client.MethodPath(t.args[0], t.args[1]), &a); err != nil {
		return err
	}
	code := strings.TrimRight(a.Code, "\n")
	if _, terminal := t.sh.terminal(t.sh.Stdout); terminal {
		code = text.Printable(code)
	}
	_, err := fmt.Fprintf(t.sh.Stdout, "%s\n", code)
	return err
}

// generations decodes the reply of GET .../generations.
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

// lineage prints the generations of a method and the rejected candidates.
func (t *errand) lineage() error {
	var all generations
	if printed, err := t.fetch(client.MethodPath(t.args[0], t.args[1])+"/generations", &all); printed || err != nil {
		return err
	}
	var rows [][]string
	for _, g := range all.Data {
		parent := "-"
		if g.ParentID != nil {
			parent = *g.ParentID
		}
		rows = append(rows, []string{g.ID, parent, g.Trigger, g.State, g.Window, day(g.CreatedAt),
			short(g.CodeChecksum)})
	}
	if err := t.table("GENERATION PARENT TRIGGER STATE WINDOW MADE CODE",
		rows); err != nil || len(all.Rejections) == 0 {
		return err
	}
	fmt.Fprintln(t.sh.Stdout, "\nnot let in:")
	rows = nil
	for _, r := range all.Rejections {
		rows = append(rows, []string{day(r.At), r.Trigger, r.Stage, r.Fixture, r.Reason})
	}
	return t.table("WHEN TRIGGER STAGE BROKE REASON", rows)
}

func short(checksum string) string { return checksum[:min(len(checksum), len("sha256:")+12)] }

// scorecards prints the scorecards of one method, or of all methods of a role.
func (t *errand) scorecards() error {
	role, methods := t.args[0], t.args[1:]
	if len(methods) == 0 {
		quiet := *t
		quiet.out = &output{sh: t.sh, form: formTable}
		all, err := pages[artifactFields](&quiet, client.ToolPath(role)+"/methods")
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
		if err := t.c.Get(t.ctx, client.MethodPath(role, m), &a); err != nil {
			return err
		}
		s := a.Scorecard
		if !t.out.human() {
			if err := t.out.value(map[string]any{"role": a.Role, "method_name": a.MethodName,
				"lifecycle_state": a.LifecycleState, "scorecard": s}); err != nil {
				return err
			}
		}
		rows = append(rows, []string{a.MethodName, a.LifecycleState, number(int64(len(s.Sessions))),
			fmt.Sprintf("%d/%d", s.ContractPassed, s.ContractChecked),
			number(s.GuardrailExhausted), number(s.OutcomeRepairExhausted), number(s.WrongToolBoundary)})
	}
	return t.table("METHOD STATE SESSIONS CONTRACT GUARDRAILS REPAIRS BOUNDARY", rows)
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
		rows = append(rows, []string{e.Timestamp, e.Role + "." + e.Method, e.Selection.Decision, e.Selection.Reason,
			e.ProgramSource, e.Generation,
			cmp.Or(e.OutcomeErrorType, "ok"), string(e.FailureClass), e.LifecycleState, e.LifecycleDecision})
	}
	return t.table("WHEN CALL DECISION REASON SOURCE GENERATION OUTCOME CLASS STATE GATES", rows)
}

// audit prints the newest 100 entries of the audit trail, or with jsonl downloads the whole trail.
func (t *errand) audit(principal, format string) error {
	query := url.Values{}
	if principal != "" {
		query.Set("principal", principal)
	}
	switch format {
	case "jsonl":
		query.Set("format", format)
		return t.c.Download(t.ctx, "/v1/maintenance/audit?"+query.Encode(), t.sh.Stdout)
	case "":
		query.Set("limit", "100")
	default:
		return exitWith(ExitUsage, fmt.Errorf("--format must be jsonl, not %q", format))
	}
	var rows [][]string
	for len(rows) < 100 { // a filtered page may end before it is full
		var page struct {
			Data []agent.AuditEntry `json:"data"`
			Next string             `json:"next_cursor"`
		}
		if printed, err := t.fetch("/v1/maintenance/audit?"+query.Encode(), &page); printed || err != nil {
			return err
		}
		for _, e := range page.Data {
			rows = append(rows, []string{e.Timestamp, e.Actor, e.Action, e.Target, e.Reason, asCommands(e.Undo)})
		}
		if page.Next == "" {
			break
		}
		query.Set("after", page.Next)
	}
	return t.table("WHEN WHO ACTION TARGET WHY UNDO", rows)
}

// artifactFields decodes an artifact for the tables.
type artifactFields struct {
	agent.Artifact
	Current        string   `json:"current_generation"`
	Doubted        bool     `json:"doubted"`
	Stale          string   `json:"stale"`
	BreaksExamples int      `json:"breaks_examples"`
	BrokenExamples []string `json:"broken_examples"` // by the operation that this is the reply to

	ShownTo   string           `json:"shown_to"`
	Native    nativeFields     `json:"native"`
	Interface *agent.Interface `json:"interface"`
}

// agents describes whose agents are shown the method.
func (a artifactFields) agents() string {
	if a.ShownTo == "owner" {
		return "shown to those of its owner; to everybody's once tools approve lets them, or a person registers the role"
	}
	return "shown to everybody's"
}

// takes describes the method's parameters, one per line.
func (a artifactFields) takes() string {
	if a.Interface == nil {
		return "takes: not known yet; the next call finds out"
	}
	out := fmt.Sprintf("takes: %s (%s)", text.Cell(a.Interface.Signature(a.MethodName)), text.Cell(a.Interface.Origin))
	if a.Interface.Summary != "" {
		out += "\n  " + text.Clean(a.Interface.Summary, agent.MaxSummary)
	}
	for _, p := range a.Interface.Parameters {
		if p.Description != "" {
			out += "\n  " + text.Cell(p.Name) + ": " + text.Clean(p.Description, agent.MaxDescription)
		}
	}
	return out
}

// tier describes what runs the program.
func (a artifactFields) tier() string {
	if a.Native.State == "native" {
		return "native"
	}
	return "engine; " + text.Cell(a.Native.Why)
}

// nativeFields describe whether programs are compiled.
type nativeFields struct {
	State string `json:"state"` // native, or off
	Why   string `json:"why"`   // set if off
}

// standing describes the state of an artifact.
func (a artifactFields) standing() string {
	words := []string{a.LifecycleState, a.Current}
	if a.Doubted {
		words = append(words, "doubted")
	}
	if a.Quarantined {
		words = append(words, "quarantined")
	}
	if a.Pinned {
		words = append(words, "pinned")
	}
	if a.Approved {
		words = append(words, "approved")
	}
	if a.Artifact.AwaitsReach(a.Artifact.Find(a.Current)) {
		words = append(words, "waits for approval of what it reaches")
	}
	if a.BreaksExamples > 0 {
		words = append(words, "waits for approval: it does not hold "+text.Plural(a.BreaksExamples, "example"))
	}
	if a.Stale != "" {
		words = append(words, "stale: "+a.Stale)
	}
	if a.ForceRegenerate != "" {
		words = append(words, "regenerates at the next call")
	}
	return text.Clean(strings.Join(words, ", "), 200)
}
