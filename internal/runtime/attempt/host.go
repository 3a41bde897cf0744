package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/classify"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Bounds of what a program can see of its session and of the registry.
const (
	maxHistoryRecords = 10_000
	MaxHistoryBytes   = 8 << 20
	MaxHistoryLook    = 200_000 // records scanned to find those, including nested ones
	maxToolsShown     = 1000
	maxToolsSeen      = 1000 // methods of other owners that are checked for visibility
	maxToolsBytes     = 4 << 20
)

// Host answers the host calls of one attempt's program.
type Host struct {
	For      *call.Call // the call that the program runs for
	Nester   Nester     // nil if no calls are made
	Attempt  string
	program  *agent.Generation // nil in replays and dry runs
	Recorded bool              // the run is a replay and has no effects
	Dry      bool              // nothing is kept: nested calls run the stored programs
	Denied   bool              // in a dry run: fetches are denied
	Refused  bool              // in a dry run: a nested call or a question to the model was denied
	shapes   map[string]string // of nested values, by role.method
	// failures of nested calls and of the model that are not the program's fault, by error type
	failed   map[string]Excused
	authored map[string]bool // types of the errors that programs of nested calls authored
	// a nested call did not fit its program's interface, through this program's fault
	miscalled bool
	predicted agent.Usage                // what its questions to the model cost
	Delegated map[string]*agent.Contract // by role
	kept      int                        // contracts in the registry that its delegations changed
	warnings  []string

	tools []string // role.method of the nested calls, each once
	Guard *Guard   // guard of the run; nil: nothing is enforced

	modelFailed bool // the model gave no valid answer
	modelFinal  bool // and will give none until a person changes something
	asked       int  // questions to the model
	overasked   bool // a question was refused: too many, or too large
	noRoom      bool // a storage share had no room for something the program, or a call below it, wanted to keep

	Drafts []*files.Draft // files that the program makes

	changes int64 // calls and delegations so far; each may change what a host call returns
}

// Call makes a nested call and waits for it.
func (h *Host) Call(ctx context.Context, role, method string, args []json.RawMessage,
	kwargs json.RawMessage) agent.Outcome {
	if h.Recorded {
		return agent.Failed(agent.ErrDenied, "nothing is called while a call is replayed")
	}
	if missing := h.Guard.permitTool(role, method); missing != nil {
		h.Refused = true
		return agent.Failed(agent.ErrDenied, missing.Message)
	}
	if name := role + "." + method; !slices.Contains(h.tools, name) && len(h.tools) < agent.MaxEffects {
		h.tools = append(h.tools, name)
	}
	if h.Dry {
		o, refused := h.Nester.NestDry(ctx, h.nesting(role, method, args, kwargs), h.Denied)
		h.Refused = h.Refused || refused
		return o
	}
	h.changes++
	o := h.nest(ctx, role, method, args, kwargs)
	if o.OK() {
		if h.shapes == nil {
			h.shapes = map[string]string{}
		}
		h.shapes[role+"."+method] = classify.Shape(o.Value)
	}
	return o
}

// Refuse records a nested call that cannot be made because an argument has no JSON encoding. The record holds the other
// arguments, and a text in place of that one.
func (h *Host) Refuse(ctx context.Context, role, method string, args []json.RawMessage, kwargs json.RawMessage,
	reason string) agent.Outcome {
	if h.Recorded || h.Dry {
		return agent.Failed(agent.ErrNonSerializable, reason)
	}
	h.changes++
	q, err := h.checkedNesting(role, method, args, kwargs)
	if err != nil {
		return agent.Failed(agent.ErrInvalidInput, err.Error())
	}
	n := h.Nester.Refuse(ctx, q, reason)
	h.noRoom = h.noRoom || n.NoRoom
	return n.Outcome
}

// Tools returns the registry as JSON: the best ranked tools that the call's owner may see, within the bounds.
func (h *Host) Tools(ctx context.Context) (json.RawMessage, error) {
	tools, err := h.For.Env.Store.RankTools(ctx, h.For.Env.Now(), maxToolsShown)
	if err != nil {
		return nil, err
	}
	type info struct {
		Role        string          `json:"role"`
		Purpose     string          `json:"purpose"`
		Deliverable json.RawMessage `json:"deliverable,omitempty"`
		Methods     []string        `json:"methods"`
		UsageCount  int64           `json:"usage_count"`
	}
	out := make(map[string]json.RawMessage, len(tools))
	size, view := 0, h.For.Registry(maxToolsSeen)
	for _, t := range tools {
		t, shown := view.Tool(ctx, t)
		if !shown {
			continue
		}
		methods := append([]string{}, t.Methods...) // an empty list is [], not null
		raw, err := json.Marshal(info{t.Tool.Role, t.Tool.Purpose, objectOrNothing(t.Tool.Deliverable), methods,
			t.Tool.UsageCount})
		if err != nil {
			return nil, err
		}
		if size += len(raw) + len(t.Tool.Role) + 4; size > maxToolsBytes {
			break
		}
		out[t.Tool.Role] = raw
	}
	return json.Marshal(out)
}

// objectOrNothing returns raw if it is an object, and nil otherwise: the program's type for it holds only objects.
func objectOrNothing(raw json.RawMessage) json.RawMessage {
	if agent.Kind(raw) != "object" {
		return nil
	}
	return raw
}

// History returns records of the session as a JSON array, oldest first: a page by sequence number, or the newest within
// the bounds.
func (h *Host) History(ctx context.Context, all, page bool, after, limit int) (json.RawMessage, error) {
	q := WholeHistory(all)
	if page {
		if limit <= 0 || limit > 1000 {
			limit = 1000
		}
		q = store.HistoryQuery{After: max(0, after), Limit: limit, Bytes: MaxHistoryBytes}
	}
	return h.For.Env.Records(ctx, h.For.Session.ID, q)
}

// Content returns a stored result, or nil if there is none.
func (h *Host) Content(ctx context.Context, ref string) (json.RawMessage, error) {
	v, err := h.For.Env.Store.Content(ctx, ref)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return v, err
}

// Revision returns a number that changes when op's result may have changed. For history it is the number of records,
// and -1 if the store fails. For everything else it counts the program's own calls and delegations: other callers' use
// of tools need not show in the middle of a call.
func (h *Host) Revision(ctx context.Context, op string) int64 {
	if op != "history" {
		return h.changes
	}
	s, err := h.For.Env.Store.Session(ctx, h.For.Session.ID)
	if err != nil {
		return -1
	}
	return int64(s.HistorySize)
}

// Building reports that the program waits for the compiler.
func (h *Host) Building() {
	if h.program != nil {
		h.For.Progress.Add(progress.Building, map[string]any{"checksum": h.program.CodeChecksum})
	}
}
