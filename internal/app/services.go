package app

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/predict"
)

// services is what the REST interface asks: calls, operations and views, predictions.
type services struct {
	*runtime.Runtime
	*operator.Operator
	*predict.Service

	endMaintenance context.CancelFunc
	maintained     chan struct{} // closed when maintenance has ended
}

// newServices wires the services around one runtime and begins maintenance, which looks every tick whether it is due.
func newServices(ctx context.Context, ro runtime.Options, engine string, b Build, tick time.Duration) (*services, error) {
	run, err := runtime.New(ctx, ro)
	if err != nil {
		return nil, err
	}
	op, err := operator.New(operator.Options{Store: ro.Store, Sandbox: ro.Sandbox, Calls: run, Metrics: ro.Metrics, Logger: ro.Logger, Now: ro.Now, Provider: ro.Provider.Name(),
		Model: ro.Model, Engine: engine, Version: b.Version, Revision: b.Revision, MaintenanceTick: tick})
	if err != nil {
		return nil, err
	}
	answers, err := predict.NewService(predict.Options{Store: ro.Store, Provider: ro.Provider, Calls: run, Metrics: ro.Metrics, Tracer: ro.Tracer, Now: ro.Now,
		Model: ro.Model, Timeout: ro.CallTimeout, MaxContext: ro.MaxContext, SandboxLevel: string(ro.Sandbox.Status().Level)})
	if err != nil {
		return nil, err
	}
	s := &services{Runtime: run, Operator: op, Service: answers, maintained: make(chan struct{})}
	ctx, s.endMaintenance = context.WithCancel(context.Background())
	go func() {
		defer close(s.maintained)
		if err := run.ResumeCorrections(ctx); err != nil {
			ro.Logger.Warn().Err(err).Msg("corrections that a stop interrupted could not be resumed")
		}
		op.Maintain(ctx)
	}()
	return s, nil
}

// Stop stops the runtime, then maintenance. It returns the runtime's error.
func (s *services) Stop(ctx context.Context) error {
	err := s.Runtime.Stop(ctx)
	s.endMaintenance()
	<-s.maintained
	return err
}
