package evolve

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Signals of a correction by a user.
const (
	SignalReask    = "temporal_reask"          // asked again after a call that ended weak or in an error
	SignalDispatch = "temporal_reask_dispatch" // asked again in other words, for a method that takes free text
)

// Turn is a depth-0 call as the detector sees it.
type Turn struct {
	At       time.Time
	Args     []json.RawMessage
	Kwargs   json.RawMessage
	Troubled bool // the call ended weak or in an error, or a nested call ended weak
}

// maxTokenBytes bounds the part of a turn's arguments that is compared.
const maxTokenBytes = 64 << 10

// Correction reports whether now corrects before, its predecessor in the same session, role and method. It returns the
// signal, or "" for an ordinary call. dispatch is set for methods that take free text, such as ask.
func Correction(before, now Turn, dispatch bool, p agent.CorrectionPolicy) string {
	elapsed := now.At.Sub(before.At)
	if elapsed < 0 || p.WindowSeconds <= 0 || elapsed > time.Duration(p.WindowSeconds)*time.Second {
		return ""
	}
	if !before.Troubled && !dispatch {
		return ""
	}
	same := sameArguments(before, now)
	if !same && Overlap(before, now) < p.MinOverlap {
		return ""
	}
	switch {
	case before.Troubled:
		return SignalReask
	case same:
		return "" // same words to a tool that served: a repeated use, not a correction
	}
	return SignalDispatch
}

func sameArguments(a, b Turn) bool {
	if len(a.Args) != len(b.Args) || !bytes.Equal(orEmpty(a.Kwargs), orEmpty(b.Kwargs)) {
		return false
	}
	for i := range a.Args {
		if !bytes.Equal(a.Args[i], b.Args[i]) {
			return false
		}
	}
	return true
}

// orEmpty treats absent and null keyword arguments as an empty object.
func orEmpty(kwargs json.RawMessage) json.RawMessage {
	if len(kwargs) == 0 || string(kwargs) == "null" {
		return json.RawMessage("{}")
	}
	return kwargs
}

// Overlap returns the share of words that two turns' arguments have in common, from 0 to 1, relative to the turn with
// more words. It is 1 if neither has any words.
func Overlap(a, b Turn) float64 {
	x, y := words(a), words(b)
	if len(x) == 0 && len(y) == 0 {
		return 1
	}
	common := 0
	for w := range x {
		if y[w] {
			common++
		}
	}
	return float64(common) / float64(max(len(x), len(y)))
}

// words returns the set of words, numbers and literals in a turn's arguments, including keys, in lower case.
func words(t Turn) map[string]bool {
	out := map[string]bool{}
	left := maxTokenBytes
	add := func(raw json.RawMessage) {
		if len(raw) > left {
			raw = raw[:left]
		}
		left -= len(raw)
		split := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '.' && r != '-' }
		for w := range strings.FieldsFuncSeq(strings.ToLower(unescaped(raw)), split) {
			if w = strings.Trim(w, ".-"); w != "" {
				out[w] = true
			}
		}
	}
	for _, a := range t.Args {
		add(a)
	}
	add(orEmpty(t.Kwargs))
	return out
}

// unescaped decodes a string argument. It returns anything else unchanged.
func unescaped(raw json.RawMessage) string {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
