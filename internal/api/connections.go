package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/recurgentd/recurgentd/internal/runtime/connections"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/strict"
)

// Connections are the operations on connections that the interface needs from a runtime.
type Connections interface {
	// ListConnections returns up to limit connections after that name, by name.
	ListConnections(ctx context.Context, after string, limit int) ([]operator.ConnectionView, error)
	Connection(ctx context.Context, name string) (operator.ConnectionView, error)
	PutConnection(ctx context.Context, q operator.ConnectionPut) (v operator.ConnectionView, created bool, err error)
	// DeleteConnection returns store.ErrConflict if the connection has another revision.
	DeleteConnection(ctx context.Context, name string, revision int64, reason, actor string) error
}

// listConnections lists connections by name, without secrets.
func (s *server) listConnections(w *reply, r *http.Request) error {
	q := readQuery(r)
	limit, after := q.limit(), q.text("after")
	if err := q.err(); err != nil {
		return err
	}
	all, err := w.run.ListConnections(r.Context(), after, limit+1)
	if err != nil {
		return err
	}
	return s.send(w, http.StatusOK, page(all, limit, func(c operator.ConnectionView) string { return c.Name }))
}

func noConnection(err error, name string) error {
	return missing(err, "connection "+strconv.Quote(name))
}

func (s *server) getConnection(w *reply, r *http.Request) error {
	name := param(r, "name")
	c, err := w.run.Connection(r.Context(), name)
	if err != nil {
		return noConnection(err, name)
	}
	return s.sendRevision(w, http.StatusOK, c.Revision, c)
}

func (s *server) deleteConnection(w *reply, r *http.Request) error {
	name := param(r, "name")
	revision, err := wantedRevision(r, 1)
	if err != nil {
		return err
	}
	reason, err := queryReason(r)
	if err != nil {
		return err
	}
	if revision, err = s.existingConnection(w, r, name, revision); err != nil {
		return err
	}
	if err := w.run.DeleteConnection(r.Context(), name, revision, reason, w.owner); err != nil {
		return noConnection(preconditionOf(err, revision), name)
	}
	return s.noContent(w)
}

// putConnection creates or replaces a connection. Without a secret in the body, the stored one is kept.
func (s *server) putConnection(w *reply, r *http.Request) error {
	name := param(r, "name")
	if err := connections.CheckName(name); err != nil {
		return fault(codeName, "the name cannot be a connection's",
			"1 to 63 characters of a-z, 0-9, - and _, the first a letter or a digit").in("path:name", "is not valid")
	}
	revision, err := wantedRevision(r, 1)
	if err != nil {
		return err
	}
	q := operator.ConnectionPut{Actor: w.owner}
	err = s.decode(w, r, false, func(f *fields, name, v []byte) {
		switch string(name) {
		case "description":
			f.text("/description", v, &q.Connection.Description)
		case "hosts":
			f.texts("/hosts", v, &q.Connection.Hosts)
		case "methods":
			f.texts("/methods", v, &q.Connection.Methods)
		case "roles":
			f.texts("/roles", v, &q.Connection.Roles)
		case "auth":
			f.auth(v, &q)
		case "idempotency_header":
			f.text("/idempotency_header", v, &q.Connection.IdempotencyHeader)
		default:
			f.unknown("", name, "description, hosts, methods, roles, auth, idempotency_header")
		}
	})
	if err != nil {
		return err
	}
	q.Connection.Name = name
	if q.Revision, err = s.existingConnection(w, r, name, revision); err != nil {
		return err
	}
	c, created, err := w.run.PutConnection(r.Context(), q)
	if err != nil {
		return preconditionOf(err, q.Revision)
	}
	return s.sendRevision(w, s.putStatus(w, r, created), c.Revision, c)
}

// existingConnection resolves "If-Match: *" for a connection; see existing.
func (s *server) existingConnection(w *reply, r *http.Request, name string, revision int64) (int64, error) {
	return existing(revision, func() error {
		_, err := w.run.Connection(r.Context(), name)
		return err
	}, "there is no connection "+strconv.Quote(name), "leave If-Match out to make it")
}

// texts reads a list of strings. null within the list is an error.
func (f *fields) texts(pointer string, v []byte, into *[]string) {
	var list []json.RawMessage
	f.array(pointer, v, &list)
	for i, x := range list {
		var text string
		if at := pointer + "/" + strconv.Itoa(i); isNull(x) {
			f.wrongKind(at, "a string", x)
		} else {
			f.text(at, x, &text)
		}
		*into = append(*into, text)
	}
}

// auth reads how a connection authenticates.
func (f *fields) auth(v []byte, q *operator.ConnectionPut) {
	if isNull(v) || v[0] != '{' {
		f.wrongKind("/auth", "an object", v)
		return
	}
	a := &q.Connection.Auth
	_ = strict.Members(v, func(name, value []byte) error { // cannot fail: the whole body has passed
		switch string(name) {
		case "type":
			f.text("/auth/type", value, &a.Type)
		case "name":
			f.text("/auth/name", value, &a.Name)
		case "username":
			f.text("/auth/username", value, &a.Username)
		case "token_url":
			f.text("/auth/token_url", value, &a.TokenURL)
		case "client_id":
			f.text("/auth/client_id", value, &a.ClientID)
		case "scopes":
			f.texts("/auth/scopes", value, &a.Scopes)
		case "secret":
			f.secret(value, q)
		default:
			f.unknown("/auth", name, "type, name, username, token_url, client_id, scopes, secret")
		}
		return nil
	})
}

// secret reads a secret, or the environment variable or file that holds it. No error text contains any of it.
func (f *fields) secret(v []byte, q *operator.ConnectionPut) {
	if isNull(v) {
		return // counts as absent
	}
	if v[0] == '"' {
		q.Secret = new(string)
		f.text("/auth/secret", v, q.Secret)
		return
	}
	if v[0] != '{' {
		f.wrongKind("/auth/secret", `a string, {"env": ...} or {"file": ...}`, v)
		return
	}
	_ = strict.Members(v, func(name, value []byte) error { // cannot fail: the whole body has passed
		switch string(name) {
		case "env":
			f.text("/auth/secret/env", value, &q.Source.Env)
		case "file":
			f.text("/auth/secret/file", value, &q.Source.File)
		default:
			// do not quote the name: it may be the secret
			f.bad("/auth/secret", "has members other than env and file", "")
		}
		return nil
	})
	if (q.Source.Env == "") == (q.Source.File == "") {
		f.bad("/auth/secret", "must have either env or file", "")
	}
}
