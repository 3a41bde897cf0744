package local

import (
	"encoding/json"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// An asker answers the requests of one program: it is the recurgent.Host of its call.
type asker struct {
	run   *run
	depth int
}

// Ask implements recurgent.Host.
func (a *asker) Ask(op string, params, result any) error {
	raw, err := encode(params)
	if err != nil {
		return &recurgent.Failure{Type: "non_serializable_result",
			Message: op + ": the arguments have no JSON form: " + err.Error()}
	}
	var answer any
	recorded := a.run.tape != nil && a.depth == 0
	switch {
	case op == "log": // notes are meant for a daemon's log
		return nil
	case op == "open":
		answer, err = a.run.openFile(raw)
	case op == "decode":
		answer = a.run.streamed(&decoding{}, "")
	case op == "file" && !recorded:
		answer, err = a.run.fileInfo(raw)
	case op == "fetch_file" && recorded:
		answer, err = a.run.fetchedAgain(raw)
	case op == "fetch_file":
		answer, err = a.run.fetchFile(raw)
	case op == "create" && (recorded || a.run.check):
		answer, err = a.run.createAgain(raw)
	case op == "create":
		answer, err = a.run.createFile(raw)
	case recorded:
		answer, err = a.run.replay(op, raw)
	default:
		answer, err = a.run.live(op, raw, a.depth)
	}
	if err != nil || result == nil {
		return err
	}
	body, err := encode(answer)
	if err != nil {
		return err
	}
	return recurgent.Unmarshal(body, result)
}

// live answers a request without a recording.
func (r *run) live(op string, params json.RawMessage, depth int) (any, error) {
	switch op {
	case "history":
		return []recurgent.Record{}, nil
	case "content", "delegate":
		return nil, nil
	case "tools":
		return r.tools(), nil
	case "call":
		var q Request
		if err := json.Unmarshal(params, &q); err != nil {
			return nil, err
		}
		if r.nested++; depth >= maxDepth || r.nested > maxNested {
			return nested(failed(&recurgent.Failure{Type: "budget_exceeded",
				Message: "calls are nested too deep, or are too many"})), nil
		}
		return nested(r.call(q, depth+1)), nil
	case "fetch":
		var q recurgent.Request
		if err := json.Unmarshal(params, &q); err != nil {
			return nil, err
		}
		if r.host.Fetch == nil {
			r.lacks = "a fetch of " + q.URL
			return nil, &recurgent.Failure{Type: "denied", Message: "fetches are denied here"}
		}
		return r.host.Fetch(q)
	case "predict":
		return r.predict(params)
	}
	return nil, &recurgent.Failure{Type: "denied", Message: fmt.Sprintf("there is no %s here", op)}
}

// nested returns an outcome in the form that a calling program receives.
func nested(o Outcome) any {
	o.Context = nil // a nested call has its own memory, which is discarded
	return struct {
		Outcome
		Metadata map[string]any `json:"metadata"`
	}{o, map[string]any{}}
}

// predict answers a question to a model through Host.Predict.
func (r *run) predict(params json.RawMessage) (any, error) {
	var q struct {
		Signature recurgent.Signature `json:"signature"`
		Inputs    map[string]any      `json:"inputs"`
	}
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	if r.host.Predict == nil {
		r.lacks = "a question to a model"
		return nil, &recurgent.Failure{Type: "provider", Message: errNoModel.Error()}
	}
	return r.host.Predict(q.Signature, q.Inputs)
}

// tools returns the registry in the form that programs see.
func (r *run) tools() map[string]recurgent.ToolInfo {
	out := map[string]recurgent.ToolInfo{}
	for _, p := range r.host.Programs {
		t := out[p.Role]
		t.Role, t.Purpose, t.Methods = p.Role, p.Purpose, append(t.Methods, p.Method)
		out[p.Role] = t
	}
	return out
}
