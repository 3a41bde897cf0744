package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/store"
)

// largeValue is the largest size in bytes of an argument, a value or a reply that is stored inline in the journal and
// the logs. A larger one is stored as a file of its call and replaced by a reference.
const largeValue = 256 << 10

// partPrefix is the prefix of the ids of such files. Ids are random, so a client cannot refer to a part before it
// exists.
const partPrefix = "part"

// Inside returns a store that keeps large arguments and values of calls as files. Calls read back as they were
// committed, except that lists of calls show references. Arguments are kept as long as their session, values as long as
// the policy determines.
func Inside(s store.Store) store.Store {
	if x, ok := s.(store.Exporter); ok {
		return &exportingInside{inside{s}, x}
	}
	return &inside{s}
}

type inside struct{ store.Store }

type exportingInside struct {
	inside
	store.Exporter
}

func (s *inside) Namespace(name agent.Namespace) (store.Namespace, error) {
	n, err := s.Store.Namespace(name)
	if err != nil {
		return nil, err
	}
	return &insideNamespace{n}, nil
}

type insideNamespace struct{ store.Namespace }

// likePart reports whether a value looks like a reference to a part. Such a value from a client or a program is itself
// moved to a part, so that it is not resolved on reading.
func likePart(value json.RawMessage) bool {
	const longest = 128 // of a reference
	return len(value) <= longest && bytes.HasPrefix(value, partStart)
}

// large reports whether the commit has anything to move to a part.
func large(c *store.CallCommit) bool {
	parted := func(v json.RawMessage) bool { return len(v) > largeValue || likePart(v) }
	return parted(c.Outcome.Value) || parted(c.Reply) || // a content equals the value
		max(len(c.Record.Kwargs), len(c.Log.Kwargs), len(c.Log.ProgramKwargs)) > largeValue ||
		slices.ContainsFunc(c.Record.Args, parted) || slices.ContainsFunc(c.Log.ProgramArgs, parted)
}

// CommitCall implements store.Namespace. It sets c.Record.Seq and the log fields that the store fills in, and leaves
// the large values in c.
func (n *insideNamespace) CommitCall(ctx context.Context, c *store.CallCommit) error {
	if c.SessionID == "" || !large(c) {
		return n.Namespace.CommitCall(ctx, c)
	}
	m, err := n.mover(ctx, c)
	if err != nil {
		return err
	}
	defer m.discard()
	short, err := m.short(ctx, c)
	if err != nil {
		return err
	}
	if err := n.Namespace.CommitCall(ctx, short); err != nil {
		return err
	}
	// The caller goes on using the commit, so it gets the fields that the store has set but keeps its large values.
	whole := c.Log
	c.Record.Seq, c.Log = short.Record.Seq, short.Log
	c.Log.Args, c.Log.Kwargs, c.Log.ProgramArgs, c.Log.ProgramKwargs = whole.Args, whole.Kwargs, whole.ProgramArgs,
		whole.ProgramKwargs
	return nil
}

// A mover moves the large parts of one commit to files.
type mover struct {
	n     store.Namespace
	file  agent.File // the fields that all files share
	files []store.NewFile
	moved []movedPart // parts moved so far: record and log entry share files
}

// A movedPart pairs a moved value with its reference. There are few, because a request body is bounded.
type movedPart struct{ value, ref json.RawMessage }

func (n *insideNamespace) mover(ctx context.Context, c *store.CallCommit) (*mover, error) {
	s, err := n.Session(ctx, c.SessionID)
	if err != nil {
		return nil, err
	}
	file := agent.File{Internal: true, MediaType: "application/json", Owner: s.Owner, SessionID: c.SessionID,
		CallID: c.Log.CallID, CreatedAt: ids.Time(c.Log.CallID)}
	return &mover{n: n.Namespace, file: file}, nil
}

// short returns a copy of the commit with references in place of large parts, and with their files.
func (m *mover) short(ctx context.Context, c *store.CallCommit) (*store.CallCommit, error) {
	s := *c
	p, _, err := m.n.Policy(ctx)
	if err != nil {
		return nil, err
	}
	for _, list := range []*[]json.RawMessage{&s.Record.Args, &s.Log.Args, &s.Log.ProgramArgs} {
		if *list, err = m.list(*list); err != nil {
			return nil, err
		}
	}
	for _, object := range []*json.RawMessage{&s.Record.Kwargs, &s.Log.Kwargs, &s.Log.ProgramKwargs} {
		if *object, err = m.members(*object); err != nil {
			return nil, err
		}
	}
	if hours := p.Retention.ValueHours; hours > 0 {
		// Add an hour for the duration of the call itself.
		m.file.ExpiresAt = m.file.CreatedAt.Add(max(time.Duration(hours)*time.Hour, store.KeyLife) + time.Hour)
		// A value gets a file of its own even if it equals an argument, because it expires earlier.
		m.moved = nil
	}
	values := []*json.RawMessage{&s.Outcome.Value, &s.Reply}
	if c.Content != nil {
		kept := *c.Content
		s.Content = &kept
		values = append(values, &kept.Value)
	}
	for _, value := range values {
		if *value, err = m.move(*value); err != nil {
			return nil, err
		}
	}
	s.Files = append(append([]store.NewFile{}, c.Files...), m.files...)
	return &s, nil
}

// list returns the values with large ones moved to files.
func (m *mover) list(values []json.RawMessage) (out []json.RawMessage, err error) {
	out = slices.Clone(values) // keeps an empty list empty, not nil
	for i, v := range values {
		if out[i], err = m.move(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// members returns the object with its large members moved to files. Only a large object can have a large member.
func (m *mover) members(object json.RawMessage) (json.RawMessage, error) {
	if len(object) <= largeValue {
		return object, nil
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, err
	}
	for name, v := range all {
		ref, err := m.move(v)
		if err != nil {
			return nil, err
		}
		all[name] = ref
	}
	return json.Marshal(all)
}

// move writes a large value, or one that looks like a part, to a file and returns the reference. Any other value it
// returns unchanged.
func (m *mover) move(value json.RawMessage) (json.RawMessage, error) {
	if len(value) <= largeValue && !likePart(value) {
		return value, nil
	}
	for _, known := range m.moved {
		if bytes.Equal(known.value, value) { // fast: nearly always the same memory
			return known.ref, nil
		}
	}
	d, err := m.n.NewDraft()
	if err != nil {
		return nil, err
	}
	f := m.file
	sum := sha256.Sum256(value)
	f.ID, f.Bytes, f.SHA256 = ids.New(partPrefix), int64(len(value)), hex.EncodeToString(sum[:])
	m.files = append(m.files, store.NewFile{File: f, Draft: d})
	if _, err := d.Write(value); err != nil {
		return nil, fmt.Errorf("keep a large value of call %s: %w", f.CallID, err)
	}
	ref := agent.FileRef(f.ID)
	m.moved = append(m.moved, movedPart{value, ref})
	return ref, nil
}

// discard discards the drafts. Files that the store has kept stay.
func (m *mover) discard() {
	for _, f := range m.files {
		f.Draft.Discard()
	}
}
