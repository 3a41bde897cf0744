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

// largeValue is how many bytes an argument, a value or a reply may have to stand in the journal and the logs itself. A larger one is kept as a
// file of its call, to which they refer.
const largeValue = 256 << 10

// partPrefix begins the ids of such files: no client can refer to one before it is there.
const partPrefix = "part"

// Inside returns the store with large arguments and values of calls kept as files. What it returns of a call is as it was committed, except that
// lists of calls show the references. Arguments are kept as long as their session, values as long as the policy says.
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

// likePart reports whether a value looks like a reference to a part. One that a client or a program gave becomes a part itself, so that on
// reading it is not taken for one of ours.
func likePart(value json.RawMessage) bool {
	const longest = 128 // of a reference
	return len(value) <= longest && bytes.HasPrefix(value, partStart)
}

// large reports whether something in the commit is, or has to be treated so.
func large(c *store.CallCommit) bool {
	parted := func(v json.RawMessage) bool { return len(v) > largeValue || likePart(v) }
	return parted(c.Outcome.Value) || parted(c.Reply) || // a content is the value
		max(len(c.Record.Kwargs), len(c.Log.Kwargs), len(c.Log.ProgramKwargs)) > largeValue ||
		slices.ContainsFunc(c.Record.Args, parted) || slices.ContainsFunc(c.Log.ProgramArgs, parted)
}

// CommitCall is part of store.Namespace.
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
	whole := c.Log
	c.Record.Seq, c.Log = short.Record.Seq, short.Log
	c.Log.Args, c.Log.Kwargs, c.Log.ProgramArgs, c.Log.ProgramKwargs = whole.Args, whole.Kwargs, whole.ProgramArgs,
		whole.ProgramKwargs
	return nil
}

// A mover moves large parts of one commit into files.
type mover struct {
	n     store.Namespace
	file  agent.File // what the files have in common
	files []store.NewFile
	moved []movedPart // record and log entry share files
}

// A movedPart is a value that has a file, and the reference in its place. There are few: a body has a bounded size.
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

// short returns the commit with references, and with the files.
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
		// an hour for the call itself
		m.file.ExpiresAt = m.file.CreatedAt.Add(max(time.Duration(hours)*time.Hour, store.KeyLife) + time.Hour)
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

func (m *mover) list(values []json.RawMessage) (out []json.RawMessage, err error) {
	out = slices.Clone(values) // of no arguments stays none, not gone
	for i, v := range values {
		if out[i], err = m.move(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

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

// move writes a large value, or one that looks like a part, into a file and returns its reference; any other value it returns as it is.
func (m *mover) move(value json.RawMessage) (json.RawMessage, error) {
	if len(value) <= largeValue && !likePart(value) {
		return value, nil
	}
	for _, known := range m.moved {
		if bytes.Equal(known.value, value) { // nearly always the same bytes in memory, which are not compared
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

// discard removes what the store has not kept.
func (m *mover) discard() {
	for _, f := range m.files {
		f.Draft.Discard()
	}
}
