package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// A palette colours words, or leaves them as they are.
type palette bool

// Styles of a palette: parameters of SGR sequences, in the 16 colours that each terminal has.
const (
	styleGood  = "32"
	styleWarn  = "33"
	styleBad   = "31"
	styleFaint = "2"
	styleBold  = "1"
	styleLive  = "36"
)

func (p palette) paint(style, text string) string {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// status colours a word by what it stands for; other words stay plain.
func (p palette) status(word, text string) string {
	switch word {
	case "ok", "equal":
		return p.paint(styleGood, text)
	case "warn", "running":
		return p.paint(styleWarn, text)
	case "error", "fail", "differs":
		return p.paint(styleBad, text)
	}
	return text
}

// terminal returns the file behind w where it is a terminal that obeys escape sequences. An unset TERM is taken as one that
// does not: nothing is known of it.
func (sh Shell) terminal(w any) (*os.File, bool) {
	f, ok := w.(*os.File)
	if kind, _ := sh.Env("TERM"); !ok || kind == "" || kind == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return f, true
}

// colours decides, for every command, whether text for w is coloured: on terminals only, and never with NO_COLOR set to
// anything (https://no-color.org).
func (sh Shell) colours(w io.Writer) palette {
	if off, _ := sh.Env("NO_COLOR"); off != "" {
		return false
	}
	_, ok := sh.terminal(w)
	return palette(ok)
}
