package local

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// A tape holds the external inputs of a recorded call.
type tape struct {
	Asks []recordedAnswer `json:"asks"`

	used []bool
}

type recordedAnswer struct {
	Op     string          `json:"op"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	Same bool `json:"same"` // the same as the previous answer to the same question
}

// replay returns the recorded answer to a request.
func (r *run) replay(op string, params json.RawMessage) (any, error) {
	found := r.tape.find(op, params)
	if found == nil {
		r.lacks = op + " " + string(params)
		return nil, &recurgent.Failure{Type: "denied", Message: "the recorded call did not ask for " + r.lacks}
	}
	if found.Error != nil {
		return nil, &recurgent.Failure{Type: found.Error.Type, Message: found.Error.Message}
	}
	return found.Result, nil
}

// find returns the first unused answer to the request, and marks it as used; nil if there is none,
// or no recording.
func (t *tape) find(op string, params json.RawMessage) *recordedAnswer {
	if t == nil {
		return nil
	}
	var before *recordedAnswer
	want := question(op, params)
	for i := range t.Asks {
		e := &t.Asks[i]
		if e.Op != op || question(op, e.Params) != want {
			continue
		}
		if !e.Same {
			before = e
		}
		if !t.used[i] {
			t.used[i] = true
			return before
		}
	}
	return nil
}

// question returns a normal form of the parameters, so that equal requests compare equal. It ignores the headers of a
// fetch, which may contain secrets, and its retries and caching.
func question(op string, params json.RawMessage) string {
	var v any
	if op == "fetch" {
		var q recurgent.Request
		if json.Unmarshal(params, &q) == nil {
			q.Header, q.Retry, q.Cache = nil, 0, false
			v = q
		}
	} else if json.Unmarshal(params, &v) != nil {
		return string(params)
	}
	raw, err := encode(v)
	if err != nil {
		return string(params)
	}
	return string(raw)
}
