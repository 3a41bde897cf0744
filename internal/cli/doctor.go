package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Results of a check.
const (
	checkOK   = "ok"
	checkWarn = "warn" // works, but with reduced function
	checkFail = "fail" // serve would not start or not work
)

// A finding is the result of one check.
type finding struct {
	Check  string          `json:"check"`
	Result string          `json:"result"`
	Detail string          `json:"detail"`
	Fix    string          `json:"fix,omitempty"`
	Steps  []modelStep     `json:"steps,omitempty"`  // for the model
	Status *sandbox.Status `json:"status,omitempty"` // for the sandbox, as in /v1/version
}

func doctorCommand(sh Shell) *cobra.Command {
	var out *output
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check what serve would meet: settings, data, port, access, model, confinement, toolchain, clock",
		Long: `Check what serve would meet with the same settings, without serving. The model writes a small program, by
the request that calls make (some 3,000 tokens), and each step of that is listed; the confinement is observed
by a canary runner, as at every start, and each layer that is off is listed with the reason. A warning means that it works, but with less than possible. Each warning and failure says what to do.

Exit status: 0 when no check failed, 1 when one did, 2 for a wrong command line.`,
		Example: `  recurgentd doctor
  recurgentd doctor --output json
  OPENAI_BASE_URL=http://127.0.0.1:11434/v1 recurgentd doctor --model qwen3-coder`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			o, err := loadOptions(ServeScope, cmd.Flags(), sh.Env)
			findings := []finding{checkSettings(cmd.Flags(), sh.Env, err)}
			if err == nil {
				findings = append(findings, sh.checks(ctx, cmd.Flags(), o)...)
			}
			return printFindings(out, findings)
		},
	}
	addFlags(ServeScope, c.Flags())
	out = addOutput(c, sh)
	return c
}

// checks runs all checks but that of the settings. A data directory that it had to make is removed again.
func (sh Shell) checks(ctx context.Context, flags *pflag.FlagSet, o Options) (findings []finding) {
	now := time.Now
	if sh.Clock != nil {
		now = sh.Clock
	}
	o.CompilerDir, o.GoCache = sh.CompilerDir, sh.GoCache
	defer removeEmpty(missing(o.DataDir))
	if f, found := checkDatabase(ctx, sh, flags); found {
		findings = append(findings, f)
	}
	return append(findings, checkDataDir(o), checkPort(ctx, o), checkAccess(ctx, o, now()), checkModel(ctx, o),
		checkSandbox(o), checkNative(o), checkConnections(ctx, o), checkClock(now(), newestFile(o.DataDir)))
}

// missing returns the directories of the path that do not exist, the innermost first.
func missing(dir string) (dirs []string) {
	for _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir); _, err = os.Lstat(dir) {
		dirs, dir = append(dirs, dir), filepath.Dir(dir)
	}
	return dirs
}

// removeEmpty removes directories, as far as they are empty.
func removeEmpty(dirs []string) {
	for _, dir := range dirs {
		_ = os.Remove(dir)
	}
}

// printFindings prints the findings. It returns an error if a check failed.
func printFindings(out *output, findings []finding) error {
	failed, colours := 0, out.colours()
	for _, f := range findings {
		if f.Result == checkFail {
			failed++
		}
		if !out.human() {
			continue
		}
		lines := []string{colours.Status(f.Result, text.Pad(f.Result, 5)) + " " + text.Pad(f.Check, 10) + " " +
			text.Plain(text.OneLine(f.Detail))}
		lines = append(lines, stepLines(colours, f.Steps)...)
		if f.Status != nil {
			lines = append(lines, layerLines(colours, f.Status)...)
		}
		if f.Fix != "" {
			lines = append(lines, strings.Repeat(" ", 17)+colours.Paint(text.Live,
				"→ "+text.Plain(text.OneLine(f.Fix))))
		}
		if err := out.line("%s", strings.Join(lines, "\n")); err != nil {
			return exitWith(ExitFailed, err)
		}
	}
	if !out.human() {
		if err := out.value(findings); err != nil {
			return exitWith(ExitFailed, err)
		}
	}
	if failed > 0 {
		return exitWith(ExitFailed, fmt.Errorf("%d of %d checks failed", failed, len(findings)))
	}
	return nil
}

// layerLines returns a line for each layer of the confinement, and for each probe that was not denied.
func layerLines(colours text.Palette, s *sandbox.Status) []string {
	var lines []string
	add := func(style, word, detail string) {
		lines = append(lines, strings.Repeat(" ", 17)+colours.Paint(style, text.Pad(text.Clean(word, 8), 4))+" "+
			text.Plain(text.OneLine(detail)))
	}
	missing := text.Warn
	if s.Level == sandbox.LevelFull {
		missing = text.Faint // another layer replaces it
	}
	for _, layer := range sortedKeys(s.Layers) {
		word, why, _ := strings.Cut(s.Layers[layer], " ")
		style := missing
		if word == "on" {
			style = text.Good
		}
		add(style, word, layer+" "+why)
	}
	for _, probe := range sortedKeys(s.Probes) {
		if !strings.HasPrefix(s.Probes[probe], "denied") {
			add(text.Bad, "open", "a runner may "+probe+": "+s.Probes[probe])
		}
	}
	return lines
}

func sortedKeys(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
