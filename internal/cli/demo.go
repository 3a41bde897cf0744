package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

func demoCommand(sh Shell) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show the whole loop, offline, in a few seconds",
		Long: `Start a daemon on a temporary directory with the embedded recording, make calls to it over HTTP,
and show what happens: a program is forged, answers again, remembers, calls another tool, fails
and is repaired, answers wrong and is corrected. Nothing is left behind.

` + exitsOfAll,
		Example: "  recurgentd demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return exitWith(ExitFailed, demo(ctx, sh, commandName(os.Args[0])))
		},
	}
}

// demo starts the daemon, makes the calls of the story, and cleans up.
func demo(ctx context.Context, sh Shell, self string) (err error) {
	dir, err := os.MkdirTemp("", "recurgent-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o := defaultOptions()
	o.Listen, o.DataDir, o.Provider, o.LogLevel = "127.0.0.1:0", dir, "replay", "error"
	if require, _ := sh.Env("RECURGENT_SANDBOX_REQUIRE"); require != "" {
		o.SandboxRequire = require
	}
	o.Logger, o.CompilerDir, o.GoCache = newLogger(o, sh), sh.CompilerDir, sh.GoCache
	d, err := app.New(ctx, o.Options)
	if err != nil {
		return fmt.Errorf("the demo's daemon cannot start: %w", err)
	}
	d.Start()
	defer func() { err = errors.Join(err, sh.stop(d)) }()
	t := &story{out: sh.Stdout, c: client.New(d.URL(), "", nil), colour: bool(sh.colours(sh.Stdout))}
	fmt.Fprintf(t.out, "A daemon listens on %s, on a temporary directory.\nIts model is a recording: no network, no key.\n", d.URL())
	if err := t.play(ctx); err != nil {
		return err
	}
	fmt.Fprintf(t.out, `
Go on by hand:

  %[1]s serve                                       (this recording, kept in your state directory)
  %[1]s call calculator add 2 3
  %[1]s call calculator solve "2x + 5 = 17"
  OPENAI_API_KEY=sk-... %[1]s serve                 (any method at all)
  OPENAI_BASE_URL=http://127.0.0.1:11434/v1 %[1]s serve --model qwen3-coder
`, self)
	return nil
}

// A story makes the calls of the demo in one session and prints them.
type story struct {
	out     io.Writer
	c       *client.Client
	session string
	colour  bool
}

func (t *story) play(ctx context.Context) (err error) {
	if t.session, err = t.c.CreateSession(ctx, "calculator"); err != nil {
		return err
	}
	for _, chapter := range []func(context.Context) error{t.forging, t.memory, t.tools, t.repair, t.correction,
		t.history} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *story) title(number int, text string) { fmt.Fprintf(t.out, "\n%d. %s\n\n", number, text) }

// demoColumn is the width of a call in its line. The whole line has 90 characters.
const demoColumn = 63

// clip shortens the text to at most n characters, including a final "...".
func clip(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:max(0, n-3)]) + "..."
	}
	return text
}

// tint pads a program's source to the width of its column, and colours it on a terminal.
func (t *story) tint(source string) string {
	text := fmt.Sprintf("%-9s", source)
	if code := map[string]string{"generated": "33", "repaired": "35",
		"persisted": "32"}[source]; t.colour && code != "" {
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	return text
}

// call makes one call with JSON arguments and prints it on one line.
func (t *story) call(ctx context.Context, role, method string, args ...any) (runtime.Reply, error) {
	body := client.CallRequest{Role: role, Method: method}
	shown := make([]string, len(args))
	for i, a := range args {
		data, err := json.Marshal(a)
		if err != nil {
			return runtime.Reply{}, err
		}
		body.Args = append(body.Args, data)
		shown[i] = strings.ReplaceAll(text.JSON(data), ",\"", ", \"")
	}
	reply, _, err := t.c.Call(ctx, t.session, body)
	if err != nil {
		return reply, err
	}
	answer := "= " + text.JSON(reply.Outcome.Value)
	if !reply.Outcome.OK() {
		answer = reply.Outcome.ErrorType + ": " + reply.Outcome.ErrorMessage
	}
	answer = clip(answer, demoColumn/2)
	asked := clip(strings.Join(shown, ", "), demoColumn-utf8.RuneCountInString(role+"."+method+"() "+answer))
	what := fmt.Sprintf("%s.%s(%s) %s", role, method, asked, answer)
	fmt.Fprintf(t.out, "   %-*s  %s %8.2f ms\n", demoColumn, what, t.tint(reply.Program.Source), reply.DurationMs)
	if !reply.Outcome.OK() {
		return reply, fmt.Errorf("%s.%s ended in %s: %s", role, method, reply.Outcome.ErrorType,
			reply.Outcome.ErrorMessage)
	}
	return reply, nil
}

func (t *story) forging(ctx context.Context) error {
	t.title(1, "Nobody wrote calculator.add. The first call has a model write it; the second runs it.")
	if _, err := t.call(ctx, "calculator", "add", 2, 3); err != nil {
		return err
	}
	if _, err := t.call(ctx, "calculator", "add", 40, 2); err != nil {
		return err
	}
	if _, err := t.call(ctx, "calculator", "solve", "2x + 5 = 17"); err != nil {
		return err
	}
	_, err := t.call(ctx, "text_tools", "slugify", "Crème Brûlée: 10 Tips")
	return err
}

func (t *story) memory(ctx context.Context) error {
	t.title(2, "A session has a memory. Programs change it; a name with = writes it directly.")
	for _, c := range []struct {
		method string
		args   []any
	}{{"increment", []any{3}}, {"increment", []any{4}}, {"value=", []any{20}}, {"increment", nil}} {
		if _, err := t.call(ctx, "calculator", c.method, c.args...); err != nil {
			return err
		}
	}
	var memory map[string]json.RawMessage
	if err := t.c.Get(ctx, "/v1/sessions/"+t.session+"/context", &memory); err != nil {
		return err
	}
	fmt.Fprintf(t.out, "   the context is now {\"value\":%s}\n", memory["value"])
	return nil
}

func (t *story) tools(ctx context.Context) error {
	t.title(3, "Programs call other tools, which are forged in their turn and kept for everyone.")
	var tool json.RawMessage
	if err := t.c.JSON(ctx, http.MethodPut, "/v1/tools/calculator", map[string]string{"purpose": "arithmetic"},
		&tool); err != nil {
		return err
	}
	type item map[string]any
	reply, err := t.call(ctx, "invoice", "total", []item{{"price": 4, "quantity": 2.5}, {"price": 3, "quantity": 1}})
	if err != nil {
		return err
	}
	records, err := t.records(ctx)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.ParentCallID == reply.CallID {
			fmt.Fprintf(t.out, "     in it: %s.%s(%s), %s\n", r.Role, r.MethodName, arguments(r), r.ProgramSource)
		}
	}
	return nil
}

func (t *story) repair(ctx context.Context) error {
	t.title(4, "A program that fails is repaired by the model. It must still give its old answers.")
	if _, err := t.call(ctx, "text_tools", "initials", "Ada Lovelace"); err != nil {
		return err
	}
	reply, err := t.call(ctx, "text_tools", "initials", "Ada  Lovelace")
	if err != nil {
		return err
	}
	var e agent.LogEntry
	if err := t.c.Get(ctx, "/v1/calls/"+url.PathEscape(reply.CallID), &e); err != nil {
		return err
	}
	for _, f := range e.AttemptFailures {
		fmt.Fprintf(t.out, "     before that: %s: %s\n", f.ErrorType, clip(text.OneLine(f.ErrorMessage), 60))
	}
	return nil
}

func (t *story) correction(ctx context.Context) error {
	t.title(5, "An answer can be wrong. A person says so, and the model corrects the program.")
	wrong, err := t.call(ctx, "tax", "net", 1000)
	if err != nil {
		return err
	}
	body := client.Judgement{Verdict: agent.VerdictWrong, Expected: json.RawMessage("700"),
		Note: "the tax is 30 percent, not 40"}
	data, _, err := t.c.Judge(ctx, wrong.CallID, body, time.Minute)
	if err != nil {
		return err
	}
	var v operator.JudgedCall
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("the verdict is not in recurgentd's format: %w", err)
	}
	if v.Correction.State != agent.CorrectionAdopted {
		return fmt.Errorf("the correction is %s", text.Correction(v.Correction))
	}
	fmt.Fprintf(t.out, "     a person: wrong, expected %s: %s\n", v.Expected, v.Note)
	if _, err := t.call(ctx, "tax", "net", 1000); err != nil {
		return err
	}
	_, err = t.call(ctx, "tax", "net", 2000)
	return err
}

func (t *story) history(ctx context.Context) error {
	t.title(6, "Every call left one record, which later programs can read. Values are not in it.")
	if _, err := t.call(ctx, "calculator", "recap"); err != nil {
		return err
	}
	records, err := t.records(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(t.out)
	for _, r := range records {
		indent := strings.Repeat("  ", r.Depth)
		fmt.Fprintf(t.out, "   %3d  %-46s %-6s %-5s %s\n", r.Seq,
			fmt.Sprintf("%s%s.%s(%s)", indent, r.Role, r.MethodName, arguments(r)), r.Speaker, r.OutcomeSummary.Status,
			r.OutcomeSummary.ValueClass)
	}
	return nil
}

// records returns the history of the session, oldest first.
func (t *story) records(ctx context.Context) ([]agent.Record, error) {
	var page struct{ Data []agent.Record }
	err := t.c.Get(ctx, "/v1/sessions/"+t.session+"/history?order=asc&limit=1000", &page)
	return page.Data, err
}

// arguments formats the positional arguments of a record.
func arguments(r agent.Record) string {
	parts := make([]string, len(r.Args))
	for i, a := range r.Args {
		parts[i] = clip(text.JSON(a), 24)
	}
	return strings.Join(parts, ", ")
}
