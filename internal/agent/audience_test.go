package agent

import (
	"strings"
	"testing"
)

func TestShownNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"calculator": "calculator", "a-b_c9": "a-b_c9",
		"movie finder": "movie_finder", "Größe": "Größe", "計算": "計算", "a.b, c!": "a_b__c_",
		"a\u202eb\u200dc\U000e0041": "a_b_c_", strings.Repeat("x", 64): strings.Repeat("x", 64),
		strings.Repeat("é", 65): strings.Repeat("é", 63) + "…"} {
		if got := Identifier(name); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
	if got := Quoted("movie finder"); got != `"movie finder"` {
		t.Error(got)
	}
	for text, want := range map[string]string{" a\r\n\tb\u2028c\u00a0d ": "a b c d",
		"\u202ea\u2066b\u200b\u00adc\ufeff\ue000\U000e0041\x1b[2J\x00": "abc[2J", "\xffa": "a",
		"Größe, 計算!":            "Größe, 計算!",
		strings.Repeat("é", 21): strings.Repeat("é", 19) + "…"} {
		if got := OneLine(text, 20); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// A generation records at most two callers. Calls without an owner are not recorded.
func TestCallersAreBounded(t *testing.T) {
	t.Parallel()
	a := (*Artifact)(nil).Apply(ArtifactChange{Role: "r", MethodName: "m",
		Generation: &Generation{ID: "gen-1", Owner: "ann"}, Result: ClassOK, Caller: "ann"})
	for _, c := range []ArtifactChange{{Result: ClassOK}, {Result: ClassOK, Caller: "ann"},
		{Result: ClassIntrinsic, Caller: "eve"}, {Result: ClassOK, Caller: "ben"}, {Result: ClassOK, Caller: "eve"}} {
		was := a.Current()
		a = a.Apply(c)
		if len(was.Callers) > 1 && &was.Callers[0] != &a.Current().Callers[0] {
			t.Error("a call that adds nothing made another list")
		}
	}
	if got := strings.Join(a.Current().Callers, " "); got != "ann ben" || a.Owner != "ann" {
		t.Errorf("called by %s, of %s", got, a.Owner)
	}
	a = a.Apply(ArtifactChange{Generation: &Generation{ID: "gen-2", Owner: "ben"}})
	if a.Owner != "ann" || len(a.Current().Callers) != 0 || a.WithoutCalls().Owner+
		a.WithoutCalls().Current().Owner != "" || a.WithoutCalls().Find("gen-1").Callers != nil {
		t.Errorf("afterwards: %+v", a)
	}
}
