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

// A Fit says where a call's arguments do not fit an interface. The zero value says that they fit, or that nothing is known.
type Fit struct {
	Missing []string // required parameters that the call lacks
	Surplus int      // positional arguments beyond the parameters
	Unknown []string // keywords without a parameter, sorted
}

// OK reports whether the arguments fit.
func (t *Fit) OK() bool { return len(t.Missing) == 0 && !t.Beyond() }

// Beyond reports whether the call gives what no parameter takes.
func (t *Fit) Beyond() bool { return t.Surplus > 0 || len(t.Unknown) > 0 }

// Fit compares the arguments of a call, args of them positional, with the parameters. A null is an argument. An open interface takes all
// keywords and positional arguments, and a keyword that it does not list may be any of its parameters. Positional arguments that fit cost no
// memory.
func (f *Interface) Fit(args int, kwargs json.RawMessage) (t Fit) {
	if f == nil {
		return t
	}
	var given uint64 // bit i: by name, the parameter at place i
	if len(kwargs) > len("{}") {
		given, t.Unknown = f.named(kwargs)
	}
	places, guess := args, f.Open && len(t.Unknown) > 0
	for i := range f.Parameters {
		p := &f.Parameters[i]
		if p.Required && i >= places && given&(1<<i) == 0 && !guess {
			t.Missing = append(t.Missing, p.Name)
		}
		if p.Variadic { // what stands behind it is read by name only
			places, args = 0, 0
		}
	}
	if t.Surplus = max(0, args-len(f.Parameters)); f.Open {
		t.Surplus, t.Unknown = 0, nil
	}
	return t
}

// named returns which parameters keywords give, as bits, and the keywords that give none, sorted.
func (f *Interface) named(kwargs json.RawMessage) (given uint64, others []string) {
	rawjson.Members(kwargs, func(name string, _ []byte) {
		if _, at := f.Parameter(name); at >= 0 {
			given |= 1 << at
		} else {
			others = append(others, name)
		}
	})
	slices.Sort(others)
	return given, slices.Compact(others)
}

// Binds reports whether the interface was declared by who wrote the program: then a call that does not fit it is refused before the program runs.
// What was inferred binds nobody.
func (f *Interface) Binds() bool { return f != nil && f.Origin == OriginDeclared }

// String describes what does not fit.
func (t *Fit) String() string {
	var out []string
	if len(t.Missing) > 0 {
		out = append(out, "missing: "+strings.Join(t.Missing, ", "))
	}
	if t.Surplus > 0 {
		out = append(out, fmt.Sprintf("positional arguments too many: %d", t.Surplus))
	}
	if len(t.Unknown) > 0 {
		out = append(out, "unknown keywords: "+strings.Join(t.Unknown, ", "))
	}
	return strings.Join(out, "; ")
}

// maxNeedless is of how many shapes of arguments a generation remembers that it need not read them. From then on no shape is tried any more.
const maxNeedless = 16

// ShapeOfArguments identifies how a call gives arguments: how many by position, and the names of the others.
func ShapeOfArguments(args int, kwargs json.RawMessage) string {
	sum := sha256.Sum256(Encoded([]any{args, Keywords(kwargs)}))
	return hex.EncodeToString(sum[:8])
}

// Ignores reports whether the program, which reads no arguments, was found to need none of the shape of these.
func (g *Generation) Ignores(args int, kwargs json.RawMessage) bool {
	return len(g.Needless) >= maxNeedless || len(g.Needless) > 0 &&
		slices.Contains(g.Needless, ShapeOfArguments(args, kwargs))
}

// ignore notes that a generation ("" is the current one) need not read arguments of that shape.
func (a *Artifact) ignore(generation, shape string) {
	if g := a.change(generation); g != nil && len(g.Needless) < maxNeedless && !slices.Contains(g.Needless, shape) {
		g.Needless = append(slices.Clip(g.Needless), shape)
	}
}
