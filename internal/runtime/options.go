package runtime

import (
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/fair"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Options configures a Runtime. Start from DefaultOptions.
type Options struct {
	Store     store.Store              // required
	Namespace agent.Namespace          // whose calls it runs
	Shared    bool                     // other replicas use the store, too
	Sandbox   sandbox.Sandbox          // required
	Provider  provider.Provider        // required
	Metrics   *telemetry.Metrics       // required
	Tracer    *telemetry.Tracer        // nil: no traces
	Compiling Compiling                // whether programs are compiled: what views show
	Files     *files.Keeper            // nil: programs have no files
	Storage   *storage.Shares          // of what is stored; nil: everybody has all
	Spend     *spend.Account           // which requests to the model are charged to; nil: none are
	Heavy     *fair.Heavy[agent.Owner] // for what takes long over bytes of a call; nil: nobody waits
	Owners    Owners                   // which replica runs the calls of a session; nil: there are no others
	Logger    zerolog.Logger
	Now       func() time.Time // the clock of records and windows

	Model       string        // asked where a session names none
	RunTimeout  time.Duration // of a program's own computing
	CallTimeout time.Duration // of a whole call that names no timeout
	MaxTimeout  time.Duration // the longest timeout a call may name

	MaxQueue   int // calls of one session that may wait; at least 1
	MaxContext int // bytes of a session's context; at least 1

	AllowImport func(path string) bool // whether a stored program may still import the package; required
	Dialect     string                 // what prompts say of the allowed packages
	// ModelContext returns how many tokens a model can read and write together, 0 where that is not known; nil: it never is.
	ModelContext func(model string) int
	// Scheme returns how addresses of a connection's host begin, such as https://; nil: it is not known.
	Scheme   func(host string) string
	FetchMax string // what prompts say of the largest body of a fetch, such as "16 MiB"

	CommitTimeout time.Duration // of one store commit
	CancelGrace   time.Duration // how long Stop waits for canceled calls to commit
}

// DefaultOptions returns the defaults of everything that is not required.
func DefaultOptions() Options {
	return Options{
		Logger: zerolog.Nop(), Now: time.Now, Namespace: agent.DefaultNamespace, Model: "gpt-4.1",
		RunTimeout: 30 * time.Second, CallTimeout: 10 * time.Minute, MaxTimeout: time.Hour,
		MaxQueue: 256, MaxContext: 1 << 20, CommitTimeout: 30 * time.Second, CancelGrace: 2 * time.Second,
	}
}

func (o Options) validate() error {
	switch {
	case o.Store == nil || o.Sandbox == nil || o.Provider == nil || o.Metrics == nil:
		return errors.New("runtime: Store, Sandbox, Provider and Metrics are required")
	case o.Now == nil || o.AllowImport == nil:
		return errors.New("runtime: Now and AllowImport are required")
	case o.RunTimeout <= 0 || o.CallTimeout <= 0 || o.MaxTimeout < o.CallTimeout:
		return errors.New("runtime: RunTimeout and CallTimeout must be positive, MaxTimeout at least CallTimeout")
	case o.CommitTimeout <= 0 || o.CancelGrace < 0:
		return errors.New("runtime: CommitTimeout must be positive, CancelGrace at least 0")
	case o.MaxQueue < 1 || o.MaxContext < 1:
		return errors.New("runtime: MaxQueue and MaxContext must be at least 1")
	}
	return nil
}
