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

// Storage returns how many bytes each owner's data takes. The sums are updated with each write, so answering reads no
// data.
type Storage interface {
	// Stored returns the bytes of the owner's data. In a remote store they may lag by StoredLag, except that deletions
	// through this handle count at once.
	Stored(ctx context.Context, owner string) (Stored, error)
	// ListStored returns at most limit owners with data, sorted by name, starting after the name after; "" means the
	// start.
	ListStored(ctx context.Context, after string, limit int) ([]OwnerBytes, error)
}

// StoredLag is the maximum delay of Stored.
const StoredLag = time.Second

// Stored compares the bytes of one owner with those of everybody else.
type Stored struct {
	Own    Bytes // of the owner
	All    Bytes // of the namespace, the owner's included
	Others Bytes // of the other namespaces
}

// Kinds of stored data. Each has its own share of a limit.
const (
	KindFiles     = "files"
	KindContexts  = "contexts"  // sessions with their contexts
	KindHistories = "histories" // records with their large arguments
	// the part of a call that is kept for a limited time: outcome, effects, reply and debug prompts
	KindValues   = "values"
	KindTools    = "tools"    // programs with their fixtures, and contracts of roles, without archived ones
	KindExamples = "examples" // including verdicts
)

// Kinds returns all kinds.
func Kinds() []string {
	return []string{KindFiles, KindContexts, KindHistories, KindValues, KindTools, KindExamples}
}

// Bytes is a number of bytes by kind.
type Bytes struct {
	Files     int64 `json:"files"`
	Contexts  int64 `json:"contexts"`
	Histories int64 `json:"histories"`
	Values    int64 `json:"values"`
	Tools     int64 `json:"tools"`
	Examples  int64 `json:"examples"`
}

// Add adds o to b.
func (b *Bytes) Add(o Bytes) {
	b.Files += o.Files
	b.Contexts += o.Contexts
	b.Histories += o.Histories
	b.Values += o.Values
	b.Tools += o.Tools
	b.Examples += o.Examples
}

// Minus returns b less o.
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

// OwnerBytes is the bytes of one owner's data.
type OwnerBytes struct {
	Owner string `json:"owner"`
	Bytes
}

// Sums adds up bytes by owner. The zero value is empty. It is not safe for concurrent use.
type Sums struct {
	All    Bytes
	owners map[string]Bytes
}

// Add adds b to the owner's sum. The owner "" means agent.LocalOwner.
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

// Of returns the owner's sum.
func (s *Sums) Of(owner string) Bytes { return s.owners[cmp.Or(owner, agent.LocalOwner)] }

// Owners returns the names of the owners with data, in no particular order.
func (s *Sums) Owners() iter.Seq[string] { return maps.Keys(s.owners) }

// Clone returns a copy.
func (s *Sums) Clone() Sums { return Sums{s.All, maps.Clone(s.owners)} }

// List returns the owners with data, sorted by name.
func (s *Sums) List() []OwnerBytes {
	out := make([]OwnerBytes, 0, len(s.owners))
	for _, owner := range slices.Sorted(maps.Keys(s.owners)) {
		out = append(out, OwnerBytes{owner, s.owners[owner]})
	}
	return out
}

// PageStored returns the page of all for ListStored. It changes all.
func PageStored(all []OwnerBytes, after string, limit int) []OwnerBytes {
	all = slices.DeleteFunc(all, func(o OwnerBytes) bool { return o.Owner <= after })
	return all[:min(len(all), max(limit, 0))]
}

// Estimated overhead of each item beyond its text, in bytes.
const (
	fileFixed    = 512
	sessionFixed = 4 << 10 // a session has its own directory and files
	programFixed = 512
	roleFixed    = 256
	exampleFixed = 256
)

// SessionBytes returns the bytes of a session without its context. It leaves out fields that change with each call.
func SessionBytes(s agent.Session) int64 {
	s.HistorySize, s.Revision, s.UpdatedAt = 0, 0, time.Time{}
	return sessionFixed + int64(len(agent.Encoded(&s)))
}

// ContextBytes returns the bytes of a context.
func ContextBytes(values map[string]json.RawMessage) (n int64) {
	for k, v := range values {
		n += int64(len(k)) + JSONBytes(v)
	}
	return n
}

// ContextGrowth returns how many bytes a change adds to a context. old returns the current value of a key.
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

// JSONBytes returns the length of a JSON text as stored documents contain it: without insignificant whitespace, and
// with <, > and & escaped. The result stays the same when the text is stored and read back.
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

// FileBytes returns the bytes of a file. An internal file without expiry is a call's argument and counts with the
// histories; other internal files count with the values.
func FileBytes(f *agent.File) Bytes {
	switch {
	case !f.Internal:
		return Bytes{Files: fileFixed + f.Bytes}
	case f.ExpiresAt.IsZero():
		return Bytes{Histories: f.Bytes}
	}
	return Bytes{Values: f.Bytes}
}

// DebugBytes returns the bytes in a log entry that expire with the call's values.
func DebugBytes(e *agent.LogEntry) int64 {
	n := len(e.SystemPrompt) + len(e.UserPrompt) + len(e.Context)
	for _, note := range e.Notes {
		n += len(note)
	}
	return int64(n)
}

// ArtifactBytes calls add with the bytes of an artifact. Programs count for the owner who had them written, fixtures
// for the owner of the call, examples and verdicts for whoever gave them. A nil artifact has none.
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

// FixtureBytes returns the bytes of a fixture.
func FixtureBytes(f *agent.Fixture) int64 {
	return jsonBytes(f.Args...) + jsonBytes(f.Kwargs, f.Context, f.Value, f.Effects)
}

// jsonBytes adds up texts. It leaves out null, because a missing value is null once it has been read back.
func jsonBytes(texts ...json.RawMessage) (n int64) {
	for _, v := range texts {
		if string(v) != "null" {
			n += JSONBytes(v)
		}
	}
	return n
}
