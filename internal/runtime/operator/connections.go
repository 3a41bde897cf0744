package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/connections"
	"github.com/recurgentd/recurgentd/internal/store"
)

const (
	opConnectionPut    = "connection.put"
	opConnectionDelete = "connection.delete"
)

// Secrets seals secrets of connections, and knows whether they are available.
type Secrets interface {
	Seal(connection, secret string) ([]byte, error)
	// Problem returns why the connection's secret is not available, or "".
	Problem(c *agent.Connection) string
}

// A ConnectionView is a connection as people see it and as the audit trail keeps it: without a stored secret.
type ConnectionView struct {
	agent.Connection
	Auth      ConnectionAuth `json:"auth"` // shadows the connection's own
	SecretSet bool           `json:"secret_set"`
	// in the audit trail: the operation set another secret
	SecretChanged bool   `json:"secret_changed,omitempty"`
	Problem       string `json:"problem,omitempty"` // why the secret is not available; "" if it is
}

// ConnectionAuth is how a connection authenticates, and the source of its secret if that is not stored.
type ConnectionAuth struct {
	agent.ConnectionAuth
	Secret *SecretSource `json:"secret,omitempty"`
}

// A SecretSource is a place from which a secret is read at each use. One field is set.
type SecretSource struct {
	Env  string `json:"env,omitempty"`
	File string `json:"file,omitempty"`
}

// viewOf returns a connection without secret, and without checking whether the secret is available.
func viewOf(c *agent.Connection) ConnectionView {
	v := ConnectionView{Connection: c.WithoutSecret(), SecretSet: c.Auth.HasSecret()}
	v.Auth.ConnectionAuth = v.Connection.Auth
	if c.Auth.Env != "" || c.Auth.File != "" {
		v.Auth.Secret = &SecretSource{c.Auth.Env, c.Auth.File}
	}
	return v
}

// ListConnections returns up to limit connections, by name, with names greater than after.
func (o *Operator) ListConnections(ctx context.Context, after string, limit int) ([]ConnectionView, error) {
	all, err := o.store.ListConnections(ctx)
	out := []ConnectionView{}
	for i := range all {
		if all[i].Name > after && len(out) < limit {
			out = append(out, o.shown(&all[i]))
		}
	}
	return out, err
}

// shown is viewOf, and also checks whether the secret is available.
func (o *Operator) shown(c *agent.Connection) ConnectionView {
	v := viewOf(c)
	v.Problem = o.o.Secrets.Problem(c)
	return v
}

// Connection returns the connection of that name, or store.ErrNotFound.
func (o *Operator) Connection(ctx context.Context, name string) (ConnectionView, error) {
	c, err := o.connection(ctx, name)
	if err != nil {
		return ConnectionView{}, err
	}
	return o.shown(&c), nil
}

// connection returns the stored connection of that name, or store.ErrNotFound.
func (o *Operator) connection(ctx context.Context, name string) (agent.Connection, error) {
	all, err := o.store.ListConnections(ctx)
	if err != nil {
		return agent.Connection{}, err
	}
	i := slices.IndexFunc(all, func(c agent.Connection) bool { return c.Name == name })
	if i < 0 {
		return agent.Connection{}, store.ErrNotFound
	}
	return all[i], nil
}

// A ConnectionPut is the desired state of a connection.
type ConnectionPut struct {
	Connection agent.Connection // without secret
	Secret     *string          // plain text, to be sealed; nil means not given
	Source     SecretSource     // zero means not given
	Revision   int64            // required current revision; store.AnyRevision, or 0 if it must not exist
	Actor      string
}

// PutConnection creates or changes a connection; created reports which. Without a new secret the connection keeps
// its own, unless it would reach further than before. Errors are *agent.InputError, which never contain the secret, and
// the store's.
func (o *Operator) PutConnection(ctx context.Context, q ConnectionPut) (v ConnectionView, created bool, err error) {
	c := q.Connection.WithoutSecret()
	if err := connections.Normalise(&c); err != nil {
		return v, false, err
	}
	err = untilUnraced(q.Revision, func() error {
		v, created, err = o.putConnection(ctx, q, c)
		return err
	})
	return v, created, err
}

// putConnection is one attempt. It returns store.ErrConflict if the connection changes between reading and writing.
func (o *Operator) putConnection(ctx context.Context, q ConnectionPut,
	c agent.Connection) (v ConnectionView, created bool, err error) {
	old, err := o.connection(ctx, c.Name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return v, false, err
	}
	created = err != nil
	if !store.Matches(q.Revision, old.Revision) {
		return v, false, store.ErrConflict
	}
	given, err := o.secretOf(&c, &old, q)
	if err != nil {
		return v, false, err
	}
	entry := o.audit(q.Actor, opConnectionPut, c.Name, "")
	if !created {
		entry.Before = agent.Encoded(viewOf(&old))
	}
	after := viewOf(&c)
	after.SecretChanged = given
	entry.After = agent.Encoded(after)
	// with the revision that was checked: a concurrent change could have widened the connection
	c, err = o.store.PutConnection(ctx, c, old.Revision, &entry)
	return o.shown(&c), created, err
}

// secretOf sets the secret of c: the given one, or else the one that the connection has.
func (o *Operator) secretOf(c, old *agent.Connection, q ConnectionPut) (given bool, err error) {
	switch {
	case q.Secret != nil:
		if err := connections.CheckSecret(*q.Secret); err != nil {
			return false, err
		}
		if c.Auth.Type == agent.AuthURL {
			if err := connections.CheckAddress(c, *q.Secret); err != nil {
				return false, err
			}
		}
		if c.Auth.Sealed, err = o.o.Secrets.Seal(c.Name, *q.Secret); err != nil {
			return false, fmt.Errorf("%w: %w", ErrNoSeal, err)
		}
		return true, nil
	case q.Source != (SecretSource{}):
		c.Auth.Env, c.Auth.File = q.Source.Env, q.Source.File
		return true, connections.CheckSource(q.Source.Env, q.Source.File)
	case !old.Auth.HasSecret():
		return false, secretMissing("the connection has no secret yet")
	}
	if what := c.Exceeds(old); what != "" {
		return false, secretMissing(what + " would let the stored secret go further than it was given for")
	}
	c.Auth.Sealed, c.Auth.Env, c.Auth.File = old.Auth.Sealed, old.Auth.Env, old.Auth.File
	return false, nil
}

// secretMissing returns the error that the client must send a secret. The detail never contains one.
func secretMissing(detail string) error {
	return &agent.InputError{Code: "validation_failed", Pointer: "/auth/secret",
		Detail: "auth/secret is required: " + detail,
		Hint:   `a string, {"env": "RECURGENT_SECRET_..."} or {"file": "..."}`}
}

// ErrNoSeal means that a secret cannot be encrypted, because the key file is not usable.
var ErrNoSeal = errors.New("the secret cannot be encrypted")

// DeleteConnection deletes the connection and its secret. It returns store.ErrConflict for another revision.
func (o *Operator) DeleteConnection(ctx context.Context, name string, revision int64, reason, actor string) error {
	return untilUnraced(revision, func() error {
		old, err := o.connection(ctx, name)
		if err != nil {
			return err
		}
		if !store.Matches(revision, old.Revision) {
			return store.ErrConflict
		}
		entry := o.audit(actor, opConnectionDelete, name, reason)
		entry.Before = agent.Encoded(viewOf(&old))
		return o.store.DeleteConnection(ctx, name, old.Revision, &entry)
	})
}
