package main

import (
	"io"
	stdlog "log"
	"os"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"
)

// newLogger makes the daemon's log: JSON lines, or text where a person reads along.
func newLogger(o Options, sh shell) zerolog.Logger {
	level, err := zerolog.ParseLevel(o.LogLevel)
	if err != nil {
		level = zerolog.InfoLevel // not reached: the options are validated
	}
	f, isFile := sh.stderr.(*os.File)
	terminal := isFile && term.IsTerminal(int(f.Fd()))
	var w io.Writer = sh.stderr
	if o.LogFormat == "text" || o.LogFormat == "auto" && terminal {
		noColor, _ := sh.env("NO_COLOR")
		w = zerolog.ConsoleWriter{Out: sh.stderr, TimeFormat: time.TimeOnly, NoColor: noColor != "" || !terminal}
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}

// newServerLog takes what net/http says of broken connections; nobody needs to act on it.
func newServerLog(log zerolog.Logger) *stdlog.Logger {
	return stdlog.New(debugWriter{log}, "", 0)
}

type debugWriter struct{ log zerolog.Logger }

func (w debugWriter) Write(p []byte) (int, error) {
	w.log.Debug().Msg(oneLine(string(p)))
	return len(p), nil
}
