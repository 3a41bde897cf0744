package predict

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// busy is a runtime in which another call holds every session's turn.
type busy struct {
	life context.Context
	free bool
}

func (b *busy) Ready() error          { return nil }
func (b *busy) Policy() agent.Policy  { return agent.DefaultPolicy() }
func (b *busy) Rules() *mask.Rules    { return mask.Compile(mask.Defaults()) }
func (b *busy) Life() context.Context { return b.life }
func (b *busy) Room(context.Context, string, store.Bytes) error {
	return nil
}

func (b *busy) Turn(ctx context.Context, _ string) (int64, func(), error) {
	if b.free {
		return 0, func() {}, nil
	}
	<-ctx.Done()
	return 0, nil, context.Cause(ctx)
}

// silent is a model that never answers.
type silent struct{}

func (silent) Name() string { return "silent" }
func (silent) Program(context.Context, provider.Request) (provider.Reply, error) {
	panic("no program is asked for")
}

func (silent) Chat(ctx context.Context, _ provider.ChatRequest) (provider.ChatReply, error) {
	<-ctx.Done()
	return provider.ChatReply{Usage: agent.Usage{ModelRequests: 1}}, context.Cause(ctx)
}

// An interrupted prediction reports whether the model was asked. One that waited for its session's turn leaves no
// trace. One that was sent is logged with its usage.
func TestInterruptedPredictions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		free, shutdown       bool
		code, says           string
		listed, usedRequests int
	}{
		"in the queue":                {code: codeTimeout, says: interrupt.NeverStarted},
		"in the queue, at a shutdown": {shutdown: true, code: codeDraining, says: interrupt.NeverStarted},
		"while the model is asked": {free: true, code: codeTimeout, says: "still being asked", listed: 1,
			usedRequests: 1},
		"while it is asked, at shutdown": {free: true, shutdown: true, code: codeDraining, says: "still being asked",
			listed: 1, usedRequests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				life, end := context.WithCancelCause(t.Context())
				s := storetest.NewMemory(time.Now)
				held, err := s.Namespace(agent.DefaultNamespace)
				if err != nil {
					t.Fatal(err)
				}
				if err := held.CreateSession(t.Context(), agent.Session{ID: "sess_1", Role: "r"}, nil); err != nil {
					t.Fatal(err)
				}
				svc, err := NewService(Options{Store: s, Provider: silent{}, Calls: &busy{life: life, free: c.free},
					Metrics: telemetry.New(telemetry.NewRegistry(), telemetry.Build{}),
					Model:   "m", Timeout: time.Minute, MaxContext: 1 << 20})
				if err != nil {
					t.Fatal(err)
				}
				if c.shutdown {
					time.AfterFunc(time.Second, func() { end(interrupt.ErrShutdown) })
				}
				_, err = svc.Predict(t.Context(), Query{SessionID: "sess_1",
					Inputs:    map[string]json.RawMessage{"q": json.RawMessage("1")},
					Signature: json.RawMessage(`{"inputs":[{"name":"q"}],"outputs":[{"name":"a"}]}`)})
				var failed *Failure
				if !errors.As(err, &failed) || failed.Code != c.code || !strings.Contains(failed.Detail, c.says) ||
					failed.Usage.ModelRequests != c.usedRequests {
					t.Errorf("got %+v (%v)", failed, err)
				}
				lines, err := held.ListCalls(t.Context(), store.CallQuery{})
				if err != nil || len(lines) != c.listed || c.listed > 0 &&
					lines[0].Usage.ModelRequests != c.usedRequests {
					t.Errorf("listed: %+v, %v", lines, err)
				}
				end(nil)
			})
		})
	}
}
