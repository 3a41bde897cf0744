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

// Call is part of store.Namespace.
func (n *insideNamespace) Call(ctx context.Context, callID string) (store.Call, error) {
	c, err := n.Namespace.Call(ctx, callID)
	if err != nil {
		return c, err
	}
	r := reader{n.Namespace, ctx, callID}
	for _, list := range []*[]json.RawMessage{&c.Log.Args, &c.Log.ProgramArgs} {
		*list = slices.Clone(*list) // of no arguments stays none, not gone
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
		c.Outcome = nil // its time is over, or it is lost
		return c, nil
	}
	c.Outcome = &o
	return c, err
}

// Replay is part of store.Namespace.
func (n *insideNamespace) Replay(ctx context.Context, key string) (store.Idempotent, error) {
	k, err := n.Namespace.Replay(ctx, key)
	if err == nil {
		k.Reply, err = (reader{n.Namespace, ctx, k.CallID}).whole(k.Reply)
	}
	return k, err
}

// Content is part of store.Namespace.
func (n *insideNamespace) Content(ctx context.Context, ref string) (json.RawMessage, error) {
	v, err := n.Namespace.Content(ctx, ref)
	if err != nil {
		return nil, err
	}
	return (reader{n.Namespace, ctx, ""}).whole(v)
}

// A reader reads the large values of a call.
type reader struct {
	n      store.Namespace
	ctx    context.Context // of one question, which this is all the state of
	callID string          // "" for whichever
}

// whole returns the value that a reference to a part of the call stands for; any other value it returns as it is. store.ErrNotFound.
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
	if !f.Internal || r.callID != "" && f.CallID != r.callID { // a reference that the caller or the program gave
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

// partStart is how a reference to a part begins. Within a text of JSON its quotes would be escaped.
var partStart = []byte(`{"` + agent.FileKey + `":"` + partPrefix + `_`)

// expand is whole for every reference within a text of JSON. One whose part is gone or damaged stays.
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

// History is part of store.Namespace. Where large arguments make the page longer than its bound, it ends early.
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

// grown returns the records with the one at that place whole. Those of the store are shared and stay as they are.
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
