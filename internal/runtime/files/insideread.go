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

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

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
