package store

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Storage says how many bytes things take, by whose they are. The sums are kept with each write: nothing is read to answer.
type Storage interface {
	// Stored returns what the owner's things take. A store elsewhere may be behind by StoredLag; what this handle deleted counts no more.
	Stored(ctx context.Context, owner string) (Stored, error)
	// ListStored returns the owners who have something, by name, after the name after ("" for the start).
	ListStored(ctx context.Context, after string, limit int) ([]OwnerBytes, error)
}

// StoredLag is how far behind Stored may be.
const StoredLag = time.Second

// Stored is what one owner's things take, beside all others'.
type Stored struct {
	Own    Bytes // of the owner
	All    Bytes // of the namespace, the owner's included
	Others Bytes // of the other namespaces
}

// Kinds of what is stored, each of which has shares of its own.
const (
	KindFiles     = "files"
	KindContexts  = "contexts"  // sessions with their contexts
	KindHistories = "histories" // records, with their large arguments
	KindValues    = "values"    // what is kept of a call for a while: outcome, effects, reply, the prompts of debug
	KindTools     = "tools"     // programs with their fixtures, and contracts of roles; not what is archived
	KindExamples  = "examples"  // with verdicts
)

// Kinds lists them.
func Kinds() []string {
	return []string{KindFiles, KindContexts, KindHistories, KindValues, KindTools, KindExamples}
}

// Bytes is how many bytes something takes, by kind.
type Bytes struct {
	Files     int64 `json:"files"`
	Contexts  int64 `json:"contexts"`
	Histories int64 `json:"histories"`
	Values    int64 `json:"values"`
	Tools     int64 `json:"tools"`
	Examples  int64 `json:"examples"`
}

// Add adds other bytes.
func (b *Bytes) Add(o Bytes) {
	b.Files += o.Files
	b.Contexts += o.Contexts
	b.Histories += o.Histories
	b.Values += o.Values
	b.Tools += o.Tools
	b.Examples += o.Examples
}

// Minus returns what is left without the other bytes.
func (b Bytes) Minus(o Bytes) Bytes {
	b.Add(Bytes{-o.Files, -o.Contexts, -o.Histories, -o.Values, -o.Tools, -o.Examples})
	return b
}

// Of returns the bytes of a kind.
func (b Bytes) Of(kind string) int64 {
	switch kind {
	case KindFiles:
		return b.Files
	case KindContexts:
		return b.Contexts
	case KindHistories:
		return b.Histories
	case KindValues:
		return b.Values
	case KindTools:
		return b.Tools
	}
	return b.Examples
}

// OwnerBytes is what one owner's things take.
type OwnerBytes struct {
	Owner string `json:"owner"`
	Bytes
}

// Sums adds up bytes by owner. The zero value counts none. It is not safe for concurrent use.
type Sums struct {
	All    Bytes
	owners map[string]Bytes
}

// Add adds to what the owner has; "" is agent.LocalOwner.
func (s *Sums) Add(owner string, b Bytes) {
	if b == (Bytes{}) {
		return
	}
	s.All.Add(b)
	owner = cmp.Or(owner, agent.LocalOwner)
	b.Add(s.owners[owner])
	if b == (Bytes{}) {
		delete(s.owners, owner)
		return
	}
	if s.owners == nil {
		s.owners = map[string]Bytes{}
	}
	s.owners[owner] = b
}

// Of returns what the owner has.
func (s *Sums) Of(owner string) Bytes { return s.owners[cmp.Or(owner, agent.LocalOwner)] }

// Owners returns the names of the owners who have something, in no order.
func (s *Sums) Owners() iter.Seq[string] { return maps.Keys(s.owners) }

// Clone returns a copy.
func (s *Sums) Clone() Sums { return Sums{s.All, maps.Clone(s.owners)} }

// List returns the owners who have something, by name.
func (s *Sums) List() []OwnerBytes {
	out := make([]OwnerBytes, 0, len(s.owners))
	for _, owner := range slices.Sorted(maps.Keys(s.owners)) {
		out = append(out, OwnerBytes{owner, s.owners[owner]})
	}
	return out
}

// PageStored selects a page for ListStored.
func PageStored(all []OwnerBytes, after string, limit int) []OwnerBytes {
	all = slices.DeleteFunc(all, func(o OwnerBytes) bool { return o.Owner <= after })
	return all[:min(len(all), max(limit, 0))]
}

// What things take beside their texts: the rest of what is known of them, about.
const (
	fileFixed    = 512
	sessionFixed = 4 << 10 // directory and files of its own
	programFixed = 512
	roleFixed    = 256
	exampleFixed = 256
)

// SessionBytes is what a session takes, without its context.
func SessionBytes(s agent.Session) int64 {
	s.HistorySize, s.Revision, s.UpdatedAt = 0, 0, time.Time{}
	return sessionFixed + int64(len(agent.Encoded(&s)))
}

// ContextBytes is what a context takes.
func ContextBytes(values map[string]json.RawMessage) (n int64) {
	for k, v := range values {
		n += int64(len(k)) + JSONBytes(v)
	}
	return n
}

// ContextGrowth is by how much a change makes a context larger; old returns the value that a key has.
func ContextGrowth(c *agent.ContextChange, old func(key string) (json.RawMessage, bool)) (n int64) {
	if c == nil {
		return 0
	}
	entry := func(key string, v json.RawMessage, has bool) int64 {
		if !has {
			return 0
		}
		return int64(len(key)) + JSONBytes(v)
	}
	next := make(map[string]json.RawMessage, len(c.Set)+len(c.Delete))
	for _, k := range c.Delete {
		next[k] = nil // as ContextChange.Apply does, deletions win
	}
	for k, v := range c.Set {
		if _, gone := next[k]; !gone {
			n += entry(k, v, true)
		}
		next[k] = nil
	}
	for k := range next {
		was, has := old(k)
		n -= entry(k, was, has)
	}
	return n
}

// JSONBytes is the length of a JSON text as documents hold it: without insignificant whitespace, and with <, > and & escaped. So it does not
// depend on whether a text was read back meanwhile.
func JSONBytes(raw json.RawMessage) (n int64) {
	const escaped = 6 // \u003c
	inText := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case !inText && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
		case inText && c == '\\':
			i++
			n += 2
		case c == '<' || c == '>' || c == '&':
			n += escaped
		case c == 0xe2 && i+2 < len(raw) && raw[i+1] == 0x80 && raw[i+2]&^1 == 0xa8: // U+2028, U+2029
			i += 2
			n += escaped
		default:
			if c == '"' {
				inText = !inText
			}
			n++
		}
	}
	return n
}

// FileBytes is what a file takes. A part of a call that lives as long as its session is an argument; any other is a value.
func FileBytes(f *agent.File) Bytes {
	switch {
	case !f.Internal:
		return Bytes{Files: fileFixed + f.Bytes}
	case f.ExpiresAt.IsZero():
		return Bytes{Histories: f.Bytes}
	}
	return Bytes{Values: f.Bytes}
}

// DebugBytes is what a log entry holds that goes with the values.
func DebugBytes(e *agent.LogEntry) int64 {
	n := len(e.SystemPrompt) + len(e.UserPrompt) + len(e.Context)
	for _, note := range e.Notes {
		n += len(note)
	}
	return int64(n)
}

// ArtifactBytes adds what an artifact takes: programs are those of who had them written, fixtures of who made the calls, examples and verdicts
// of who gave them. nil takes nothing.
func ArtifactBytes(a *agent.Artifact, add func(owner string, b Bytes)) {
	if a == nil {
		return
	}
	for _, g := range a.Held() {
		n := int64(programFixed+len(g.Code)) + jsonBytes(g.Facts, g.SolverShape)
		for _, m := range []map[string]string{g.Shapes, g.Outlines} {
			for k, v := range m {
				n += int64(len(k) + len(v))
			}
		}
		for i := range g.ChangedAnswers {
			n += int64(len(agent.Encoded(&g.ChangedAnswers[i])))
		}
		add(g.Owner, Bytes{Tools: n})
		for i := range g.Fixtures {
			f := &g.Fixtures[i]
			add(f.Owner, Bytes{Tools: FixtureBytes(f)})
		}
	}
	for i := range a.Examples {
		x := &a.Examples[i]
		add(x.By, Bytes{Examples: int64(exampleFixed+len(x.Note)) + jsonBytes(x.Args...) + jsonBytes(x.Kwargs,
			x.Context, x.Expect.Value, x.Expect.Schema, x.Effects)})
	}
	for i := range a.Verdicts {
		v := &a.Verdicts[i]
		add(v.By, Bytes{Examples: int64(exampleFixed+len(v.Note)) + jsonBytes(v.Args...) + jsonBytes(v.Kwargs, v.Got,
			v.Expected)})
	}
}

// FixtureBytes is what a fixture takes.
func FixtureBytes(f *agent.Fixture) int64 {
	return jsonBytes(f.Args...) + jsonBytes(f.Kwargs, f.Context, f.Value, f.Effects)
}

// jsonBytes leaves out null: what lacks a value has it once it was read back.
func jsonBytes(texts ...json.RawMessage) (n int64) {
	for _, v := range texts {
		if string(v) != "null" {
			n += JSONBytes(v)
		}
	}
	return n
}
