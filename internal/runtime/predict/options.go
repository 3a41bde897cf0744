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

// Calls is the part of *runtime.Runtime that predictions share with calls.
type Calls interface {
	Ready() error
	Policy() agent.Policy
	// Rules returns the masking rules; nil masks nothing.
	Rules() *mask.Rules
	// Turn waits for the session's turn: its calls and predictions run one after another. The caller must call leave.
	// The epoch is for store.CallCommit.Fence.
	Turn(ctx context.Context, sessionID string) (epoch int64, leave func(), err error)
	// Room returns an error if the owner may not store that much more.
	Room(ctx context.Context, owner string, more store.Bytes) error
	// Life returns a context that is canceled, with its cause, when the daemon shuts down.
	Life() context.Context
}

// Options configures a Service. All fields but Namespace, Spend, Tracer and Now are required.
type Options struct {
	Store     store.Store
	Namespace agent.Namespace // "" means the default one
	Provider  provider.Provider
	Calls     Calls
	Spend     *spend.Account // account charged for model requests; nil charges none
	Metrics   *telemetry.Metrics
	Tracer    *telemetry.Tracer // nil means no traces
	Now       func() time.Time  // nil means time.Now

	Model        string        // used if neither the request nor the session names one
	Timeout      time.Duration // for a whole prediction
	MaxContext   int           // maximum bytes of a session's context
	SandboxLevel string        // for the log entries of predictions
}

// Service answers predictions, stores their turns in sessions, and stores named signatures. It is safe for concurrent
// use.
type Service struct {
	o     Options
	store store.Namespace
	named *trail.Ledger[Named] // signatures
}

// NewService returns a Service. It starts nothing and need not be closed.
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
