package disk

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/store"
)

// connections is the part that holds the connections. Their secrets are sealed before they get here.
type connections struct {
	n *namespace

	changing sync.Mutex // held from the check of a change to its end; taken before all ranked locks

	all map[string]agent.Connection // by name; guarded by shared.mu, as all below
	doc held
}

// connectionsDoc is connections.json.
type connectionsDoc struct {
	head
	Connections []agent.Connection `json:"connections"`
}

func newConnections(n *namespace) *connections {
	p := &connections{n: n, all: map[string]agent.Connection{}}
	p.doc = held{name: connectionsFile, render: p.render}
	return p
}

func (p *connections) load() (corrupt bool, err error) {
	var doc connectionsDoc
	corrupt, err = readOptional(p.n.files, connectionsFile, &doc, func() error { return checkConnections(&doc) })
	for _, c := range doc.Connections {
		p.all[c.Name] = c
	}
	p.doc.lsn = doc.LSN
	return corrupt, err
}

// StoredConnections returns the connections in the files of the directory, which may lag by a second. It returns nil if
// there are none. It opens no store, so a daemon may be using the directory.
func StoredConnections(dir string) ([]agent.Connection, error) {
	at, err := beneath.Open(dir)
	var data []byte
	if err == nil {
		defer func() { _ = at.Close() }() // it was only read
		data, err = at.ReadFile(connectionsFile)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var doc connectionsDoc
	if err == nil {
		err = json.Unmarshal(data, &doc)
	}
	if err == nil {
		err = checkConnections(&doc)
	}
	return doc.Connections, err
}

// checkConnections returns an error if names are missing or not unique.
func checkConnections(doc *connectionsDoc) error {
	seen := map[string]bool{}
	for _, c := range doc.Connections {
		if c.Name == "" || seen[c.Name] {
			return errors.New("a connection has no name, or another one's")
		}
		seen[c.Name] = true
	}
	return nil
}

// sealed returns the number of connections with sealed secrets.
func (p *connections) sealed() (n int) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	for _, c := range p.all {
		if len(c.Auth.Sealed) > 0 {
			n++
		}
	}
	return n
}

func (p *connections) render(h head) (any, error) {
	return connectionsDoc{h, store.SortedConnections(p.all)}, nil
}

// applyConnection stores or deletes a connection. The caller holds shared.mu.
func (n *namespace) applyConnection(e *entry) {
	p := n.connections
	c := store.Change{Kind: store.ChangedConnection, Name: e.Disconnect}
	if e.Connect != nil {
		p.all[e.Connect.Name] = *e.Connect
		c.Name, c.Revision = e.Connect.Name, e.Connect.Revision
	} else {
		delete(p.all, e.Disconnect)
	}
	p.doc.behind = true
	n.changed(c)
}

// ListConnections is part of store.Namespace.
func (p *connections) ListConnections(context.Context) ([]agent.Connection, error) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	return store.SortedConnections(p.all), nil
}

// stored returns the connection with that name, and whether there is room for one more.
func (p *connections) stored(name string) (c agent.Connection, found, room bool) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	c, found = p.all[name]
	return c, found, len(p.all) < store.MaxConnections
}

// PutConnection is part of store.Namespace.
func (p *connections) PutConnection(ctx context.Context, c agent.Connection, revision int64,
	audit *agent.AuditEntry) (agent.Connection, error) {
	p.changing.Lock()
	defer p.changing.Unlock()
	old, found, room := p.stored(c.Name)
	if !found && !room {
		return agent.Connection{}, store.ErrTooMany
	}
	next, err := store.ReplaceConnection(old, c, revision, p.n.now())
	if err != nil {
		return agent.Connection{}, err
	}
	e := p.n.newEntry()
	e.Connect, e.Audit = &next, audit
	return next, p.n.commit(ctx, &commit{entry: e})
}

// DeleteConnection is part of store.Namespace.
func (p *connections) DeleteConnection(ctx context.Context, name string, revision int64,
	audit *agent.AuditEntry) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	old, found, _ := p.stored(name)
	if !found {
		return store.ErrNotFound
	}
	if !store.Matches(revision, old.Revision) {
		return store.ErrConflict
	}
	e := p.n.newEntry()
	e.Disconnect, e.Audit = name, audit
	return p.n.commit(ctx, &commit{entry: e})
}
