package operator

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/trail"
)

// auditedValue bounds a value in the audit trail, in bytes. Of a longer one only the size is kept.
const auditedValue = 4 << 10

// auditedVerdict is a verdict in the audit trail. Its entry names the session, and is erased with it.
type auditedVerdict struct {
	CallID       string          `json:"call_id"`
	Verdict      string          `json:"verdict"`
	State        string          `json:"state"`
	By           string          `json:"by,omitempty"`
	Note         string          `json:"note,omitempty"`
	Expected     json.RawMessage `json:"expected,omitempty"`
	ExpectedType string          `json:"expected_error_type,omitempty"`
	ExampleID    string          `json:"example_id,omitempty"`
}

// verdictOn returns a function that returns the artifact's verdict on the call for the audit trail, or nil.
func verdictOn(callID string) func(a *agent.Artifact) json.RawMessage {
	return func(a *agent.Artifact) json.RawMessage {
		v := a.Verdict(callID)
		if v == nil {
			return nil
		}
		return agent.Encoded(auditedVerdict{v.CallID, v.Verdict, v.State, v.By, v.Note,
			trail.Brief(v.Expected, auditedValue), v.ExpectedErrorType, v.ExampleID})
	}
}

// auditedExample is an example in the audit trail. Data from a call of a session is left out, since it is erased with
// the session.
type auditedExample struct {
	ID     string          `json:"id"`
	State  string          `json:"state"`
	By     string          `json:"by,omitempty"`
	CallID string          `json:"call_id,omitempty"`
	Note   string          `json:"note,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	Kwargs json.RawMessage `json:"kwargs,omitempty"`
	Expect json.RawMessage `json:"expect,omitempty"`
}

// examplesOf returns the artifact's examples for the audit trail.
func examplesOf(a *agent.Artifact) json.RawMessage {
	list := make([]auditedExample, len(a.Examples))
	for i := range a.Examples {
		x := &a.Examples[i]
		list[i] = auditedExample{ID: x.ID, State: x.State, By: x.By, CallID: x.CallID}
		if x.SessionID == "" {
			list[i].Note, list[i].Args, list[i].Kwargs = x.Note, trail.Brief(agent.Encoded(x.Args), auditedValue),
				trail.Brief(x.Kwargs, auditedValue)
			list[i].Expect = trail.Brief(agent.Encoded(x.Expect), auditedValue)
		}
	}
	return agent.Encoded(list)
}

// auditedTool returns a tool for the audit trail. The proposals of programs are left out, since no undo brings them
// back.
func auditedTool(t agent.Tool) json.RawMessage {
	t.Proposals = nil
	return agent.Encoded(t)
}
