package env

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
	Namespace agent.Namespace          // whose calls the Runtime runs
	Shared    bool                     // other replicas use the same store
	Sandbox   sandbox.Sandbox          // required
	Provider  provider.Provider        // required
	Metrics   *telemetry.Metrics       // required
	Tracer    *telemetry.Tracer        // nil: no traces
	Compiling Compiling                // whether programs are compiled; shown by views
	Files     *files.Keeper            // nil: programs have no files
	Storage   *storage.Shares          // shares of stored bytes; nil: no limits
	Spend     *spend.Account           // account that model requests are charged to; nil: not charged
	Heavy     *fair.Heavy[agent.Owner] // schedules long work on the bytes of a call; nil: no waiting
	Owners    Owners                   // assigns sessions to replicas; nil: there is only this one
	Logger    zerolog.Logger
	Now       func() time.Time // clock of records and time windows; required

	Model       string        // used if a session has no model
	RunTimeout  time.Duration // limit of a program's own computing time
	CallTimeout time.Duration // limit of a whole call, if the call has no timeout
	MaxTimeout  time.Duration // largest timeout that a call may set

	MaxQueue   int // calls of one session that may wait; at least 1
	MaxContext int // bytes of a session's context; at least 1

	AllowImport func(path string) bool // reports whether a stored program may still import the package; required
	Dialect     string                 // describes the allowed packages in prompts
	// ModelContext returns how many tokens a model can read and write together, or 0 if that is unknown. nil means
	// always unknown.
	ModelContext func(model string) int
	// Scheme returns the prefix of URLs for a connection's host, such as https://. nil means unknown.
	Scheme   func(host string) string
	FetchMax string // largest body of a fetch, as prompts state it, such as "16 MiB"

	CommitTimeout time.Duration // limit of one store commit
	CancelGrace   time.Duration // how long Stop waits for canceled calls to commit
}

// DefaultOptions returns the defaults of all options that are not required.
func DefaultOptions() Options {
	return Options{
		Logger: zerolog.Nop(), Now: time.Now, Namespace: agent.DefaultNamespace, Model: "gpt-4.1",
		RunTimeout: 30 * time.Second, CallTimeout: 10 * time.Minute, MaxTimeout: time.Hour,
		MaxQueue: 256, MaxContext: 1 << 20, CommitTimeout: 30 * time.Second, CancelGrace: 2 * time.Second,
	}
}

// Validate returns an error that names the first option that is missing or out of range.
func (o Options) Validate() error {
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

// Compiling describes whether the daemon compiles programs.
type Compiling struct {
	Toolchain string // version of the Go toolchain; "" if nothing is compiled
	From      string // whether the toolchain is carried by the binary or installed; "" if nothing is compiled
	Why       string // why nothing is compiled; "" if programs are
}
