package app

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// logModel returns a callback that logs when the model starts to fail, fails differently, or works again.
func (a *App) logModel(o Options) func(*provider.Failure) {
	model, address := o.Model, provider.MaskURL(o.OpenAIBaseURL)
	return func(f *provider.Failure) {
		if f == nil {
			a.log.Info().Str("model", model).Str("base_url", address).Msg("the model answers again")
			return
		}
		a.log.Warn().Str("model", model).Str("base_url", address).Int("status", f.Status).Str("error",
			f.Message).Msg("the model fails; kept programs go on without it")
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
