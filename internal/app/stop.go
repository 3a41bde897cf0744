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

// errStopping is the cause with which streams and requests end at a stop.
var errStopping = runtime.ErrDraining

// Stop ends the App. It refuses new calls at once. Running calls may finish within seven tenths of the time until ctx's
// deadline, or without limit if ctx has no deadline. Then they are canceled and recorded, replies are sent, and the
// store writes its files. A failed step does not keep the others from running.
//
// Stop returns when everything has ended. If ctx ends first, it returns an error that names the current step; the other
// steps go on in the background, in a hurry. It may be called again and concurrently: all calls wait for the same end.
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
	case <-a.stopped: // both are ready, and select chooses at random
		return a.stopErr
	default:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Errorf("%s did not end in time: %w", a.current, context.Cause(ctx))
}

// undo runs all steps in reverse order, and returns their joined errors.
func (a *App) undo(ctx context.Context) error {
	var err error
	// current is kept under mu, since Stop reads it while a step runs
	for _, s := range slices.Backward(a.steps) {
		a.mu.Lock()
		a.current = s.name
		a.mu.Unlock()
		err = errors.Join(err, s.undo(ctx))
	}
	return err
}

// most returns a context that ends after seven tenths of the time until ctx's deadline.
func most(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)*7/10)
}

// drain waits for running calls and forwarded requests. Calls that had to be canceled are logged, and are not an error.
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

// makeServer makes the server, without a handler. It is made before the handler, so it stops after everything that
// serves requests.
func (a *App) makeServer(h2c bool) {
	base, hangUp := context.WithCancelCause(context.Background())
	a.server = &http.Server{ReadHeaderTimeout: ReadHeaderTimeout, ReadTimeout: ReadTimeout, IdleTimeout: IdleTimeout,
		MaxHeaderBytes: MaxHeaderBytes, BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog: stdlog.New(debugWriter{a.log}, "", 0)}
	a.server.Protocols = new(http.Protocols)
	a.server.Protocols.SetHTTP1(true)
	a.server.Protocols.SetUnencryptedHTTP2(h2c)
	a.onStop("the server", func(ctx context.Context) error {
		hangUp(errStopping) // ends streams
		return shutDown(ctx, a.server, a.served)
	})
}

// shutDown ends the server once its replies are sent, or most of the time has passed. served is nil if the server was
// not started.
func shutDown(ctx context.Context, s *http.Server, served <-chan struct{}) error {
	ctx, cancel := most(ctx)
	defer cancel()
	err := s.Shutdown(ctx)
	if err != nil {
		err = s.Close() // replies that clients have not read by then are lost
	}
	if served != nil {
		<-served
	}
	return err
}

// debugWriter logs what net/http reports about broken connections at debug level.
type debugWriter struct{ log zerolog.Logger }

func (w debugWriter) Write(p []byte) (int, error) {
	w.log.Debug().Msg(strings.Join(strings.Fields(string(p)), " "))
	return len(p), nil
}
