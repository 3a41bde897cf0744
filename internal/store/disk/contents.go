package disk

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/store"
)

// contents is the part that keeps results for follow-up calls.
type contents struct {
	n *namespace

	kept store.Contents // guarded by shared.mu, as is doc
	doc  held
}

// contentDoc is content.json.
type contentDoc struct {
	head
	Entries []store.Kept `json:"entries"` // least recently used first
}

// text encodes the document with one entry per line. Indenting megabytes of results would cost more than storing them.
func (d contentDoc) text() ([]byte, error) {
	size := 64
	for i := range d.Entries {
		size += 128 + len(d.Entries[i].Value)
	}
	w := jsonenc.Writer{Buf: make([]byte, 0, size)}
	w.Buf = fmt.Appendf(w.Buf, "{\n  \"schema_version\": %d,\n  \"lsn\": %d,\n  \"entries\": [", d.SchemaVersion, d.LSN)
	for i := range d.Entries {
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Buf = append(w.Buf, "\n    {"...)
		w.String("ref", d.Entries[i].Ref)
		w.Raw("value", d.Entries[i].Value)
		w.Value("sessions", d.Entries[i].Sessions)
		w.Buf = append(w.Buf, '}')
	}
	w.Buf = append(w.Buf, "\n  ]\n}\n"...)
	return w.Buf, w.Err
}

func newContents(n *namespace) *contents {
	p := &contents{n: n}
	p.doc = held{name: contentFile, render: func(h head) (any,
		error) {
		return contentDoc{h, slices.Clone(p.kept.Entries)}, nil
	}}
	return p
}

func (p *contents) load() (corrupt bool, err error) {
	var doc contentDoc
	corrupt, err = readOptional(p.n.files, contentFile, &doc, nil)
	p.doc.lsn = doc.LSN
	for _, e := range doc.Entries {
		e.Value = compact(e.Value)
		p.kept.Restore(e)
	}
	return corrupt, err
}

// put keeps a result. The caller holds shared.mu, as in forget.
func (p *contents) put(c store.Content, session string, limit agent.RetentionPolicy) {
	p.kept.Put(c, session, limit)
	p.doc.lags = true
}

func (p *contents) forget(session string) {
	p.kept.Forget(session)
	p.doc.lags = true
}

// Content is part of store.Namespace.
func (p *contents) Content(_ context.Context, ref string) (json.RawMessage, error) {
	p.n.mu.Lock() // reading a result makes it the most recently used one
	defer p.n.mu.Unlock()
	if v, ok := p.kept.Get(ref); ok {
		return v, nil
	}
	return nil, store.ErrNotFound
}
