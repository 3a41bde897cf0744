package cli

import (
	"io"
	"time"

	"github.com/rs/zerolog"
)

// newLogger returns the daemon's logger: JSON lines, or text on a terminal.
func newLogger(o Options, sh Shell) zerolog.Logger {
	level, err := zerolog.ParseLevel(o.LogLevel)
	if err != nil {
		level = zerolog.InfoLevel // unreachable: the options are validated
	}
	_, terminal := sh.terminal(sh.Stderr)
	var w io.Writer = sh.Stderr
	if o.LogFormat == "text" || o.LogFormat == "auto" && terminal {
		w = zerolog.ConsoleWriter{Out: sh.Stderr, TimeFormat: time.TimeOnly, NoColor: !bool(sh.colours(sh.Stderr))}
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}
