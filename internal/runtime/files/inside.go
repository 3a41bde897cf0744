package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Call implements store.Namespace. Arguments whose parts are gone stay references. If the value's part is gone or
// damaged, Outcome is nil.
func (n *insideNamespace) Call(ctx context.Context, callID string) (store.Call, error) {
	c, err := n.Namespace.Call(ctx, callID)
	if err != nil {
		return c, err
	}
	r := reader{n.Namespace, ctx, callID}
	for _, list := range []*[]json.RawMessage{&c.Log.Args, &c.Log.ProgramArgs} {
		*list = slices.Clone(*list) // keeps an empty list empty, not nil
		for i, v := range *list {
			if (*list)[i], err = r.expand(v); err != nil {
				return c, err
			}
		}
	}
	for _, object := range []*json.RawMessage{&c.Log.Kwargs, &c.Log.ProgramKwargs} {
		if *object, err = r.expand(*object); err != nil {
			return c, err
		}
	}
	if c.Outcome == nil {
		return c, nil
	}
	o := *c.Outcome
	if o.Value, err = r.whole(o.Value); errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) {
		c.Outcome = nil // expired or lost
		return c, nil
	}
	c.Outcome = &o
	return c, err
}

// Replay implements store.Namespace.
func (n *insideNamespace) Replay(ctx context.Context, key string) (store.Idempotent, error) {
	k, err := n.Namespace.Replay(ctx, key)
	if err == nil {
		k.Reply, err = (reader{n.Namespace, ctx, k.CallID}).whole(k.Reply)
	}
	return k, err
}

// Content implements store.Namespace.
func (n *insideNamespace) Content(ctx context.Context, ref string) (json.RawMessage, error) {
	v, err := n.Namespace.Content(ctx, ref)
	if err != nil {
		return nil, err
	}
	return (reader{n.Namespace, ctx, ""}).whole(v)
}

// A reader reads the large values of a call. It is used for one request.
type reader struct {
	n      store.Namespace
	ctx    context.Context // of the request; a reader does not outlive it
	callID string          // "" accepts the parts of any call
}

// whole returns the value behind a reference to a part of the call. Any other value it returns unchanged. Errors
// include store.ErrNotFound and store.ErrDamaged.
func (r reader) whole(value json.RawMessage) (json.RawMessage, error) {
	if !likePart(value) {
		return value, nil
	}
	named := agent.FileRefs(value)
	if len(named) != 1 {
		return value, nil
	}
	f, err := r.n.File(r.ctx, named[0])
	if err != nil {
		return nil, err
	}
	if !f.Internal || r.callID != "" && f.CallID != r.callID { // a reference given by the caller or the program
		return value, nil
	}
	from, err := r.n.OpenFile(r.ctx, f.ID)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	data, err := io.ReadAll(io.NewSectionReader(from, 0, f.Bytes))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); f.SHA256 != "" && hex.EncodeToString(sum[:]) != f.SHA256 {
		return nil, fmt.Errorf("%w: file %s", store.ErrDamaged, f.ID)
	}
	return data, nil
}

// partStart begins every reference to a part. It cannot occur inside a JSON string, where its quotes would be escaped.
var partStart = []byte(`{"` + agent.FileKey + `":"` + partPrefix + `_`)

// expand replaces every reference within raw by its value. A reference whose part is gone or damaged stays.
func (r reader) expand(raw json.RawMessage) (json.RawMessage, error) {
	var out []byte
	rest := raw
	for {
		at := bytes.Index(rest, partStart)
		if at < 0 {
			break
		}
		end := bytes.IndexByte(rest[at:], '}')
		if end < 0 {
			break
		}
		ref := rest[at : at+end+1]
		value, err := r.whole(json.RawMessage(ref))
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) {
			value, err = json.RawMessage(ref), nil
		}
		if err != nil {
			return nil, err
		}
		out = append(append(out, rest[:at]...), value...)
		rest = rest[at+end+1:]
	}
	if out == nil {
		return raw, nil
	}
	return append(out, rest...), nil
}

// History implements store.Namespace. The page ends early if large arguments make it exceed q.Bytes.
func (n *insideNamespace) History(ctx context.Context, sessionID string,
	q store.HistoryQuery) (store.HistoryPage, error) {
	page, err := n.Namespace.History(ctx, sessionID, q)
	if err != nil {
		return page, err
	}
	size := 0
	for i, raw := range page.Records {
		if !bytes.Contains(raw, partStart) {
			size += len(raw)
			continue
		}
		if page.Records, err = n.grown(ctx, page.Records, i); err != nil {
			return page, err
		}
		if size += len(page.Records[i]); q.Bytes > 0 && size > q.Bytes && i > 0 {
			page.Records = page.Records[:i]
			page.Next, err = seqOf(page.Records[i-1])
			return page, err
		}
	}
	return page, nil
}

// grown returns a copy of the records with record i expanded. The store's records are shared and must not be changed.
func (n *insideNamespace) grown(ctx context.Context, records []json.RawMessage, i int) ([]json.RawMessage, error) {
	var named struct {
		CallID string `json:"call_id"`
	}
	if err := json.Unmarshal(records[i], &named); err != nil {
		return records, err
	}
	whole, err := (reader{n.Namespace, ctx, named.CallID}).expand(records[i])
	if err != nil {
		return records, err
	}
	out := append([]json.RawMessage(nil), records...)
	out[i] = whole
	return out, nil
}

func seqOf(record json.RawMessage) (int, error) {
	var named struct {
		Seq int `json:"seq"`
	}
	return named.Seq, json.Unmarshal(record, &named)
}
