package daemon

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// keeps has state of every kind that a program can have beside its context: variables of its package, of each type that
// holds others, and what closures captured. It returns all of it as it was when the call began.
var progKeeps = rig.Program(`	was := []any{count, len(list), len(table), *last, strings.Join(list, ","), add("")}
	word, _ := call.Arg(0, "word").(string)
	count++
	list = append(list, word)
	note(word)
	*last = word
	add(word)
	call.Context["seen"] = word
	return was, nil
}

var (
	count int
	list  []string
	table = map[string]bool{"first": true}
	last  = new(string)
	add   = func() func(string) string {
		kept := ""
		return func(more string) string {
			kept += more
			return kept
		}
	}()
)

func note(word string) {
	table[word] = true`, "strings")

// The same program runs warm in two namespaces, call by call in turn. Each namespace has runners of its own, and no
// call finds anything that another call left, whether in its own namespace or in the other.
func TestStateOfProgramsStaysApart(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"clerk.keeps": {progKeeps}})
	d := guarded(t, m)
	a, b, root := person(d, tokenA, ""), person(d, tokenB, ""), person(d, tokenRoot, "")
	inA, inB := a.Session("clerk"), b.Session("clerk")
	fresh := []any{0, 0, 1, "", "", ""}
	warm := func(want float64) { // a runner is back a moment after its call's reply
		t.Helper()
		rig.Until(t, fmt.Sprint(want, " warm runners"),
			func() bool { return root.Metric(`recurgent_runners{state="warm"}`) == want })
	}
	for i := 0; i < 20 && !t.Failed(); i++ { // with one client one runner of each namespace serves all its calls
		a.WantValue(a.Call(inA, "keeps", fmt.Sprint("of-a-", i)), fresh, "")
		if i == 0 {
			warm(1)
		}
		b.WantValue(b.Call(inB, "keeps", fmt.Sprint("of-b-", i)), fresh, "")
	}
	warm(2) // one of each namespace
	for _, x := range []struct {
		d    *rig.Daemon
		in   string
		want string
	}{{a, inA, "of-a-19"}, {b, inB, "of-b-19"}} {
		if got := x.d.Get("/v1/sessions/" + x.in + "/context"); got["seen"] != x.want {
			t.Errorf("the context is %v, want %s", got, x.want)
		}
	}
	root.Do(http.StatusNoContent, http.MethodDelete, "/v1/namespaces/b", nil)
	warm(1) // none of the namespace that was erased
	a.WantValue(a.Call(inA, "keeps", "at last"), fresh, "persisted")
}

// A key of repeated requests means one call for each owner of each namespace: three use the same key for the same
// request at the same moment, and all three run.
func TestOneKeyInTwoNamespaces(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"clerk.greet": {rig.Held(greeter("first")), rig.Held(greeter("second")),
		rig.Held(greeter("third"))}})
	file := rig.WriteFile(t, "tokens", tokensOfTwo+"ben token-of-ben-in-a-0004 namespace=a\n")
	d := rig.Start(t, m, "--auth-tokens-file", file)
	type sender struct {
		*rig.Daemon
		path    string
		replies chan rig.Response
	}
	send := func(s sender) {
		r, err := s.Try(context.Background(), http.MethodPost, s.path, []byte(`{"method": "greet", "args": ["you"]}`),
			map[string]string{"Idempotency-Key": "same"})
		if err != nil {
			r.Body = []byte(err.Error())
		}
		s.replies <- r
	}
	var all []sender
	for i, token := range []string{tokenA, tokenB, "token-of-ben-in-a-0004"} {
		p := person(d, token, "")
		role := "clerk"
		if i == 2 { // else ben waits for the program of ann
			role = "usher"
			m.Answer(role, "greet", openaitest.Reply{Code: greeter("ben")})
		}
		all = append(all, sender{p, "/v1/sessions/" + p.Session(role) + "/calls", make(chan rig.Response, 1)})
	}
	for _, s := range all[:2] {
		go send(s)
	}
	m.Arrived(2) // both are under way under the key
	send(all[2])
	again := all[0]
	again.replies = make(chan rig.Response, 1)
	send(again)
	if r := <-again.replies; r.Status != http.StatusConflict {
		t.Errorf("the key of a call under way, once more: %d %s", r.Status, r.Body)
	}
	m.Release()
	values := map[string]bool{}
	for i, s := range all {
		first := <-s.replies
		send(s)
		second := <-s.replies
		if first.Status != http.StatusOK || first.Header.Get("Idempotent-Replayed") != "" ||
			second.Header.Get("Idempotent-Replayed") != "true" || !bytes.Equal(first.Body, second.Body) {
			t.Errorf("%d: first %d %s\nthen %d %s", i, first.Status, first.Body, second.Status, second.Body)
		}
		value, _ := first.Object(t)["outcome"].(map[string]any)["value"].(string)
		values[value] = true
	}
	if len(values) != 3 || !values["hello from ben to you"] {
		t.Errorf("the values are %v, want one of each", values)
	}
	if n := len(m.Questions()); n != 3 {
		t.Errorf("the model was asked %d times", n)
	}
}
