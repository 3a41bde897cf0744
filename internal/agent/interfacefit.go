package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// A Fit describes where a call's arguments do not fit an interface. The zero value means that they fit, or that nothing
// is known.
type Fit struct {
	Missing []string // required parameters that the call lacks
	// Skipped lists optional parameters without a default that the call leaves out, although it gives a later one that
	// the program reads by position only.
	Skipped []string
	Twice   []string // parameters that the call gives more than once: by position and by name, or by two names
	Surplus int      // positional arguments beyond the parameters
	Unknown []string // keywords without a parameter, sorted
}

// OK reports whether the arguments fit.
func (t *Fit) OK() bool {
	return len(t.Missing) == 0 && len(t.Skipped) == 0 && len(t.Twice) == 0 && !t.Beyond()
}

// Beyond reports whether the call gives arguments that no parameter takes.
func (t *Fit) Beyond() bool { return t.Surplus > 0 || len(t.Unknown) > 0 }

// Fit compares a call's arguments with the parameters. args is the number of positional arguments. A null counts as an
// argument. An open interface takes any keywords, and a keyword that it does not list may stand for any parameter. If
// it was inferred, it also takes any positional arguments. Fit does not allocate for positional arguments that fit.
func (f *Interface) Fit(args int, kwargs json.RawMessage) (t Fit) {
	if f == nil {
		return t
	}
	var given, twice uint64 // bit i: parameter i is given by name
	if len(kwargs) > len("{}") {
		given, twice, t.Unknown = f.named(kwargs)
	}
	// An unlisted keyword of an open interface may stand for any required parameter, so none counts as missing.
	places, guess, surplus := args, f.Open && len(t.Unknown) > 0, args-len(f.Parameters)
	for i := range f.Parameters {
		p := &f.Parameters[i]
		byPlace, byName := i < places, given&(1<<i) != 0
		if p.Required && !byPlace && !byName && !guess {
			t.Missing = append(t.Missing, p.Name)
		}
		if byPlace && byName || twice&(1<<i) != 0 {
			t.Twice = append(t.Twice, p.Name)
		}
		if p.Variadic { // parameters after it are read by name only
			places, surplus = 0, 0
		}
	}
	if given != 0 && !f.Open {
		t.Skipped = f.skipped(args, given)
	}
	if f.Open {
		t.Unknown = nil
	}
	if !f.Open || f.Binds() {
		t.Surplus = max(0, surplus)
	}
	return t
}

// skipped returns the optional parameters that the call leaves out before one that it gives by name and that the
// program reads by position only. Their places cannot be filled without a value for them.
func (f *Interface) skipped(args int, given uint64) (out []string) {
	last := 0
	for i := range f.Parameters {
		if given&(1<<i) != 0 && f.Parameters[i].ReadBy == readByPosition {
			last = i
		}
	}
	for i := args; i < last; i++ {
		if p := &f.Parameters[i]; given&(1<<i) == 0 && !p.Required && p.Default == nil && p.Description != notRead {
			out = append(out, p.Name)
		}
	}
	return out
}

// named returns the parameters given by keywords and those given by more than one, as bit sets, and the other keywords,
// sorted.
func (f *Interface) named(kwargs json.RawMessage) (given, twice uint64, others []string) {
	rawjson.Members(kwargs, func(name string, _ []byte) {
		if _, at := f.Parameter(name); at >= 0 {
			twice |= given & (1 << at)
			given |= 1 << at
		} else {
			others = append(others, name)
		}
	})
	slices.Sort(others)
	return given, twice, slices.Compact(others)
}

// Binds reports whether the author of the program declared the interface. A call that does not fit a declared interface
// is refused before the program runs. An inferred one is not enforced.
func (f *Interface) Binds() bool { return f != nil && f.Origin == OriginDeclared }

// String describes what does not fit.
func (t *Fit) String() string {
	var out []string
	if len(t.Missing) > 0 {
		out = append(out, "missing: "+strings.Join(t.Missing, ", "))
	}
	if len(t.Skipped) > 0 {
		out = append(out, "left out before a parameter that is read by its position: "+strings.Join(t.Skipped, ", "))
	}
	if len(t.Twice) > 0 {
		out = append(out, "given twice: "+strings.Join(t.Twice, ", "))
	}
	if t.Surplus > 0 {
		out = append(out, fmt.Sprintf("positional arguments too many: %d", t.Surplus))
	}
	if len(t.Unknown) > 0 {
		out = append(out, "unknown keywords: "+strings.Join(t.Unknown, ", "))
	}
	return strings.Join(out, "; ")
}

// maxNeedless is the number of argument shapes remembered as not needed by a generation. After that no further shape is
// tried.
const maxNeedless = 16

// ShapeOfArguments identifies how a call gives its arguments: the number of positional ones and the names of the
// others.
func ShapeOfArguments(args int, kwargs json.RawMessage) string {
	sum := sha256.Sum256(Encoded([]any{args, Keywords(kwargs)}))
	return hex.EncodeToString(sum[:8])
}

// Ignores reports whether the program, which reads no arguments, is known not to need arguments of this shape.
func (g *Generation) Ignores(args int, kwargs json.RawMessage) bool {
	return len(g.Needless) >= maxNeedless || len(g.Needless) > 0 &&
		slices.Contains(g.Needless, ShapeOfArguments(args, kwargs))
}

// ignore records that a generation ("" means the current one) need not read arguments of that shape.
func (a *Artifact) ignore(generation, shape string) {
	if g := a.change(generation); g != nil && len(g.Needless) < maxNeedless && !slices.Contains(g.Needless, shape) {
		g.Needless = append(slices.Clip(g.Needless), shape)
	}
}
