// Package logs has the default loggers of packages log and log/slog write to the notes of the call, without times, and
// gives the records of all other loggers of package slog the time of the run.
package logs

import (
	"bytes"
	"context"
	"log"
	"log/slog"

	"github.com/recurgentd/recurgentd/internal/runtime/native/support"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// standard is the logger of package slog at the start of the process, which writes by package log.
var standard = slog.Default()

func init() { support.OnRun(begin) }

// begin sets the default loggers as every run finds them.
func begin(call *recurgent.Call) {
	slog.SetDefault(standard)
	slog.SetLogLoggerLevel(slog.LevelInfo)
	log.SetOutput(notes{call})
	log.SetFlags(0)
	log.SetPrefix("")
}

// notes writes each line to the notes of a call.
type notes struct{ call *recurgent.Call }

func (n notes) Write(p []byte) (int, error) {
	n.call.Log("%s", bytes.TrimSuffix(p, []byte("\n")))
	return len(p), nil
}

// timed is a handler that gives each record the time of the run.
type timed struct{ slog.Handler }

func (t timed) Handle(ctx context.Context, r slog.Record) error {
	r.Time = support.Now()
	return t.Handler.Handle(ctx, r)
}

func (t timed) WithAttrs(attrs []slog.Attr) slog.Handler { return timed{t.Handler.WithAttrs(attrs)} }

func (t timed) WithGroup(name string) slog.Handler { return timed{t.Handler.WithGroup(name)} }

// New replaces slog.New.
func New(h slog.Handler) *slog.Logger {
	if h == nil {
		return slog.New(h) // panics
	}
	return slog.New(timed{h})
}

// NewLogLogger replaces slog.NewLogLogger.
func NewLogLogger(h slog.Handler, level slog.Level) *log.Logger {
	return slog.NewLogLogger(timed{h}, level)
}
