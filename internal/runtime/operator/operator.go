// Package operator is what people do with tools and see of them: the registry, operations on artifacts and their undo,
// policy, maintenance, recommendations, reports, the call log and its streams, replays and exports.
//
// Every operation is durable together with its audit entry when its method returns. If nothing has changed since, its
// undo restores the previous state byte for byte. Nothing here runs as part of a call: package runtime runs calls. This
// package asks it for running calls, and for the locks that keep an operation and a new generation apart. A list or a report takes n log n in
// the records that it covers, as they are sorted.
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
	Namespace agent.Namespace  // whose tools they are; "" for the default one
	Sandbox   sandbox.Sandbox  // checks and replays programs
	Calls     *runtime.Runtime // whose calls these are
	Secrets   Secrets          // of connections
	Metrics   *telemetry.Metrics
	Logger    zerolog.Logger
	Now       func() time.Time // nil: time.Now
	// Cost is what a call's requests to a model cost, and in which currency; false when the model has no price. nil: none has.
	Cost func(model string, u agent.Usage) (amount float64, currency string, known bool)

	// Usage reports what models were asked. nil: nothing is known of it.
	Usage func(ctx context.Context, q spend.UsageQuery) (spend.UsageReport, error)

	Provider   string // name of the provider, for Version
	Model      string // the default model, for Version
	Engine     string // the setting of what runs programs, for Version
	StoreName  string // for Version: disk or postgres
	Durability string // the setting of when calls are synced, for Version
	Version    string // of the daemon
	Revision   string // of its source, "" if unknown
}

// Operator serves operations and views. Its methods may be called concurrently.
type Operator struct {
	o     Options
	store store.Namespace
	box   sandbox.Sandbox
	calls *runtime.Runtime

	overview  *overview.Overview
	contracts *contract.Cache
	undoing   sync.Mutex // held during an undo
	undos     undos
	ledger    *trail.Ledger[verdict] // what people decided about recommendations
	counted   adviceCount
	advised   bell.Bell // rings when somebody has decided about a recommendation
	upkeep    upkeep
	catching  fair.Lines[string] // readers whose event streams are behind
}

// New wires an Operator. Maintain has to be called every minute or so.
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

// Close stops following the store. Views that follow it are read anew if they are asked for again.
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
	GoVersion       string     `json:"go_version"` // of the binary, which is the Go that programs get
	Engine          string     `json:"engine"`     // the setting: auto, go, ssa or yaegi
	Tier            string     `json:"tier"`       // the highest that programs run on here: engine or native
	Native          NativeTier `json:"native"`
	Store           string     `json:"store"` // where things are kept: disk
	// when the commit of a call is synced: always, before its reply, or interval:DURATION
	Durability          string         `json:"durability"`
	Sandbox             sandbox.Status `json:"sandbox"`
	KnownToolsPrompt    int            `json:"known_tools_prompt_limit"`
	MaxRepairsBeforeGen int            `json:"max_repairs_before_regen"`
}

// A NativeTier says whether programs are compiled.
type NativeTier struct {
	State     string `json:"state"`               // on or off
	Why       string `json:"why,omitempty"`       // of off
	Toolchain string `json:"toolchain,omitempty"` // of on: its Go version
	From      string `json:"from,omitempty"`      // of on: carried or installed
}

// Version returns what this daemon is and what confinement was observed at the start.
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
var ErrNoExport = errors.New("the store cannot be exported")

// Export writes an archive of everything that is stored, or of the namespace only (store.Exporter), while calls go on. An error after the first byte leaves a
// broken archive, which its checksums reveal.
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
	if errors.Is(err, store.ErrReadOnly) { // a store that cannot be written must still be saved
		o.o.Logger.Warn().Err(err).Str("actor", actor).Msg("the audit trail lacks an export")
		err = nil
	}
	if err != nil {
		return err
	}
	return s.Export(ctx, w, only)
}
