package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Results of a check.
const (
	checkOK   = "ok"
	checkWarn = "warn" // works, with less than there could be
	checkFail = "fail" // serve would not start, or would not work
)

// A finding is what one check of doctor came to.
type finding struct {
	Check  string          `json:"check"`
	Result string          `json:"result"`
	Detail string          `json:"detail"`
	Fix    string          `json:"fix,omitempty"`
	Status *sandbox.Status `json:"status,omitempty"` // of the sandbox: the same facts as /v1/version
}

func doctorCommand(sh shell) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check what serve would meet: settings, data directory, port, model, confinement, clock",
		Long: `Check what serve would meet with the same settings, without serving. The model is asked one tiny question;
the confinement is observed by a canary runner, as at every start. Exit code 1 when a check fails.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := loadOptions(serveScope, cmd.Flags(), sh.env)
			findings := []finding{{Check: "settings", Result: checkOK, Detail: "every setting is valid"}}
			if err != nil {
				findings[0] = finding{Check: "settings", Result: checkFail, Detail: err.Error(), Fix: "see docs/configuration.md"}
			} else {
				findings = append(findings, checkDataDir(o), checkPort(o), checkModel(cmd.Context(), o), checkSandbox(o), checkClock(time.Now()))
			}
			return report(sh, findings, asJSON)
		},
	}
	addFlags(serveScope, c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return c
}

func report(sh shell, findings []finding, asJSON bool) error {
	failed := 0
	for _, f := range findings {
		if f.Result == checkFail {
			failed++
		}
		if asJSON {
			continue
		}
		fmt.Fprintf(sh.stdout, "%-5s %-10s %s\n", f.Result, f.Check, f.Detail)
		if f.Fix != "" {
			fmt.Fprintf(sh.stdout, "%17s%s\n", "", f.Fix)
		}
	}
	if asJSON {
		e := json.NewEncoder(sh.stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(findings); err != nil {
			return exitWith(exitFailed, err)
		}
	}
	if failed > 0 {
		return exitWith(exitFailed, fmt.Errorf("%d of %d checks failed", failed, len(findings)))
	}
	return nil
}

// checkDataDir writes, syncs and renames a file in the directory, as the store does. The lock is not tried: a running
// daemon may hold it.
func checkDataDir(o Options) finding {
	f := finding{Check: "data", Result: checkOK, Detail: o.DataDir + " can be written"}
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return finding{Check: "data", Result: checkFail, Detail: err.Error(), Fix: "name another --data-dir"}
	}
	began := time.Now()
	err := func() error {
		file, err := os.CreateTemp(o.DataDir, ".doctor-*")
		if err != nil {
			return err
		}
		defer os.Remove(file.Name())
		_, err = file.WriteString("doctor")
		return errors.Join(err, file.Sync(), file.Close())
	}()
	if err != nil {
		return finding{Check: "data", Result: checkFail, Detail: err.Error(), Fix: "name another --data-dir, or make room"}
	}
	f.Detail += fmt.Sprintf("; a synced write took %.1f ms", float64(time.Since(began).Microseconds())/1000)
	aside, err := filepath.Glob(filepath.Join(o.DataDir, "tools", "*", "*.corrupt-*"))
	if top, err2 := filepath.Glob(filepath.Join(o.DataDir, "tools", "*.corrupt-*")); err == nil && err2 == nil {
		aside = append(aside, top...)
	}
	if len(aside) > 0 {
		f.Result, f.Detail = checkWarn, f.Detail+fmt.Sprintf("; %d damaged files were set aside", len(aside))
		f.Fix = "recurgentd store verify tells what they were"
	}
	return f
}

func checkPort(o Options) finding {
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return finding{Check: "port", Result: checkWarn, Detail: err.Error(), Fix: "a running daemon holds it, or name another --listen"}
	}
	l.Close()
	return finding{Check: "port", Result: checkOK, Detail: o.Listen + " is free"}
}

// checkModel asks the model one tiny question. A recording is only read.
func checkModel(ctx context.Context, o Options) finding {
	d := &daemon{log: zerolog.Nop()}
	defer d.close() //nolint:errcheck // nothing was written
	p, err := d.openProvider(o)
	if err != nil {
		return finding{Check: "model", Result: checkFail, Detail: err.Error(), Fix: "see --provider, --recording and OPENAI_BASE_URL"}
	}
	if p.Name() == "replay" {
		return finding{Check: "model", Result: checkWarn, Detail: "a recording answers; it knows its own methods only", Fix: "set OPENAI_API_KEY or OPENAI_BASE_URL for any method at all"}
	}
	ctx, cancel := context.WithTimeout(ctx, min(o.ProviderTimeout, 30*time.Second))
	defer cancel()
	reply, err := p.Chat(ctx, provider.ChatRequest{Model: o.Model, Messages: []provider.Message{{Role: "user", Content: "Answer with the word ok."}}})
	if err != nil {
		return finding{Check: "model", Result: checkFail, Detail: oneLine(err.Error()), Fix: "check OPENAI_BASE_URL, OPENAI_API_KEY and --model; kept programs go on without it"}
	}
	return finding{Check: "model", Result: checkOK, Detail: fmt.Sprintf("%s answered (%d tokens)", o.Model, reply.Usage.PromptTokens+reply.Usage.CompletionTokens)}
}

// checkSandbox has a canary runner observe the confinement, whatever level is required.
func checkSandbox(o Options) finding {
	so := sandbox.DefaultOptions()
	so.Require, so.Blank = string(sandbox.LevelProcess), 0
	box, err := sandbox.New(so)
	if err != nil {
		return finding{Check: "sandbox", Result: checkFail, Detail: err.Error(), Fix: "see docs/security.md"}
	}
	defer box.Close()
	status := box.Status()
	f := finding{Check: "sandbox", Result: checkOK, Detail: status.String(), Status: &status}
	if status.Level != sandbox.LevelFull {
		f.Result = checkWarn
		f.Fix = "docs/security.md says what each level promises; missing: " + missingLayers(status)
	}
	return f
}

func missingLayers(s sandbox.Status) string {
	var missing []string
	for layer, state := range s.Layers {
		if !strings.HasPrefix(state, "on") {
			missing = append(missing, layer)
		}
	}
	if len(missing) == 0 {
		return "none, but not every probe was denied"
	}
	return strings.Join(missing, ", ")
}

// checkClock refuses a clock from before this program was written: records and retention would be wrong.
func checkClock(now time.Time) finding {
	if now.Year() < 2026 {
		return finding{Check: "clock", Result: checkFail, Detail: "the clock says " + now.UTC().Format(time.RFC3339), Fix: "set the clock"}
	}
	return finding{Check: "clock", Result: checkOK, Detail: now.UTC().Format(time.RFC3339)}
}
