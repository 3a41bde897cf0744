package diff

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

type task struct {
	ID, Role, Method string
	Context          map[string]any
	Calls            []struct {
		Args   []json.RawMessage
		Kwargs map[string]json.RawMessage
		Expect any
	}
}

// The thirty recorded programs serve all their calls, in order and in one session.
func TestRecordedPrograms(t *testing.T) {
	data, err := os.ReadFile("testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	var tasks []task
	if err := json.Unmarshal(data, &tasks); err != nil {
		t.Fatal(err)
	}
	if len(tasks) != 30 {
		t.Fatalf("got %d tasks, want 30", len(tasks))
	}
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		t.Run(task.ID, func(t *testing.T) {
			source, err := os.ReadFile("testdata/recorded/" + task.ID + ".go.txt")
			if err != nil {
				t.Fatal(err)
			}
			serveTask(t, g, task, string(source))
		})
	}
}

func serveTask(t *testing.T, g *gate.Gate, task task, source string) {
	p, refusal := g.Check(source)
	if refusal != nil {
		t.Fatalf("refused: %+v", refusal)
	}
	c, err := interp.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	context := task.Context
	history := []recurgent.Record{}
	for i, call := range task.Calls {
		in, err := recurgent.New(recurgent.Input{Role: task.Role, Method: task.Method, Args: call.Args, Kwargs: call.Kwargs, Context: context}, host{history})
		if err != nil {
			t.Fatal(err)
		}
		c.Begin(time.Unix(1790000000, 0), uint64(i))
		value, err, panicked := c.Run(in)
		if panicked != nil {
			t.Errorf("call %d: panic: %+v", i, panicked)
			continue
		}
		if want, isError := wantsError(call.Expect); isError {
			if err == nil {
				t.Errorf("call %d: got %v, want the error %v", i, value, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("call %d: error %v", i, err)
			continue
		}
		raw, err := interp.Encode(value)
		if err != nil {
			t.Errorf("call %d: encode: %v", i, err)
			continue
		}
		var got any
		json.Unmarshal(raw, &got)
		if !reflect.DeepEqual(got, call.Expect) {
			t.Errorf("call %d: got %s, want %v", i, raw, call.Expect)
		}
		context = in.Context
		history = append(history, recurgent.Record{Role: task.Role, MethodName: task.Method, Args: in.Args, Kwargs: in.Kwargs,
			OutcomeSummary: map[string]any{"status": "ok", "ok": true}, Seq: i + 1, Speaker: "user"})
	}
}

// wantsError reports whether the expectation is an authored error: {"error": type}.
func wantsError(expect any) (any, bool) {
	m, ok := expect.(map[string]any)
	if !ok || len(m) != 1 {
		return nil, false
	}
	e, ok := m["error"]
	return e, ok
}

// host answers a program's questions about its session; there is nothing else here.
type host struct{ history []recurgent.Record }

func (h host) Ask(op string, params, result any) error {
	if op != "history" {
		return &recurgent.Failure{Type: "denied", Message: "no " + op + " here"}
	}
	data, err := json.Marshal(h.history)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, result)
}
