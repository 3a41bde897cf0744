// Package sessions keeps sessions and their contexts, admits one call of a session at a time, and claims sessions among
// replicas. The package knows nothing of how calls are answered.
package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/running"
	"github.com/recurgentd/recurgentd/internal/runtime/trail"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Sessions are the sessions of a namespace. Its methods may be called concurrently.
type Sessions struct {
	Queue turns.Queues // admits one call per session at a time

	env   *env.Env
	calls *running.Calls
	rules func() *mask.Rules // in force
}

// New returns the sessions of the namespace. rules returns the rules for secrets in force.
func New(e *env.Env, calls *running.Calls, rules func() *mask.Rules) *Sessions {
	return &Sessions{env: e, calls: calls, rules: rules}
}

// Request describes a session to create.
type Request struct {
	Role     string
	Model    string
	Contract *agent.Contract
	Context  json.RawMessage // an object, or nil
	Debug    bool
	Metadata map[string]string
	Owner    string
}

// CreateSession creates a session. It returns a *agent.NameError or a *agent.InputError for an invalid request, and a
// *storage.FullError if the owner's share has no room.
func (s *Sessions) CreateSession(ctx context.Context, q Request) (agent.Session, error) {
	var err error
	if q.Role, err = agent.Name("role", q.Role); err != nil {
		return agent.Session{}, err
	}
	if err := contract.CheckTerms(q.Contract, "/contract"); err != nil {
		return agent.Session{}, err
	}
	memory := map[string]json.RawMessage{}
	if len(q.Context) > 0 && string(q.Context) != "null" {
		if err := json.Unmarshal(q.Context, &memory); err != nil {
			return agent.Session{}, &agent.InputError{Code: "invalid_context", Pointer: "/context",
				Detail: "must be an object", Hint: `{"context": {"key": "value"}}`}
		}
	}
	if err := s.checkContext(memory); err != nil {
		return agent.Session{}, err
	}
	now := s.env.Now().UTC()
	made := agent.Session{ID: ids.NewSession(false), Role: q.Role, Model: q.Model, Contract: q.Contract, Debug: q.Debug,
		Metadata: q.Metadata,
		Owner:    q.Owner, CreatedAt: now, UpdatedAt: now}
	if made.Contract.Empty() {
		made.Contract = nil
	}
	if err := s.env.Storage.Room(ctx, made.Owner,
		store.Bytes{Contexts: store.SessionBytes(made) + store.ContextBytes(memory)}); err != nil {
		return agent.Session{}, err
	}
	if err := s.env.Store.CreateSession(ctx, made, memory); err != nil {
		return agent.Session{}, err
	}
	return s.env.Store.Session(ctx, made.ID)
}

// checkContext returns an *agent.InputError if the context is larger than Options.MaxContext.
func (s *Sessions) checkContext(memory map[string]json.RawMessage) error {
	size := Size(memory)
	if size <= s.env.MaxContext {
		return nil
	}
	return &agent.InputError{Code: "too_large", Pointer: "/context",
		Detail: fmt.Sprintf("the context would have %d bytes, at most %d are kept", size, s.env.MaxContext),
		Hint:   "keep large data outside and pass it as arguments"}
}

// Session returns the session, or store.ErrNotFound if there is none.
func (s *Sessions) Session(ctx context.Context, id string) (agent.Session, error) {
	return s.env.Store.Session(ctx, id)
}

// Query selects a page of sessions.
type Query struct {
	Owner string // "" for sessions of every owner
	After string // session ID that the page follows
	Limit int
}

// maxSessionsRead bounds the sessions that are read for a page of one owner.
const maxSessionsRead = 2000

// ListSessions returns sessions, newest first. A page of one owner may end early if many sessions belong to others;
// next is then the After of the next page, otherwise "".
func (s *Sessions) ListSessions(ctx context.Context, q Query) (sessions []agent.Session, next string, err error) {
	if q.Owner == "" {
		sessions, err = s.env.Store.ListSessions(ctx, q.After, q.Limit)
		return sessions, "", err
	}
	const part = 200
	for read := 0; read < maxSessionsRead; read += part {
		all, err := s.env.Store.ListSessions(ctx, q.After, part)
		if err != nil {
			return nil, "", err
		}
		for _, one := range all {
			if q.After = one.ID; !one.OwnedBy(q.Owner) {
				continue
			}
			if sessions = append(sessions, one); len(sessions) == q.Limit {
				return sessions, "", nil
			}
		}
		if len(all) < part {
			return sessions, "", nil
		}
	}
	return sessions, q.After, nil
}

// Operations recorded in the audit trail.
const (
	opSessionDelete = "session.delete"
	opContextPatch  = "context.patch"
)

// auditedValue bounds a context value in the audit trail, in bytes; only the size of a longer one is kept.
// auditedValues bounds all values of an entry, before or after a change; keys beyond it are left out. The audit trail
// does not count towards any owner's share, so one owner must not be able to fill it.
const (
	auditedValue  = 1 << 10
	auditedValues = 2 << 10
)

// DeleteSession erases the session and everything that it left elsewhere. Its calls in progress are canceled. The audit
// trail keeps who deleted the session, its owner, its creation time and its history size, but none of its content.
func (s *Sessions) DeleteSession(ctx context.Context, id, actor string) error {
	was, err := s.env.Store.Session(ctx, id)
	if err != nil {
		return err
	}
	// Cancel first, then wait for the turn: the canceled calls commit before the session is erased. The queue's limit
	// is raised by one, because a full queue must not prevent a deletion.
	s.calls.Cancel(func(c *call.Call) bool { return c.Session.ID == id }, interrupt.ErrCanceled)
	_, leave, err := s.turn(ctx, id, s.env.MaxQueue+1)
	if err != nil {
		return err
	}
	defer leave()
	entry := trail.Entry(s.env.Now(), actor, opSessionDelete, id)
	entry.Before = agent.Encoded(struct {
		Owner       string    `json:"owner"`
		CreatedAt   time.Time `json:"created_at"`
		HistorySize int       `json:"history_size"`
	}{was.Owner, was.CreatedAt, was.HistorySize})
	return s.env.Store.DeleteSession(ctx, id, &entry)
}

// Context returns the session's context by top-level key, with its records under conversation_history; see
// shownContext.
func (s *Sessions) Context(ctx context.Context, id string) (map[string]json.RawMessage, error) {
	stored, err := s.env.Store.Context(ctx, id)
	if err != nil {
		return nil, err
	}
	records, err := s.env.Records(ctx, id, attempt.WholeHistory(false))
	return shownContext(stored, records), err
}

// PatchContext applies a JSON merge patch (RFC 7396) and returns the whole context. It waits for the session's turn, so
// it falls between calls. The audit trail keeps the changed keys' values before and after, secrets masked, until the
// session is deleted. If another replica took over the session meanwhile, nothing is changed, and the error names the
// owner.
func (s *Sessions) PatchContext(ctx context.Context, id string, patch json.RawMessage,
	actor string) (map[string]json.RawMessage, error) {
	if agent.Kind(patch) != "object" {
		return nil, &agent.InputError{Code: "invalid_context", Detail: "a merge patch of a context must be an object",
			Hint: `{"key": "value", "gone": null}`}
	}
	was, err := s.env.Store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	shown, err := s.patchContext(ctx, &was, patch, actor)
	// The store rejected the epoch, so another replica owned the session. The retry claims the session again or names
	// that replica.
	if errors.Is(err, store.ErrFenced) && s.env.Owners != nil {
		s.env.Owners.Fenced(id)
		return s.patchContext(ctx, &was, patch, actor)
	}
	return shown, err
}

// patchContext is PatchContext without the retry after a lost session.
func (s *Sessions) patchContext(ctx context.Context, one *agent.Session, patch json.RawMessage,
	actor string) (map[string]json.RawMessage, error) {
	id := one.ID
	epoch, leave, err := s.Turn(ctx, id)
	if err != nil {
		return nil, err
	}
	defer leave()
	before, err := s.env.Store.Context(ctx, id)
	if err != nil {
		return nil, err
	}
	change, err := mergePatch(before, patch)
	if err != nil {
		return nil, &agent.InputError{Code: "invalid_context", Detail: err.Error(),
			Hint: "send a JSON merge patch (RFC 7396)"}
	}
	entry := trail.Entry(s.env.Now(), actor, opContextPatch, id)
	entry.SessionID, entry.Before = id, s.audited(before, change)
	size := Size(before)
	change.Apply(before)
	if err := s.checkContext(before); err != nil {
		return nil, err
	}
	if err := s.env.Storage.Room(ctx, one.Owner, store.Bytes{Contexts: int64(Size(before) - size)}); err != nil {
		return nil, err
	}
	entry.After = s.audited(before, change)
	records, err := s.env.Records(ctx, id,
		attempt.WholeHistory(false)) // before the change: if this fails, nothing has changed
	if err != nil {
		return nil, err
	}
	after, err := s.env.Store.ChangeContext(ctx, id, epoch, change, &entry)
	return shownContext(after, records), err
}

// audited returns what the audit trail keeps of the changed keys.
func (s *Sessions) audited(memory map[string]json.RawMessage, change agent.ContextChange) json.RawMessage {
	kept := map[string]json.RawMessage{}
	for _, key := range slices.AppendSeq(slices.Clone(change.Delete), maps.Keys(change.Set)) {
		if value, has := memory[key]; has {
			kept[key] = value
		}
	}
	masked, _ := s.rules().JSON(agent.Encoded(kept))
	if err := json.Unmarshal(masked, &kept); err != nil {
		return trail.Brief(masked, 0)
	}
	room := auditedValues
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		brief := trail.Brief(kept[key], auditedValue)
		if room -= len(key) + len(brief); room < 0 {
			delete(kept, key)
			continue
		}
		kept[key] = brief
	}
	return agent.Encoded(kept)
}

// mergePatch returns the changes that the patch makes at the top level.
func mergePatch(before map[string]json.RawMessage, patch json.RawMessage) (agent.ContextChange, error) {
	change := agent.ContextChange{Set: map[string]json.RawMessage{}}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(patch, &fields); err != nil {
		return change, err
	}
	for key, value := range fields {
		old, had := before[key]
		switch {
		case agent.Kind(value) == "null" && had:
			change.Delete = append(change.Delete, key)
		case agent.Kind(value) == "null":
		case agent.Kind(value) == "object":
			if !had || agent.Kind(old) != "object" {
				old = json.RawMessage("{}") // merging into {} removes the nulls inside the patch
			}
			merged, err := jsonpatch.MergePatch(old, value)
			if err != nil {
				return change, err
			}
			change.Set[key] = merged
		default:
			change.Set[key] = value
		}
	}
	return change, nil
}

// History returns a page of the session's records.
func (s *Sessions) History(ctx context.Context, id string, q store.HistoryQuery) (store.HistoryPage, error) {
	return s.env.Store.History(ctx, id, q)
}

// shownContext returns a stored context as clients see it, with the session's records added.
func shownContext(stored map[string]json.RawMessage, records json.RawMessage) map[string]json.RawMessage {
	shown := make(map[string]json.RawMessage, len(stored)+1)
	maps.Copy(shown, stored)
	shown[attempt.HistoryKey] = records
	return shown
}

// Size returns the size of a context as it counts towards the limit, in bytes.
func Size(memory map[string]json.RawMessage) (size int) {
	for k, v := range memory {
		size += len(k) + len(v) + 4
	}
	return size
}
