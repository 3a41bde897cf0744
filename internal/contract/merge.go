package contract

import (
	"bytes"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Sources of a merged contract, as the call log names them.
const (
	sourceNone   = "none"
	sourceHash   = agent.ContractOfCall
	sourceFields = "fields"
	sourceMerged = agent.ContractMerged
)

// Layers are the contracts that apply to a call. Each may be nil.
type Layers struct {
	Role      *agent.Contract // registered for the role
	ByProgram bool            // a program registered Role, so Delegated overrides it
	Method    *agent.Contract // registered for the method, by a person
	Delegated *agent.Contract // from the calling program
	Session   *agent.Contract // from the client, for the session
	Call      *agent.Contract // from the client, for the call
}

// ordered returns the layers in ascending priority.
func (l *Layers) ordered() [5]*agent.Contract {
	if l.ByProgram {
		return [5]*agent.Contract{l.Role, l.Delegated, l.Method, l.Session, l.Call}
	}
	return [5]*agent.Contract{l.Delegated, l.Role, l.Method, l.Session, l.Call}
}

// Merge merges the layers by top-level key. In descending priority they are: call, session, what a person registered
// for the method and then for the role, delegation, and what a program registered for the role. A key that is absent,
// null or an empty string leaves the value of a lower layer in force. merged is nil if no layer has any key. The layers
// are not changed.
//
// source says where the remaining keys came from, in the terms of the seeds. sourceHash is a single contract from the
// call, the session or a delegation. sourceFields is the registry's alone. sourceMerged combines several of call,
// session and registry. sourceNone means that there is no contract.
func Merge(l Layers) (merged *agent.Contract, source string) {
	var out agent.Contract
	var registry, fromSession, fromCall bool
	layers := l.ordered()
	took := [5]*bool{&registry, &fromCall, &registry, &fromSession, &fromCall}
	if !l.ByProgram {
		// without ByProgram, ordered returns the first two layers in the other order
		took[0], took[1] = took[1], took[0]
	}
	const top = len(layers) - 1
	pick := func(get func(*agent.Contract) *json.RawMessage) {
		for i := top; i >= 0; i-- {
			if layers[i] == nil {
				continue
			}
			if raw := *get(layers[i]); !absent(raw) {
				*get(&out), *took[i] = raw, true
				return
			}
		}
	}
	for i := top; i >= 0; i-- {
		if layers[i] != nil && layers[i].Purpose != "" {
			out.Purpose, *took[i] = layers[i].Purpose, true
			break
		}
	}
	pick(func(c *agent.Contract) *json.RawMessage { return &c.Deliverable })
	pick(func(c *agent.Contract) *json.RawMessage { return &c.Acceptance })
	pick(func(c *agent.Contract) *json.RawMessage { return &c.FailurePolicy })
	pick(func(c *agent.Contract) *json.RawMessage { return &c.Signature })
	switch {
	case !registry && !fromSession && !fromCall:
		return nil, sourceNone
	case registry && !fromSession && !fromCall:
		return &out, sourceFields
	case !registry && fromSession != fromCall:
		return &out, sourceHash
	}
	return &out, sourceMerged
}

// absent reports whether a member of a contract is missing or null.
func absent(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}
