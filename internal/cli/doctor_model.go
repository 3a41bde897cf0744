package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// A modelStep is one step of the check of the model.
type modelStep struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Detail string `json:"detail,omitempty"`
}

// checkModel lets the model write a small program by the same request as calls. A recording is only opened.
func checkModel(ctx context.Context, o Options) finding {
	p, err := provider.New(o.ProviderOptions())
	if err != nil {
		return finding{Check: "model", Result: checkFail, Detail: err.Error(),
			Fix: "see --provider, --recording and OPENAI_BASE_URL"}
	}
	if c, ok := p.(io.Closer); ok {
		defer c.Close() // nothing was written
	}
	server := provider.ServerOf(p)
	if server == nil {
		return finding{Check: "model", Result: checkWarn, Detail: "a recording answers; it knows its own methods only",
			Fix: "set OPENAI_API_KEY or OPENAI_BASE_URL for any method at all"}
	}
	box, why, remove, err := openGate(o)
	if err != nil {
		return finding{Check: "model", Result: checkFail, Detail: "no program can be checked here: " + err.Error(),
			Fix: "see docs/security.md"}
	}
	defer remove()
	c := app.CheckModel(ctx, server, o.FetchMax, box,
		provider.Request{Owner: agent.Owner{Namespace: agent.DefaultNamespace, Name: "doctor"}})
	f := modelFinding(server, c)
	if last := c.Steps[len(c.Steps)-1]; why != "" && last.Result == provider.StepFailed {
		f.Fix = "let programs be compiled (" + why + "), or name another --model; kept programs go on without it"
	}
	return f
}

// Remedies for a model that does not answer, and for one that writes no program that the gate lets run.
const (
	modelFix = "check OPENAI_BASE_URL, OPENAI_API_KEY and --model (docs/models.md); kept programs go on without it"
	coderFix = "name a model that can write Go in --model; kept programs go on without it"
)

// modelFinding converts the check of the model to a finding.
func modelFinding(server *provider.OpenAI, c provider.Check) finding {
	f := finding{Check: "model", Result: checkOK, Detail: fmt.Sprintf("%s wrote a program in %s (%s)",
		server.Status().Model, c.Took.Round(time.Millisecond),
		text.Plural(c.Usage.PromptTokens+c.Usage.CompletionTokens, "token"))}
	for _, s := range c.Steps {
		f.Steps = append(f.Steps, modelStep{s.Name, s.Result, text.OneLine(s.Detail)})
		if s.Result == provider.StepWarn && f.Result == checkOK {
			f.Result, f.Fix = checkWarn, "docs/models.md says what each server needs"
		}
		if s.Result == provider.StepFailed {
			if f.Result, f.Fix = checkFail, modelFix; s.Name == provider.StepCompiles {
				f.Fix = coderFix
			}
			f.Detail = text.OneLine(s.Name + ": " + s.Detail)
		}
	}
	if errors.Is(c.Err, provider.ErrInvalidPayload) {
		f.Fix = coderFix
	}
	return f
}

// openGate opens what checks and compiles a program, in a temporary directory: in the data directory, where
// executables must be allowed anyway, or else in the system's. remove closes it and deletes the directory. Without a
// compiler, why is the reason.
func openGate(o Options) (box *sandbox.Pool, why string, remove func(), err error) {
	dir, err := os.MkdirTemp(o.DataDir, ".doctor-*")
	if err != nil {
		if dir, err = os.MkdirTemp("", "recurgent-doctor-"); err != nil {
			return nil, "", nil, err
		}
	}
	if box, why, err = app.OpenGate(o.Options, dir); err != nil {
		return nil, "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return box, why, func() {
		_ = box.Close() // it ran no program
		_ = os.RemoveAll(dir)
	}, nil
}

// stepLines returns a line for each step of the check.
func stepLines(colours text.Palette, steps []modelStep) []string {
	styles := map[string]string{provider.StepOK: text.Good, provider.StepWarn: text.Warn, provider.StepFailed: text.Bad,
		provider.StepUnknown: text.Faint}
	words := map[string]string{provider.StepOK: "ok", provider.StepWarn: "warn", provider.StepFailed: "fail",
		provider.StepUnknown: "-"}
	var lines []string
	for _, s := range steps {
		lines = append(lines, strings.TrimRight(strings.Repeat(" ", 17)+colours.Paint(styles[s.Result],
			text.Pad(words[s.Result], 4))+" "+text.Pad(s.Name, 8)+" "+text.Plain(s.Detail), " "))
	}
	return lines
}
