package local

import (
	"encoding/json"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// For every way to give them, arguments are arranged as the daemon arranges them.
func TestArrangeAsTheDaemon(t *testing.T) {
	t.Parallel()
	parameters := []string{
		`[{"name":"a","required":true},{"name":"b"}]`,
		`[{"name":"a","required":true,"read_by":"position"},{"name":"b","default":7,"read_by":"position"},{"name":"c","read_by":"position"}]`,
		`[{"name":"a","required":true,"read_by":"name"},{"name":"b","read_by":"name","aliases":["bee","c"]}]`,
		`[{"name":"a","read_by":"position"},{"name":"rest","variadic":true,"read_by":"position"}]`,
		`[{"name":"a","read_by":"position"},{"name":"b","read_by":"name"}]`,
		`[{"name":"rest","variadic":true,"read_by":"position"},{"name":"b","read_by":"name"},{"name":"c","read_by":"name"}]`,
		`[{"name":"a","read_by":"position"},{"name":"arg2","description":"not read by the program","read_by":"position"},{"name":"b","read_by":"position"},{"name":"c","read_by":"position"}]`,
		`[]`,
	}
	args := []string{`[]`, `[1]`, `[1,2]`, `[1,2,3]`, `[null]`}
	kwargs := []string{`{}`, `{"a":1}`, `{"b":2}`, `{"c":3}`, `{"a":1,"c":3}`, `{"bee":4}`, `{"b":2,"bee":4}`,
		`{"rest":[5,6]}`, `{"rest":5}`, `{"a":1,"rest":[5]}`, `{"other":0}`}
	for _, p := range parameters {
		for i := range 2 * len(args) {
			a, open := args[i/2], i%2 == 1
			takes := &agent.Interface{Origin: agent.OriginInferred, Open: open}
			read(t, p, &takes.Parameters)
			program := &Program{Parameters: p, Open: open}
			for _, k := range kwargs {
				var list []json.RawMessage
				var named map[string]json.RawMessage
				read(t, a, &list)
				read(t, k, &named)
				gotArgs, gotKwargs, err := program.arrange(list, named)
				wantArgs, wantKwargs := takes.Arrange(list, json.RawMessage(k))
				if err != nil || !agent.SameInput(gotArgs, agent.Encoded(gotKwargs), wantArgs, wantKwargs) {
					t.Errorf("%s (open: %t) with %s and %s: got %s %s, %v, want %s %s", p, open, a, k, agent.Encoded(gotArgs),
						agent.Encoded(gotKwargs), err, agent.Encoded(wantArgs), wantKwargs)
				}
			}
		}
	}
}

func read(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
}
