package call

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Bounds of a history input that is made from the session's own calls.
const (
	defaultSessionTurns = 10
	maxSessionTurns     = 100
	maxTurnRecords      = 1000   // calls of the method that are examined for a stored value
	maxTurnLook         = 20_000 // records that are scanned for those calls
)

// fromSession is a history input that requests the session's own turns.
type fromSession struct {
	FromSession string `json:"from_session"` // must be "last"
	N           *int   `json:"n"`
}

// sessionTurns replaces a history input that requests the session's own turns by the latest ok calls of the same
// method. It skips failed calls, and calls whose values are not in the call log any more.
func (c *Call) sessionTurns(ctx context.Context, sig *contract.Signature) error {
	if agent.Kind(c.InputHistory) != "object" || !bytes.Contains(c.InputHistory, []byte(`"from_session"`)) {
		return nil
	}
	n, err := c.wantedTurns(sig)
	if err != nil || n == 0 {
		return err
	}
	var elements []json.RawMessage
	page, err := c.Env.Store.History(ctx, c.Session.ID, store.HistoryQuery{Limit: maxTurnRecords, Scan: maxTurnLook,
		Desc: true, Depth0: true, Method: c.Method, Role: c.Role, Status: agent.StatusOK})
	if err != nil {
		return err
	}
	for _, raw := range page.Records {
		if len(elements) == n {
			break
		}
		var rec agent.Record
		if json.Unmarshal(raw, &rec) != nil || rec.ProgramSource == agent.SourceNone {
			continue
		}
		was, err := c.Env.Store.Call(ctx, rec.CallID)
		if err != nil || was.Outcome == nil {
			continue
		}
		if e, ok := history.FromCall(sig, rec.Args, rec.Kwargs, was.Outcome.Value); ok {
			elements = append(elements, e)
		}
	}
	slices.Reverse(elements)
	c.InputHistory = history.Newest(elements, history.DefaultLimits())
	return nil
}

// wantedTurns returns how many turns an input such as {"from_session": "last", "n": 5} requests, or 0 for any other
// input.
func (c *Call) wantedTurns(sig *contract.Signature) (int, error) {
	refuse := func(pointer, detail string) (int, error) {
		return 0, &agent.InputError{Code: agent.ErrInvalidHistoryValue, Pointer: "/history" + pointer, Detail: detail,
			Hint: `{"from_session": "last", "n": 5}`,
			Meta: map[string]any{"field": "history", "expected": "{from_session, n}",
				"got": agent.Kind(c.InputHistory)}}
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(c.InputHistory, &all) != nil || all["from_session"] == nil {
		return 0, nil
	}
	var in fromSession
	d := json.NewDecoder(bytes.NewReader(c.InputHistory))
	d.DisallowUnknownFields()
	switch err := d.Decode(&in); {
	case err != nil:
		return refuse("", "must be {from_session, n}: "+err.Error())
	case in.FromSession != "last":
		return refuse("/from_session", `must be "last"`)
	case sig == nil:
		return refuse("", "needs a contract with a signature, which says what a turn's inputs and outputs are")
	case in.N == nil:
		return defaultSessionTurns, nil
	case *in.N < 1 || *in.N > maxSessionTurns:
		return refuse("/n", fmt.Sprintf("must be 1 to %d", maxSessionTurns))
	}
	return *in.N, nil
}
