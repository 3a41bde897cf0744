package compiled

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// A Host answers requests for the session's history and denies everything else. Its messages are those of the native
// driver in package gate/diff/native.
type Host struct {
	Past json.RawMessage // the history, an array of records; nil means an empty one
}

func (Host) Call(context.Context, string, string, []json.RawMessage, json.RawMessage) agent.Outcome {
	return agent.Outcome{Status: agent.StatusError, ErrorType: "denied", ErrorMessage: "no call here"}
}

func (Host) Refuse(_ context.Context, _, _ string, _ []json.RawMessage, _ json.RawMessage,
	reason string) agent.Outcome {
	return agent.Outcome{Status: agent.StatusError, ErrorType: agent.ErrNonSerializable, ErrorMessage: reason}
}

func (Host) Delegate(context.Context, string, json.RawMessage) *sandbox.AuthoredError {
	return &sandbox.AuthoredError{Type: "denied", Message: "no delegate here"}
}

func (Host) Predict(context.Context, json.RawMessage, json.RawMessage) (json.RawMessage, *sandbox.AuthoredError) {
	return nil, &sandbox.AuthoredError{Type: "denied", Message: "no predict here"}
}

func (Host) Tools(context.Context) (json.RawMessage, error) { return nil, errors.New("no tools here") }

// History returns the recorded history, whatever the query asks for.
func (h Host) History(context.Context, bool, bool, int, int) (json.RawMessage, error) {
	if h.Past == nil {
		return json.RawMessage("[]"), nil
	}
	return h.Past, nil
}

func (Host) Content(context.Context, string) (json.RawMessage, error) { return nil, nil }

func (Host) OpenFile(context.Context, string) (*sandbox.OpenFile, *sandbox.AuthoredError) {
	return nil, &sandbox.AuthoredError{Type: "denied", Message: "no open_file here"}
}

func (Host) CreateFile(context.Context, string, string, string) (sandbox.NewFile, *sandbox.AuthoredError) {
	return nil, &sandbox.AuthoredError{Type: "denied", Message: "no create_file here"}
}

func (Host) Revision(context.Context, string) int64 { return -1 }
