package contract

import (
	"bytes"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Sources of a contract, as the call log names them.
const (
	SourceNone   = "none"
	SourceHash   = "hash"
	SourceFields = "fields"
	SourceMerged = "merged"
)

// Merge resolves the layers of a contract: call over session over registry (of the method over that of the role), by
// top-level key. A key that is absent, null or an empty string leaves the layer below in force. merged is nil when no
// layer says anything; the layers are not changed.
//
// source tells where the surviving keys came from, in the words of the original, where a delegation names its contract
// as one hash, as single fields, or both: hash is one object that a client gave whole (with the call or the session),
// fields is the registry's entry alone, merged is more than one of call, session and registry, none is no contract.
func Merge(registryRole, registryMethod, session, call *agent.Contract) (merged *agent.Contract, source string) {
	var out agent.Contract
	var registry, fromSession, fromCall bool
	layers := [4]*agent.Contract{registryRole, registryMethod, session, call}
	took := [4]*bool{&registry, &registry, &fromSession, &fromCall}
	pick := func(get func(*agent.Contract) *json.RawMessage) {
		for i := 3; i >= 0; i-- {
			if layers[i] == nil {
				continue
			}
			if raw := *get(layers[i]); !absent(raw) {
				*get(&out), *took[i] = raw, true
				return
			}
		}
	}
	for i := 3; i >= 0; i-- {
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
