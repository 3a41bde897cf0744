package contract

import (
	"bytes"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Sources of a contract, as the call log names them.
const (
	SourceNone   = "none"
	SourceHash   = agent.ContractOfCall
	SourceFields = "fields"
	SourceMerged = agent.ContractMerged
)

// Layers are the contracts that speak about a call; nil ones say nothing.
type Layers struct {
	Role      *agent.Contract // of the registry, for the role
	ByProgram bool            // Role was registered by a program: what a program delegates with goes over it
	Method    *agent.Contract // of the registry, for the method: a person's
	Delegated *agent.Contract // that the calling program delegated with
	Session   *agent.Contract // of the client, with the session
	Call      *agent.Contract // of the client, with the call
}

// ordered returns the layers, the one that counts least first.
func (l *Layers) ordered() [5]*agent.Contract {
	if l.ByProgram {
		return [5]*agent.Contract{l.Role, l.Delegated, l.Method, l.Session, l.Call}
	}
	return [5]*agent.Contract{l.Delegated, l.Role, l.Method, l.Session, l.Call}
}

// Merge resolves the layers by top-level key: call over session over what a person registered (of the method over that of
// the role) over what a program delegates with over what a program registered. A key that is absent, null or an empty
// string leaves the layer below in force. merged is nil when no layer says anything; the layers are not changed.
//
// source records where the surviving keys came from, in the words of the original, where a delegation names its contract
// as one hash, as single fields, or both: hash is one object that came whole (with the call, the session or a delegation),
// fields is the registry's entry alone, merged is more than one of call, session and registry, none is no contract.
func Merge(l Layers) (merged *agent.Contract, source string) {
	var out agent.Contract
	var registry, fromSession, fromCall bool
	layers := l.ordered()
	took := [5]*bool{&registry, &fromCall, &registry, &fromSession, &fromCall}
	if !l.ByProgram {
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
		return nil, SourceNone
	case registry && !fromSession && !fromCall:
		return &out, SourceFields
	case !registry && fromSession != fromCall:
		return &out, SourceHash
	}
	return &out, SourceMerged
}

// absent reports whether a member of a contract says nothing.
func absent(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}
