// Package operator implements what people do with tools and see of them: the registry, operations on artifacts and
// their undo, policy, maintenance, recommendations, reports, the call log and its streams, replays and exports.
//
// When a method of an operation returns, the operation is durable together with its audit entry. If nothing has changed
// since, its undo restores the previous state byte for byte. Nothing here runs as part of a call: package runtime runs
// calls. This package asks it for running calls, and for the locks that keep operations and new generations apart. A
// list or a report sorts its records, so it costs O(n log n) in the records that it covers.
package operator

import (
	"cmp"
	"context"
	"errors"
	"io"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/bell"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/fair"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/overview"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/runtime/trail"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Options configures an Operator. Store, Sandbox, Calls, Secrets and Metrics are required.
type Options struct {
	Store     store.Store
	Shared    bool             // other replicas use the store, too
	Namespace agent.Namespace  // namespace of the tools; "" is the default one
	Sandbox   sandbox.Sandbox  // checks and replays programs
	Calls     *runtime.Runtime // runs the calls of the namespace
	Secrets   Secrets          // of connections
	Metrics   *telemetry.Metrics
	Logger    zerolog.Logger
	Now       func() time.Time // nil: time.Now
	// Cost returns the price of a call's requests to a model, and its currency. It reports false if the model has no
	// price. nil means that no model has one.
	Cost func(model string, u agent.Usage) (amount float64, currency string, known bool)

	// Usage reports the tokens spent; nil means that nothing is known about them.
	Usage func(ctx context.Context, q spend.UsageQuery) (spend.UsageReport, error)

	Provider   string // name of the provider, for Version
	Model      string // the default model, for Version
	Engine     string // engine setting, for Version
	StoreName  string // disk or postgres, for Version
	Durability string // durability setting, for Version
	Version    string // of the daemon
	Revision   string // of its source, "" if unknown
}

// Operator serves operations and views. Its methods may be called concurrently. Close must be called at the end.
type Operator struct {
	o     Options
	store store.Namespace
	box   sandbox.Sandbox
	calls *runtime.Runtime

	overview  *overview.Overview
	contracts *contract.Cache
	undoing   sync.Mutex // held during an undo
	undos     undos
	ledger    *trail.Ledger[verdict] // people's decisions about recommendations
	counted   adviceCount
	advised   bell.Bell // rings after each decision about a recommendation
	upkeep    upkeep
	catching  fair.Lines[string] // readers whose event streams are catching up
}

// New returns an Operator. The caller must call Maintain about every minute.
func New(o Options) (*Operator, error) {
	if o.Store == nil || o.Sandbox == nil || o.Calls == nil || o.Secrets == nil || o.Metrics == nil {
		return nil, errors.New("operator: Store, Sandbox, Calls, Secrets and Metrics are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Namespace = cmp.Or(o.Namespace, agent.DefaultNamespace)
	held, err := o.Store.Namespace(o.Namespace)
	if err != nil {
		return nil, err
	}
	contracts := contract.NewCache(0)
	seen := overview.Options{Store: o.Store, Namespace: o.Namespace, Now: o.Now, Policy: o.Calls.PolicyInForce,
		Stale: func(t *agent.Tool, a *agent.Artifact) bool {
			return o.Calls.Outdated(resolved(contracts, t, a.MethodName), a) != ""
		}}
	if o.Usage != nil {
		seen.Usage = func(ctx context.Context) (spend.UsageReport, error) {
			return o.Usage(ctx, spend.UsageQuery{By: spend.ByRole})
		}
	}
	tools, err := overview.New(seen)
	if err != nil {
		return nil, err
	}
	return &Operator{o: o, store: held, overview: tools, box: o.Sandbox, calls: o.Calls, contracts: contracts,
			undos: undos{reader: trail.NewReader(held, store.AuditQuery{Undos: true})},
			ledger: trail.New(held, applyVerdict, opRecommendationApply, opRecommendationDismiss,
				opRecommendationUndo)},
		nil
}

// Close stops following the store. Views still work afterwards, but read everything again.
func (o *Operator) Close() { o.overview.Close() }

// VersionInfo is the body of GET /v1/version.
type VersionInfo struct {
	Name            string     `json:"name"`
	Version         string     `json:"version"`
	Revision        string     `json:"revision,omitempty"`
	ToolstoreSchema int        `json:"toolstore_schema_version"`
	PromptVersion   string     `json:"prompt_version"`
	ABI             string     `json:"runtime_version"`
	Model           string     `json:"model"`
	Provider        string     `json:"provider"`
	GoVersion       string     `json:"go_version"` // of the binary; programs use the same Go version
	Engine          string     `json:"engine"`     // the setting: auto, go or yaegi
	Tier            string     `json:"tier"`       // the highest one here: engine or native
	Native          NativeTier `json:"native"`
	Store           string     `json:"store"` // where data is stored: disk or postgres
	// when a call's commit is synced: always (before its reply), or interval:DURATION
	Durability          string         `json:"durability"`
	Sandbox             sandbox.Status `json:"sandbox"`
	KnownToolsPrompt    int            `json:"known_tools_prompt_limit"`
	MaxRepairsBeforeGen int            `json:"max_repairs_before_regen"`
}

// A NativeTier reports whether programs are compiled.
type NativeTier struct {
	State     string `json:"state"`               // on or off
	Why       string `json:"why,omitempty"`       // the reason, if off
	Toolchain string `json:"toolchain,omitempty"` // Go version, if on
	From      string `json:"from,omitempty"`      // carried or installed, if on
}

// Version describes this daemon, with the confinement that was observed at the start.
func (o *Operator) Version() VersionInfo {
	p := o.calls.Policy()
	tier, compiles := sandbox.TierNative, NativeTier{State: "on", Toolchain: o.calls.Compiling().Toolchain,
		From: o.calls.Compiling().From}
	if why := o.calls.Compiling().Why; why != "" {
		tier, compiles = sandbox.TierEngine, NativeTier{State: "off", Why: why}
	}
	return VersionInfo{Name: "recurgentd", Version: o.o.Version, Revision: o.o.Revision,
		ToolstoreSchema: agent.SchemaVersion,
		PromptVersion:   prompt.Version, ABI: agent.ABI, Model: o.o.Model, Provider: o.o.Provider,
		GoVersion: goruntime.Version(),
		Engine:    o.o.Engine, Tier: tier, Native: compiles, Store: o.o.StoreName, Durability: o.o.Durability,
		Sandbox:          o.box.Status(),
		KnownToolsPrompt: p.KnownToolsPromptLimit, MaxRepairsBeforeGen: p.MaxRepairsBeforeRegen}
}

// ErrNoExport means that the store cannot write an archive of itself.
var ErrNoExport = errors.New("this store has no export")

// Export writes an archive of all stored data, or of one namespace (store.Exporter). Calls go on meanwhile. An error
// after the first byte leaves a broken archive, which its checksums reveal.
func (o *Operator) Export(ctx context.Context, w io.Writer, only agent.Namespace, actor string) error {
	s, ok := o.o.Store.(store.Exporter)
	if !ok {
		return ErrNoExport
	}
	target := "store"
	if only != "" {
		target = "namespace " + string(only)
	}
	err := o.store.AppendAudit(ctx, o.audit(actor, opExport, target, ""))
	if errors.Is(err, store.ErrReadOnly) { // a store that cannot be written must still be exported
		o.o.Logger.Warn().Err(err).Str("actor", actor).Msg("the audit trail lacks an export")
		err = nil
	}
	if err != nil {
		return err
	}
	return s.Export(ctx, w, only)
}
