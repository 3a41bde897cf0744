package app

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Lines is a list whose items may contain commas. It is set by repeating a flag, or by a text with one item per line.
type Lines []string

// ParseLines reads one item per line. It skips empty lines and lines that start with #.
func ParseLines(text string) (out Lines) {
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// ModelOptions configure requests to the model's server beyond its address and key.
type ModelOptions struct {
	// ModelHeaders are headers of every request to the model's server, as NAME=VALUE. Headers that may hold secrets are
	// refused: they belong in SecretHeaders.
	ModelHeaders Lines `name:"model-header" env:"RECURGENT_MODEL_HEADER" value:"NAME=VALUE" default:"none" help:"header of every request to the model's server, as gateways want them; may be given several times (in the environment one a line); secret ones belong into --model-headers-file"`
	// ModelContext is the model's context window in tokens, prompt and reply together, 1024 to 100 million. 0 means
	// that it is learned from refusals.
	ModelContext int `name:"model-context" env:"RECURGENT_MODEL_CONTEXT" value:"TOKENS" default:"0: learned from refusals" help:"tokens that the model holds, prompt and reply together, as its server was started"`

	SecretHeaders Lines // like ModelHeaders, but never shown
}

// checkModel checks the options of the model's server. No error shows the value of a header.
func (o *Options) checkModel() error {
	for name, lines := range map[string]Lines{"model-header": o.ModelHeaders, "model-headers-file": o.SecretHeaders} {
		for _, line := range lines {
			header, value, ok := splitHeader(line)
			switch {
			case !ok:
				return refuse(name, "must be NAME=VALUE")
			case !httpguts.ValidHeaderFieldName(header) || !httpguts.ValidHeaderFieldValue(value):
				return refuse(name, "%q is not a valid header", header)
			case slices.Contains(ownHeaders, http.CanonicalHeaderKey(header)):
				return refuse(name, "%s is set by the daemon itself", header)
			case name == "model-header" && secretHeader(header):
				return refuse(name, "%s may hold a secret, and other users can read command lines; "+
					"put it in a file for --model-headers-file", header)
			}
		}
	}
	if o.ModelContext != 0 && (o.ModelContext < 1024 || o.ModelContext > 100_000_000) {
		return refuse("model-context", "must be 0, or 1024 to 100000000, got %d", o.ModelContext)
	}
	return o.checkBaseURL()
}

// ownHeaders are the headers that the HTTP client sets itself.
var ownHeaders = []string{"Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Trailer", "Te",
	"Upgrade"}

// secretHeader guesses from the name whether a header may hold a secret.
func secretHeader(name string) bool {
	name = strings.ToLower(name)
	return name == "authorization" || name == "proxy-authorization" || name == "cookie" ||
		strings.Contains(name, "key") || strings.Contains(name, "token") || strings.Contains(name, "secret")
}

// SecretInBaseURL reports whether a query parameter of the base URL may hold a secret, judging by its name.
func (o *Options) SecretInBaseURL() bool {
	u, err := url.Parse(o.OpenAIBaseURL)
	if err != nil {
		return false
	}
	for name := range u.Query() {
		if secretHeader(name) {
			return true
		}
	}
	return false
}

// splitHeader parses NAME=VALUE, or NAME: VALUE as in HTTP.
func splitHeader(line string) (name, value string, ok bool) {
	i := strings.IndexAny(line, "=:")
	if i < 1 {
		return "", "", false
	}
	return strings.TrimSpace(line[:i]), strings.TrimSpace(line[i+1:]), true
}

// modelHeader returns the configured headers of requests to the model's server.
func (o *Options) modelHeader() http.Header {
	h := http.Header{}
	for _, line := range slices.Concat(o.ModelHeaders, o.SecretHeaders) {
		if name, value, ok := splitHeader(line); ok {
			h.Add(name, value)
		}
	}
	return h
}

// checkBaseURL refuses a URL that cannot be a server's. A query is allowed, since gateways need one; its values are
// never shown.
func (o *Options) checkBaseURL() error {
	if o.OpenAIBaseURL == "" {
		return nil
	}
	u, err := url.Parse(o.OpenAIBaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return notURL("openai-base-url", o.OpenAIBaseURL, provider.MaskURL(o.OpenAIBaseURL))
	}
	if u.User != nil || u.Fragment != "" {
		return refuse("openai-base-url", "must not have a user or a fragment")
	}
	return nil
}

// ProviderOptions returns the options of the provider, without callbacks.
func (o *Options) ProviderOptions() provider.Options {
	po := provider.Options{Kind: o.Provider, OpenAI: provider.DefaultOpenAIOptions(), Recording: o.Recording,
		Embedded: demoRecording}
	po.OpenAI.Key, po.OpenAI.BaseURL, po.OpenAI.Timeout = o.OpenAIKey, o.OpenAIBaseURL, o.ProviderTimeout
	po.OpenAI.Model = o.Model
	for _, line := range o.SecretHeaders {
		if _, value, ok := splitHeader(line); ok {
			po.OpenAI.Secrets = append(po.OpenAI.Secrets, value)
		}
	}
	po.OpenAI.MaxCompletion, po.OpenAI.Context, po.OpenAI.Header = o.MaxCompletionTokens, o.ModelContext,
		o.modelHeader()
	return po
}

// logModel returns a callback that logs when the model starts to fail, fails differently, or works again.
func (a *App) logModel(o Options) func(*provider.Failure) {
	model, address := o.Model, provider.MaskURL(o.OpenAIBaseURL)
	return func(f *provider.Failure) {
		if f == nil {
			a.log.Info().Str("model", model).Str("base_url", address).Msg("the model answers again")
			return
		}
		a.log.Warn().Str("model", model).Str("base_url", address).Int("status", f.Status).Str("error",
			f.Message).Msg("the model fails; stored programs run without it")
	}
}

// lookPause is how long after the start the model's server is checked, unless a call has used it by then.
const lookPause = 2 * time.Second

// lookAtModel arranges a check of the model's server soon after the start, to report a wrong key, address or model. It
// does not delay the start, and costs no tokens: it requests the list of models.
func (a *App) lookAtModel(server *provider.OpenAI) {
	ctx, end := context.WithCancel(context.Background())
	var looking sync.WaitGroup
	a.onStop("the look at the model", func(context.Context) error {
		end()
		looking.Wait()
		return nil
	})
	a.look = func() {
		looking.Go(func() {
			select {
			case <-ctx.Done():
			case <-time.After(lookPause):
				if !server.Asked() {
					_, _ = server.Look(ctx) // logModel logs the result
				}
			}
		})
	}
}

// modelFigures returns the figures of the model for metrics.
func modelFigures(server *provider.OpenAI) telemetry.Model {
	if server == nil {
		return telemetry.Model{}
	}
	s := server.Status()
	m := telemetry.Model{LastOK: s.LastOK}
	if s.LastError != nil {
		m.LastFailed = s.LastError.At
	}
	return m
}

// A loader passes a program through the gate and compiles it.
type loader interface {
	Load(ctx context.Context, prog sandbox.Program, owner agent.Owner) (*report.Facts, *sandbox.Failure)
}

// CheckModel asks the model for a small program, with the same request as a call, and passes the reply through the
// gate. It does not run the program.
func CheckModel(ctx context.Context, server *provider.OpenAI, fetchMax Bytes, box loader,
	r provider.Request) provider.Check {
	r.Kind, r.Role, r.Method = provider.KindForge, "calculator", "add"
	r.Messages = prompt.Program(prompt.Input{Kind: r.Kind, Role: r.Role, Method: r.Method,
		Args:    []json.RawMessage{json.RawMessage("2"), json.RawMessage("3")},
		Dialect: allow.Dialect(), FetchMax: fetchMax.String(), ModelContext: server.Context(server.Status().Model)})
	return server.Check(ctx, r, func(ctx context.Context, code string) (string, error) {
		facts, refused := box.Load(ctx, sandbox.Program{Source: code, Checksum: agent.Checksum(code)}, r.Owner)
		if refused != nil {
			return "", fmt.Errorf("%s: %s", refused.Type, refused.Message)
		}
		return "the gate lets it run, on the engine " + facts.Engine, nil
	})
}

// ModelStatus returns the recent state of the model. It reports false if no model is configured.
func (s *services) ModelStatus() (provider.Status, bool) {
	if s.server == nil {
		return provider.Status{}, false
	}
	return s.server.Status(), true
}

// CheckModel checks the model as doctor does, at the owner's expense. It reports false if no model is configured.
func (s *services) CheckModel(ctx context.Context, owner string) (provider.Check, bool, error) {
	if s.server == nil {
		return provider.Check{}, false, nil
	}
	if err := s.Ready(); err != nil {
		return provider.Check{}, true, err
	}
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	life := s.Life()
	defer context.AfterFunc(life, func() { cut(context.Cause(life)) })()
	status := s.server.Status()
	return CheckModel(ctx, s.server, s.fetchMax, s.box,
			provider.Request{Owner: agent.Owner{Namespace: s.name, Name: owner},
				Charge: s.Account.Charge(spend.Request{Method: "model_check", Owner: owner, Model: status.Model})}),
		true,
		nil
}

// demoRecording is the recording that replay uses if none is named. It contains recorded replies of a real model, and
// hand-written ones for the examples in the documentation. The recorded programs are older than
// declarations of parameters, so their declarations are written by hand.
//
//go:embed demo.jsonl
var demoRecording []byte

// A DemoRole is a role of the demo recording and its methods, in the order of the recording.
type DemoRole struct {
	Role    string
	Methods []string
}

// Demo returns the roles of the demo recording, in its order. Each call parses the recording.
func Demo() (roles []DemoRole) {
	lines := bufio.NewScanner(bytes.NewReader(demoRecording))
	lines.Buffer(nil, len(demoRecording)+1)
	for lines.Scan() {
		var l provider.Line
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.Kind != provider.KindForge {
			continue
		}
		i := slices.IndexFunc(roles, func(r DemoRole) bool { return r.Role == l.Role })
		if i < 0 {
			i, roles = len(roles), append(roles, DemoRole{Role: l.Role})
		}
		roles[i].Methods = append(roles[i].Methods, l.Method)
	}
	return roles
}
