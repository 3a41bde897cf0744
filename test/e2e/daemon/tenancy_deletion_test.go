package daemon

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A namespace is deleted while a call forges and a stream listens: both end, nothing is left in the daemon or on disk,
// and one of the same name is empty.
func TestDeletion(t *testing.T) {
	m := rig.NewModel(t, rig.Script{"clerk.greet": {greeter("acme")}, "clerk.slow": {rig.Held(greeter("slow"))}})
	defer m.Release()
	d := rig.Start(t, m)
	const canary = "canary-of-acme"
	in := person(d, "", "acme")
	if r := in.Send(http.MethodGet, "/v1/tools", nil, nil); r.Status != http.StatusNotFound {
		t.Fatalf("before it is made: %d %s", r.Status, r.Body)
	}
	d.Do(http.StatusCreated, http.MethodPut, "/v1/namespaces/acme", nil)
	id := in.Session("clerk", map[string]any{"context": map[string]any{"note": canary}})
	in.WantValue(in.Call(id, "greet", canary), "hello from acme to "+canary, "generated")
	started := in.Send(http.MethodPost, "/v1/sessions/"+id+"/calls",
		rig.Encode(t, map[string]any{"method": "slow", "args": []any{canary}}),
		map[string]string{"Prefer": "respond-async"}).Object(t)
	rig.Until(t, "the model is asked", func() bool { return len(m.Questions()) == 2 })
	followed := follow(t, in, "")
	if got := d.Get("/v1/namespaces/acme"); fmt.Sprint(
		got["holds"]) != "map[connections:0 methods:1 sessions:1 tools:1]" {
		t.Errorf("it holds %v", got)
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/namespaces/acme", nil)
	followed("the stream ends by itself")
	if r := in.Send(http.MethodGet, "/v1/calls/"+started["call_id"].(string), nil,
		nil); r.Status != http.StatusNotFound {
		t.Errorf("its call: %d %s", r.Status, r.Body)
	}
	d.Do(http.StatusNotFound, http.MethodDelete, "/v1/namespaces/acme", nil)
	d.Do(http.StatusConflict, http.MethodDelete, "/v1/namespaces/default", nil)
	for file, data := range d.Everything() {
		if bytes.Contains(data, []byte(canary)) {
			t.Errorf("%s holds what was deleted", file)
		}
	}
	d.Do(http.StatusCreated, http.MethodPut, "/v1/namespaces/acme", nil)
	for _, list := range []string{"/v1/tools", "/v1/sessions", "/v1/calls", "/v1/maintenance/audit",
		"/v1/recommendations"} {
		if got := in.List(list); len(got) != 0 {
			t.Errorf("the new one has %s: %v", list, got)
		}
	}
	var actions []string
	for _, e := range d.List("/v1/maintenance/audit") {
		actions = append(actions, fmt.Sprint(e["actor"], " ", e["action"], " ", e["target"]))
	}
	if got := strings.Join(actions,
		", "); got != "local namespace.create acme, local namespace.delete acme, local namespace.create acme" {
		t.Errorf("the audit trail says %s", got)
	}
}

// A daemon that is killed while it deletes a namespace has all of it afterwards, or nothing.
func TestKilledWhileDeleting(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the moment of a kill")
	}
	m := rig.NewModel(t, rig.Script{"clerk.greet": {greeter("acme")}})
	d := rig.Start(t, m)
	const canary = "canary-of-acme"
	for round := range 3 {
		in := person(d, "", "acme")
		d.Do(http.StatusCreated, http.MethodPut, "/v1/namespaces/acme", nil)
		id := in.Session("clerk")
		in.WantValue(in.Call(id, "greet", canary), "hello from acme to "+canary, "generated")
		asked := len(m.Questions())
		sent := make(chan error, 1)
		go func() {
			_, err := d.Try(context.Background(), http.MethodDelete, "/v1/namespaces/acme", nil, nil)
			sent <- err
		}()
		if round > 0 {
			rig.Until(t, "the deletion is under way", func() bool {
				r, err := d.Try(context.Background(), http.MethodGet, "/v1/namespaces?limit=10", nil, nil)
				return err == nil && !bytes.Contains(r.Body, []byte(`"acme"`))
			})
		}
		d.Stop(syscall.SIGKILL)
		<-sent
		d.Start()
		in = person(d, "", "acme")
		if r := in.Send(http.MethodGet, "/v1/tools", nil, nil); r.Status == http.StatusOK {
			in.WantValue(in.Call(id, "greet", canary), "hello from acme to "+canary, "persisted")
			if len(m.Questions()) != asked {
				t.Error("what is left of it is not whole")
			}
			d.Do(http.StatusNoContent, http.MethodDelete, "/v1/namespaces/acme", nil)
		}
		for file, data := range d.Everything() {
			if bytes.Contains(data, []byte(canary)) {
				t.Errorf("round %d: %s holds what was deleted", round, file)
			}
		}
	}
}

// A namespace that a token names needs no PUT, begins empty again after its deletion, and its token goes on working.
func TestDeletionOfATokensNamespace(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"clerk.greet": {greeter("first"), greeter("second")}})
	d := guarded(t, m)
	root, a, b := person(d, tokenRoot, ""), person(d, tokenA, ""), person(d, tokenB, "")
	if got := root.List("/v1/namespaces"); len(got) != 1 || got[0]["name"] != "default" {
		t.Errorf("before anybody came: %v", got)
	}
	for _, x := range []*rig.Daemon{a, person(d, tokenRoot, "b")} { // by its token, and by the header
		if got := x.List("/v1/tools"); len(got) != 0 {
			t.Errorf("it begins with %v", got)
		}
	}
	const canary = "canary-of-tokens"
	for round, name := range []string{"first", "second"} {
		s := a.Session("clerk")
		a.WantValue(a.Call(s, "greet", canary), "hello from "+name+" to "+canary, "generated")
		if round == 1 {
			break
		}
		if holding(d, canary) == "" {
			t.Error("nothing holds what is to be deleted")
		}
		a.Do(http.StatusForbidden, http.MethodDelete, "/v1/namespaces/a", nil)
		root.Do(http.StatusNoContent, http.MethodDelete, "/v1/namespaces/a", nil)
		if r := a.Send(http.MethodGet, "/v1/sessions/"+s, nil, nil); r.Status != http.StatusNotFound {
			t.Errorf("its session: %d %s", r.Status, r.Body)
		}
		if file := holding(d, canary); file != "" {
			t.Errorf("%s holds what was deleted", file)
		}
	}
	b.Do(http.StatusForbidden, http.MethodGet, "/v1/namespaces/a", nil)
}

// A namespace is deleted while one of its programs is compiled, runs compiled, and while calls of it run and wait:
// nothing of it is left, and another namespace goes on.
func TestDeletionUnderLoad(t *testing.T) {
	t.Parallel()
	double := func(canary string) string { // its executable holds the text, too
		return rig.Program("\tn, ok := call.Args[0].(float64)\n\tif !ok {\n\t\treturn \"" + canary +
			"\", nil\n\t}\n\treturn n * 2, nil")
	}
	const canary = "canary-of-acme"
	m := rig.NewModel(t, rig.Script{"worker.double": {double(canary), double("beta")}, "clerk.greet": {greeter("acme")},
		"clerk.held": {rig.Held(greeter(canary))},
		"clerk.spin": {rig.Program("\tfor n := 0; ; n++ {\n\t\tif n < 0 {\n\t\t\treturn nil, nil\n\t\t}\n\t}")}})
	defer m.Release()
	d := rig.StartIn(t, m, []string{rig.OwnCompiler})
	acme, beta := person(d, "", "acme"), person(d, "", "beta")
	for _, name := range []string{"acme", "beta"} {
		d.Do(http.StatusCreated, http.MethodPut, "/v1/namespaces/"+name, nil)
	}
	inAcme, inBeta := acme.Session("worker"), beta.Session("worker")
	acme.WantValue(acme.Call(inAcme, "double", "text"), canary, "generated")
	beta.WantValue(beta.Call(inBeta, "double", 4), 8, "generated")
	if _, shared := d.Rows("SELECT 1"); !shared && holding(d, canary) == "" {
		t.Error("nothing holds the text before")
	}
	clerk := acme.Session("clerk", map[string]any{"context": map[string]any{"note": canary}})
	acme.WantValue(acme.Call(clerk, "greet", canary), "hello from acme to "+canary, "generated")
	var begun []string
	for _, method := range []string{"held", "spin", "spin", "spin"} { // one forges, two run, one waits for a runner
		r := acme.Send(http.MethodPost, "/v1/sessions/"+acme.Session("clerk")+"/calls",
			rig.Encode(t, map[string]any{"method": method, "args": []any{canary}}),
			map[string]string{"Prefer": "respond-async"})
		begun = append(begun, r.Object(t)["call_id"].(string))
	}
	rig.Until(t, "a program spins", func() bool { return d.Metric(`recurgent_runners{state="busy"}`) > 0 })
	followed := follow(t, acme, "")
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/namespaces/acme", nil)
	followed("the stream ends by itself")
	if file := holding(d, canary); file != "" {
		t.Errorf("%s holds what was deleted", file)
	}
	beta.WantValue(beta.Call(inBeta, "double", 21), 42, "persisted")
	d.Do(http.StatusCreated, http.MethodPut, "/v1/namespaces/acme", nil)
	for _, id := range begun {
		if r := acme.Send(http.MethodGet, "/v1/calls/"+id, nil, nil); r.Status != http.StatusNotFound {
			t.Errorf("a call of it: %d %s", r.Status, r.Body)
		}
	}
	if got := acme.List("/v1/calls?status=running"); len(got) != 0 {
		t.Errorf("the new one runs %v", got)
	}
	d.Restart()
	acme.URL, beta.URL = d.URL, d.URL
	for _, list := range []string{"/v1/tools", "/v1/sessions", "/v1/calls", "/v1/files"} {
		if got := acme.List(list); len(got) != 0 {
			t.Errorf("the new one has %s: %v", list, got)
		}
	}
	beta.WantValue(beta.Call(inBeta, "double", 21), 42, "persisted")
}

// holding returns the name of a file of what is stored whose name or bytes have the text; "" for none.
func holding(d *rig.Daemon, text string) string {
	d.T.Helper()
	for name, data := range d.Everything() {
		if bytes.Contains(data, []byte(text)) || strings.Contains(name, text) {
			return name
		}
	}
	return ""
}
