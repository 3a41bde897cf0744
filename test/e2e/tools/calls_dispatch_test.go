package tools

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The request for a method that takes free text shows the earlier calls of its session: only a model that knows the
// previous question and its answer understands "no, I meant mum". Requests for other methods show neither arguments nor
// values.
func TestDispatchMethodsKnowWhatWasSaid(t *testing.T) {
	t.Parallel()
	failing := rig.Program("\treturn nil, recurgent.Fail(\"not_found\", \"no such list\")")
	m := rig.NewModel(t, rig.Script{
		"todo.ask": {rig.Program("\treturn 2, nil"),
			rig.Program("\treturn map[string]any{\"count\": 1, \"api_key\": \"k3y\"}, nil"), failing,
			rig.Program("\treturn strings.Repeat(\"é\", 600), nil", "strings"), rig.Program("\treturn \"done\", nil")},
		"todo.count": {rig.ProgGiven},
	})
	d := rig.Start(t, m)
	s := d.Session("todo")
	turns := func() string {
		_, text, _ := strings.Cut(m.LastQuestion().User, "<earlier_turns>\n")
		text, _, _ = strings.Cut(text, "\n</earlier_turns>")
		_, text, _ = strings.Cut(text, "\n")
		return text
	}
	d.WantValue(d.Call(s, "ask", "how many tasks contain milk?"), 2.0, "generated")
	if got := turns(); got != "" {
		t.Errorf("the first question was shown %q", got)
	}
	d.CallWith(s, "ask", map[string]any{"text": "no, I meant mum", "password": "hunter2"})
	if got, want := turns(), `- ask args ["how many tasks contain milk?"] gave 2`; got != want {
		t.Errorf("the second question was shown %q, want %q", got, want)
	}
	d.WantError(d.Call(s, "ask", "and in the other list?"), "not_found")
	d.Call(s, "ask", "repeat it")
	d.Call(s, "ask", "and now?")
	want := []string{
		`- ask args ["how many tasks contain milk?"] gave 2`,
		`- ask args [] kwargs {"password":"[masked]","text":"no, I meant mum"} gave {"api_key":"[masked]","count":1}`,
		`- ask args ["and in the other list?"] failed: not_found: no such list`,
		`- ask args ["repeat it"] gave "` + strings.Repeat("é", 499) + `…`,
	}
	if got := turns(); got != strings.Join(want, "\n") {
		t.Errorf("the last question was shown\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	if text := fmt.Sprint(m.Questions()); strings.Contains(text, "hunter2") || strings.Contains(text, "k3y") {
		t.Error("a secret reached the model")
	}

	d.Call(s, "count", "x")
	if got := turns(); got != "" || strings.Contains(m.LastQuestion().User, "milk") {
		t.Errorf("another method was shown %q", got)
	}
	d.Call(d.Session("todo"), "ask", "what did I ask?")
	if got := turns(); got != "" {
		t.Errorf("another session was shown %q", got)
	}
	d.Policy(map[string]any{"history_preview_limit": 0})
	d.Call(s, "ask", "once more")
	if got := turns(); got != "" {
		t.Errorf("an operator who shows no history showed %q", got)
	}
}
