package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// host answers questions with arbitrary data.
type host struct{}

func (host) Call(_ context.Context, role, method string, args []json.RawMessage, _ json.RawMessage) agent.Outcome {
	return agent.Outcome{Status: agent.StatusOK,
		Value: json.RawMessage(fmt.Sprintf("[%q,%q,%d]", role, method, len(args)))}
}

func (host) Refuse(_ context.Context, _, _ string, _ []json.RawMessage, _ json.RawMessage,
	reason string) agent.Outcome {
	return agent.Outcome{Status: agent.StatusError, ErrorType: agent.ErrNonSerializable, ErrorMessage: reason}
}

func (host) Delegate(context.Context, string, json.RawMessage) *sandbox.AuthoredError { return nil }

func (host) Predict(context.Context, json.RawMessage, json.RawMessage) (json.RawMessage, *sandbox.AuthoredError) {
	return nil, &sandbox.AuthoredError{Type: "provider", Message: "no model"}
}

func (host) Tools(context.Context) (json.RawMessage, error) { return json.RawMessage("{}"), nil }

func (host) History(context.Context, bool, bool, int, int) (json.RawMessage, error) {
	return json.RawMessage("[]"), nil
}

func (host) Content(context.Context, string) (json.RawMessage, error) { return nil, nil }

func (host) Revision(context.Context, string) int64 { return 1 }

func (host) OpenFile(context.Context, string) (*sandbox.OpenFile, *sandbox.AuthoredError) {
	return nil, &sandbox.AuthoredError{Type: agent.ErrFileNotFound, Message: "no files"}
}

func (host) CreateFile(context.Context, string, string, string) (sandbox.NewFile, *sandbox.AuthoredError) {
	return nil, &sandbox.AuthoredError{Type: agent.ErrFileNotFound, Message: "no files"}
}

// manyAsOne matches the paths of programs that are not alone in their executable.
var manyAsOne = regexp.MustCompile(`\btool\d+\.`)

// run runs a program once, in the executable that contains it.
func run(t *testing.T, p *sandbox.Pool, source, path, args string) sandbox.Result {
	t.Helper()
	req := sandbox.Request{Program: sandbox.Program{Source: source, Checksum: agent.Checksum(source)},
		Owner: agent.Owner{Name: "o"}, Role: "tester", Method: "run", CallID: "c", Now: time.Unix(1790000000, 0),
		Timeout: time.Minute}
	if err := json.Unmarshal([]byte(args), &req.Args); err != nil {
		t.Fatal(err)
	}
	shared.made.Add(req.Program.Checksum, path, nil)
	return p.Run(t.Context(), req, host{})
}
