package operator

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/overview"
)

// inboxRecommendation is the kind of an open recommendation. Package overview has the other kinds.
const inboxRecommendation = "recommendation"

// InboxKinds returns all kinds.
func InboxKinds() []string {
	return []string{overview.Approval, overview.Correction, overview.Proposal, inboxRecommendation, overview.Effects}
}

// An InboxQuery selects a page of what awaits a person's decision.
type InboxQuery struct {
	Kind, Role, Method string // "" for all
	After              string // cursor of the previous page; "" for the first page
	Limit              int
	// Sees reports whether the reader may see the call; nil means all calls, and all data from calls in artifacts.
	Sees  func(ctx context.Context, callID string) bool
	Owner string // the reader, if Sees is not nil
}

// sees reports whether the reader may see the call.
func (q *InboxQuery) sees(ctx context.Context, callID string) bool {
	return q.Sees == nil || q.Sees(ctx, callID)
}

// Waiting is an entry of the inbox: something that awaits a person's decision.
type Waiting struct {
	ID         string           `json:"id"` // stays the same until it is decided
	Kind       string           `json:"kind"`
	Role       string           `json:"role"`
	Method     string           `json:"method"` // "" if it concerns the whole role
	Since      string           `json:"since"`
	Summary    string           `json:"summary"`
	Evidence   any              `json:"evidence"`
	Operations []InboxOperation `json:"operations"` // those that decide it, starting with the one that agrees
}

// InboxOperation is a request that decides an entry, ready to send.
type InboxOperation struct {
	Name    string          `json:"name"` // what it does, for people
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	Body    json.RawMessage `json:"body"`              // null if there is none
	Scopes  []string        `json:"scopes"`            // needs all of them
	Scope   string          `json:"scope"`             // the last of Scopes
	Command string          `json:"command,omitempty"` // shell command that sends it
}

// Inbox returns a page of what awaits a person's decision, newest first, and the cursor of the next page, or "". An
// invalid cursor is overview.ErrCursor.
func (o *Operator) Inbox(ctx context.Context, q InboxQuery) (page []Waiting, next string, err error) {
	after, err := inboxPlace(q.After)
	if err != nil {
		return nil, "", err
	}
	policy := o.calls.Policy()
	all := []overview.Wait{}
	if q.Kind != inboxRecommendation {
		if all, err = o.overview.Waits(ctx, &policy); err != nil {
			return nil, "", err
		}
	}
	advice := map[string]Advice{}
	if q.Kind == "" || q.Kind == inboxRecommendation {
		open, err := o.openAdvice(ctx, true)
		if err != nil {
			return nil, "", err
		}
		for _, a := range open {
			w := overview.Wait{ID: overview.NewID(inboxRecommendation, a.Role, a.Method, a.ID),
				Kind: inboxRecommendation, Role: a.Role, Method: a.Method, Of: a.ID}
			if len(a.Evidence) > 0 {
				w.Since = ids.Time(a.Evidence[0]).UTC()
			}
			advice[a.ID] = a
			all = append(all, w)
		}
	}
	all = slices.DeleteFunc(all, func(w overview.Wait) bool {
		return q.Kind != "" && w.Kind != q.Kind || q.Role != "" && w.Role != q.Role || q.Method != "" &&
			w.Method != q.Method || after != nil && w.Compare(after) <= 0
	})
	slices.SortFunc(all, func(a, b overview.Wait) int { return a.Compare(&b) })
	page = []Waiting{}
	for i := range all {
		w := &all[i]
		// another entry exists, so there is a next page
		if len(page) == q.Limit {
			last := &all[i-1]
			return page, agent.FormatTime(last.Since) + "," + last.ID, nil
		}
		one, err := o.waiting(ctx, w, &q, advice)
		if err != nil {
			return nil, "", err
		}
		if one != nil {
			page = append(page, *one)
		}
	}
	return page, "", nil
}

// inboxPlace returns the last entry of the previous page, or nil for the first page.
func inboxPlace(cursor string) (*overview.Wait, error) {
	if cursor == "" {
		return nil, nil // the start is not a place
	}
	since, id, ok := strings.Cut(cursor, ",")
	at, err := time.Parse(time.RFC3339, since)
	if !ok || err != nil || !strings.HasPrefix(id, "wait_") {
		return nil, overview.ErrCursor
	}
	return &overview.Wait{Since: at, ID: id}, nil
}
