package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// undoConnection restores the settings of a connection, but never a secret. An existing connection keeps its secret,
// unless the restored settings would let it reach further. A deleted connection is restored without secret.
func (o *Operator) undoConnection(ctx context.Context, was agent.AuditEntry,
	entry *agent.AuditEntry) (commit func() error, err error) {
	before, err := settingsIn(was.Before)
	if err != nil {
		return nil, err
	}
	after, err := settingsIn(was.After)
	if err != nil {
		return nil, err
	}
	now, err := o.connection(ctx, was.Target)
	if errors.Is(err, store.ErrNotFound) && after == nil {
		return o.remake(ctx, before, entry)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, cannotUndo("the connection is not there any more", "")
	case err != nil:
		return nil, err
	case after == nil || !sameSettings(after, &now):
		return nil, cannotUndo("the connection was changed again since",
			"undo the later change first, or PUT the connection")
	}
	entry.Before = agent.Encoded(viewOf(&now))
	if before == nil {
		entry.Action = opConnectionDelete
		return func() error { return o.store.DeleteConnection(ctx, now.Name, now.Revision, entry) }, nil
	}
	if sameSettings(before, &now) {
		return nil, cannotUndo("only the secret changed, and the one before is not kept",
			"PUT the connection with a secret")
	}
	next := *before
	if next.Exceeds(&now) == "" {
		next.Auth.Sealed, next.Auth.Env, next.Auth.File = now.Auth.Sealed, now.Auth.Env, now.Auth.File
	}
	entry.Action, entry.After = opConnectionPut, agent.Encoded(viewOf(&next))
	return func() error {
		_, err := o.store.PutConnection(ctx, next, now.Revision, entry)
		return err
	}, nil
}

// remake restores a deleted connection.
func (o *Operator) remake(ctx context.Context, before *agent.Connection,
	entry *agent.AuditEntry) (commit func() error, err error) {
	if before == nil {
		return nil, cannotUndo("the entry does not hold what was before", "")
	}
	entry.Action, entry.After = opConnectionPut, agent.Encoded(viewOf(before))
	return func() error {
		_, err := o.store.PutConnection(ctx, *before, 0, entry)
		return err
	}, nil
}

// settingsIn returns the connection in an audit entry, without secret, or nil if there is none.
func settingsIn(raw json.RawMessage) (*agent.Connection, error) {
	if raw == nil {
		return nil, nil
	}
	var v ConnectionView
	if err := json.Unmarshal(raw, &v); err != nil || v.Name == "" {
		return nil, cannotUndo("the entry does not hold what was before", "")
	}
	c := v.Connection
	c.Auth = v.Auth.ConnectionAuth
	c = c.WithoutSecret()
	return &c, nil
}

// sameSettings reports whether two connections are equal apart from their secrets.
func sameSettings(a, b *agent.Connection) bool {
	plain := func(c *agent.Connection) json.RawMessage {
		x := c.WithoutSecret()
		return agent.Encoded(agent.Connection{Name: x.Name, Description: x.Description, Hosts: x.Hosts,
			Methods: x.Methods, Roles: x.Roles, Auth: x.Auth,
			IdempotencyHeader: x.IdempotencyHeader})
	}
	return bytes.Equal(plain(a), plain(b))
}
