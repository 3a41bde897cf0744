package diff

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/compiled"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

type task struct {
	ID, Role, Method string
	Context          map[string]json.RawMessage
	Calls            []struct {
		Args   []json.RawMessage
		Kwargs map[string]json.RawMessage
		Expect any
	}
}

// The thirty recorded programs serve all their calls, in order and in one session.
func TestDiffRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
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
	b, err := bench()
	if err != nil {
		t.Fatal(err)
	}
	sources := make([]string, len(tasks))
	for i, task := range tasks {
		source, err := os.ReadFile("testdata/recorded/" + task.ID + ".go.txt")
		if err != nil {
			t.Fatal(err)
		}
		sources[i] = string(source)
	}
	refused, err := b.Build(t.Context(), sources)
	if err != nil {
		t.Fatal(err)
	}
	for i, task := range tasks {
		t.Run(task.ID, func(t *testing.T) {
			if refused[i] != nil {
				t.Fatal(refused[i])
			}
			serveTask(t, b, task, sources[i])
		})
	}
}

func serveTask(t *testing.T, b *compiled.Bench, task task, source string) {
	kept := map[string]json.RawMessage{}
	maps.Copy(kept, task.Context)
	history := []recurgent.Record{}
	for i, call := range task.Calls {
		kwargs, _ := json.Marshal(call.Kwargs)
		var named map[string]any
		_ = json.Unmarshal(kwargs, &named) // it was made from that
		past, _ := json.Marshal(history)
		req := sandbox.Request{Args: call.Args, Kwargs: kwargs, Context: kept, Now: time.Unix(1790000000, 0),
			Seed: uint64(i), Timeout: time.Minute}
		res := b.Run(t.Context(), source, req, compiled.Host{Past: past})
		if want, isError := wantsError(call.Expect); isError {
			if res.Authored == nil {
				t.Errorf("call %d: got %s %+v, want the error %v", i, res.Value, res.Failure, want)
			}
			continue
		}
		var got any
		if res.Value == nil || json.Unmarshal(res.Value, &got) != nil || !reflect.DeepEqual(got, call.Expect) {
			t.Errorf("call %d: got %s %+v %+v, want %v", i, res.Value, res.Authored, res.Failure, call.Expect)
			continue
		}
		res.Context.Apply(kept)
		history = append(history, recurgent.Record{Role: task.Role, MethodName: task.Method, Args: decoded(call.Args),
			Kwargs:         named,
			OutcomeSummary: map[string]any{"status": "ok", "ok": true}, Seq: i + 1, Speaker: "user"})
	}
}

func decoded(list []json.RawMessage) []any {
	out := make([]any, len(list))
	for i, raw := range list {
		_ = json.Unmarshal(raw, &out[i]) // the test's own data, which was decoded before
	}
	return out
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
