package predict

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/runtime/trail"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Calls is what predictions share with calls: *runtime.Runtime.
type Calls interface {
	Ready() error
	Policy() agent.Policy
	// Rules say what is masked; nil for nothing.
	Rules() *mask.Rules
	// Turn waits for the session's turn: its calls and predictions run one after another. The epoch is that of store.CallCommit.
	Turn(ctx context.Context, sessionID string) (epoch int64, leave func(), err error)
	// Room returns why the owner cannot have that much more.
	Room(ctx context.Context, owner string, more store.Bytes) error
	// Life ends, with its cause, when the daemon shuts down.
	Life() context.Context
}

// Options configures a Service. All fields but Namespace, Spend, Tracer and Now are required.
type Options struct {
	Store     store.Store
	Namespace agent.Namespace // "" for the default one
	Provider  provider.Provider
	Calls     Calls
	Spend     *spend.Account // which requests are charged to; nil: none are
	Metrics   *telemetry.Metrics
	Tracer    *telemetry.Tracer // nil: no traces
	Now       func() time.Time  // nil: time.Now

	Model        string        // asked where neither the request nor the session names one
	Timeout      time.Duration // of a whole prediction
	MaxContext   int           // bytes of a session's context
	SandboxLevel string        // for the log entries of predictions
}

// Service answers predictions, keeps their turns in sessions, and keeps named signatures. Its methods may be called
// concurrently.
type Service struct {
	o     Options
	store store.Namespace
	named *trail.Ledger[Named] // signatures
}

// NewService wires a Service.
func NewService(o Options) (*Service, error) {
	switch {
	case o.Store == nil || o.Provider == nil || o.Calls == nil || o.Metrics == nil:
		return nil, errors.New("predict: Store, Provider, Calls and Metrics are required")
	case o.Model == "" || o.Timeout <= 0 || o.MaxContext < 1:
		return nil, errors.New("predict: Model, Timeout and MaxContext are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	held, err := o.Store.Namespace(cmp.Or(o.Namespace, agent.DefaultNamespace))
	if err != nil {
		return nil, err
	}
	return &Service{o: o, store: held, named: trail.New(held, applyNamed, opSignaturePut, opSignatureDelete)}, nil
}
