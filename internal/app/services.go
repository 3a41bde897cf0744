package app

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/mcp"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/predict"
)

// services is what the REST interface asks: calls, operations and views, predictions.
type services struct {
	*runtime.Runtime
	*operator.Operator
	*predict.Service
	*files.Keeper
	tools  *catalog.Catalog
	agents *mcp.Server

	log            zerolog.Logger
	endMaintenance context.CancelFunc // nil until Begin
	maintained     chan struct{}      // closed when maintenance has ended
}

// newServices wires the services around one runtime. Begin starts maintenance, which checks every tick whether it is due.
func newServices(ctx context.Context, ro runtime.Options, o Options, p parts, tick time.Duration) (*services, error) {
	b := p.build
	var run *runtime.Runtime
	fo := files.DefaultOptions()
	fo.Store, fo.Now, fo.Policy = ro.Store, ro.Now, func() *agent.Policy { return run.PolicyInForce() }
	fo.MaxFile, fo.MaxAll = int64(o.FileMax), int64(o.FilesMax)
	kept, err := files.New(fo)
	if err != nil {
		return nil, err
	}
	ro.Files = kept
	if run, err = runtime.New(ctx, ro); err != nil {
		return nil, err
	}
	op, err := operator.New(operator.Options{Store: ro.Store, Sandbox: ro.Sandbox, Calls: run, Secrets: p.secrets, Metrics: ro.Metrics, Logger: ro.Logger, Now: ro.Now, Provider: ro.Provider.Name(),
		Model: ro.Model, Engine: o.Engine, Durability: o.Durability, Version: b.Version, Revision: b.Revision, MaintenanceTick: tick})
	if err != nil {
		return nil, err
	}
	answers, err := predict.NewService(predict.Options{Store: ro.Store, Provider: ro.Provider, Calls: run, Metrics: ro.Metrics, Tracer: ro.Tracer, Now: ro.Now,
		Model: ro.Model, Timeout: ro.CallTimeout, MaxContext: ro.MaxContext, SandboxLevel: string(ro.Sandbox.Status().Level)})
	if err != nil {
		return nil, err
	}
	tools, err := catalog.New(catalog.Options{Store: ro.Store, Policy: run.PolicyInForce, Serving: run.Serving})
	if err != nil {
		return nil, err
	}
	s := &services{Runtime: run, Operator: op, Service: answers, Keeper: kept, tools: tools, log: ro.Logger, maintained: make(chan struct{})}
	s.agents, err = mcp.New(mcp.Options{Runtime: s, Tools: tools, Version: b.Version, Logger: ro.Logger})
	return s, err
}

// Begin starts maintenance. It is called once, after the policy of the start-up settings is applied.
func (s *services) Begin() {
	var ctx context.Context
	ctx, s.endMaintenance = context.WithCancel(context.Background())
	go func() {
		defer close(s.maintained)
		if err := s.ResumeCorrections(ctx); err != nil {
			s.log.Warn().Err(err).Msg("corrections that a stop interrupted could not be resumed")
		}
		s.Maintain(ctx)
	}()
}

// Stop stops the runtime, then maintenance. It returns the runtime's error.
func (s *services) Stop(ctx context.Context) error {
	err := s.Runtime.Stop(ctx)
	s.agents.Close()
	s.tools.Close()
	if s.endMaintenance != nil {
		s.endMaintenance()
		<-s.maintained
	}
	return err
}
