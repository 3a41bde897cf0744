package app

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/runtime"
)

// errStopping is why streams end and requests are canceled.
var errStopping = runtime.ErrDraining

// Stop ends the App: new calls are refused at once, and calls under way may end by themselves for seven tenths of the time
// that ctx leaves, or for as long as they take when ctx has no deadline; then they are canceled and recorded, replies leave,
// and the store writes its files. Every step runs, also when one before it failed.
//
// Stop returns when all is done, or when ctx ends, with an error that names the step that has not ended; the steps that are
// left run on in the background and hurry. It may be called twice, also at the same time: the second call waits for the
// same end.
func (a *App) Stop(ctx context.Context) error {
	a.stopping.Do(func() {
		a.log.Info().Msg("stopping")
		go func() {
			defer close(a.stopped)
			a.stopErr = a.undo(ctx)
			a.log.Info().Msg("stopped")
		}()
	})
	select {
	case <-a.stopped:
		return a.stopErr
	case <-ctx.Done():
	}
	select {
	case <-a.stopped: // at the same moment
		return a.stopErr
	default:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Errorf("%s did not end in time: %w", a.current, context.Cause(ctx))
}

// undo runs every step, the last one first.
func (a *App) undo(ctx context.Context) error {
	var err error
	for _, s := range slices.Backward(a.steps) {
		a.mu.Lock()
		a.current = s.name
		a.mu.Unlock()
		err = errors.Join(err, s.undo(ctx))
	}
	return err
}

// most is a context that ends when seven tenths of the time that ctx leaves are over.
func most(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)*7/10)
}

// drain has calls under way end.
func (a *App) drain(ctx context.Context) error {
	ctx, cancel := most(ctx)
	defer cancel()
	err := a.spaces.Stop(ctx)
	if c := a.spaces.parts.cluster; c != nil {
		c.AwaitForwards(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		a.log.Warn().Msg("calls under way were canceled")
		return nil
	}
	return err
}

// makeServer makes the server, which has no handler yet.
func (a *App) makeServer(h2c bool) {
	base, hangUp := context.WithCancelCause(context.Background())
	a.server = &http.Server{ReadHeaderTimeout: ReadHeaderTimeout, ReadTimeout: ReadTimeout, IdleTimeout: IdleTimeout,
		MaxHeaderBytes: MaxHeaderBytes, BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog: stdlog.New(debugWriter{a.log}, "", 0)}
	a.server.Protocols = new(http.Protocols)
	a.server.Protocols.SetHTTP1(true)
	a.server.Protocols.SetUnencryptedHTTP2(h2c)
	a.onStop("the server", func(ctx context.Context) error {
		hangUp(errStopping) // streams end
		return shutDown(ctx, a.server, a.served)
	})
}

// shutDown ends the server when its replies have left, or most of the time is over. served is nil when it was never started.
func shutDown(ctx context.Context, s *http.Server, served <-chan struct{}) error {
	ctx, cancel := most(ctx)
	defer cancel()
	err := s.Shutdown(ctx)
	if err != nil {
		err = s.Close() // replies that still wait for their readers are lost, which is theirs to bear
	}
	if served != nil {
		<-served
	}
	return err
}

// debugWriter takes what net/http says of broken connections; nobody needs to act on it.
type debugWriter struct{ log zerolog.Logger }

func (w debugWriter) Write(p []byte) (int, error) {
	w.log.Debug().Msg(strings.Join(strings.Fields(string(p)), " "))
	return len(p), nil
}
