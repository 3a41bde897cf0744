//go:build !scripted

package runtime

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A nested call whose arguments have no JSON form is not made, and leaves a record all the same: the bad field is a
// text, the others are intact.
func TestArgumentsWithoutJSON(t *testing.T) {
	tests := []struct{ name, value, imports, want string }{
		{"NaN", "math.NaN()", "math", `"NaN"`},
		{"+Inf", "math.Inf(1)", "math", `"+Inf"`},
		{"a channel", "make(chan int)", "", `"(chan)"`},
		{"a cyclic value", "func() any { m := map[string]any{}; m[\"m\"] = m; return m }()", "",
			`"{\"m\": {\"m\": {\"m\": {\"m\": ...}}}}"`},
		{"depth 1000", "func() any { var v any = 1; for range 1000 { v = []any{v} }; return v }()", "",
			`"[[[[...]]]]"`},
	}
	programs := map[string][]string{"tool.m": {run("\treturn call.Args, nil")}}
	for _, tt := range tests {
		var imports []string
		if tt.imports != "" {
			imports = []string{tt.imports}
		}
		programs["main."+tt.name] = []string{run("\to := call.Tool(\"tool\").CallWith(\"m\", []any{\"before\", "+
			tt.value+"}, map[string]any{\"password\": \"hunter2\", \"k\": 1})\n\treturn o.ErrorType, nil", imports...)}
	}
	r, model := newRuntime(t, programs)
	for _, tt := range tests {
		id, call := conversation(t, r, sessions.Request{Role: "main"})
		if got := call(tt.name); !got.Outcome.OK() || string(got.Outcome.Value) != `"non_serializable_result"` {
			t.Errorf("%s: the program got %+v", tt.name, got.Outcome)
		}
		page, err := r.env.Store.History(t.Context(), id, store.HistoryQuery{})
		if err != nil || len(page.Records) != 2 {
			t.Fatalf("%s: %d records, %v", tt.name, len(page.Records), err)
		}
		var rec agent.Record
		if err := json.Unmarshal(page.Records[0], &rec); err != nil {
			t.Fatal(err)
		}
		args, _ := json.Marshal(rec.Args)
		if string(args) != `["before",`+tt.want+`]` || string(rec.Kwargs) != `{"k":1,"password":"[masked]"}` ||
			rec.ErrorType != agent.ErrNonSerializable || rec.ProgramSource != agent.SourceNone {
			t.Errorf("%s: the record is %s", tt.name, page.Records[0])
		}
		entry, err := r.env.Store.Call(t.Context(), rec.CallID)
		if err != nil || !entry.Log.HistoryRecordAppended || !strings.HasPrefix(entry.Log.OutcomeErrorMessage,
			"argument 2: ") {
			t.Errorf("%s: the log entry is %+v, %v", tt.name, entry.Log, err)
		}
	}
	if n := model.Count("tool.m", ""); n != 0 {
		t.Errorf("the tool was asked for %d times", n)
	}
}
