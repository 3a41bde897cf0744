package tools

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/why"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Calls that end in other ways than a warm one are explained, too.
func TestKindsOfCalls(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.nests": {rig.ProgDelegates}, "calculator.add": {rig.ProgAdd},
		"r.fetches": {rig.ProgFetches}, "r.m": {rig.ProgGiven},
		"r.unsafe": {rig.Program("\treturn exec.Command(\"x\").Run(), nil", "os/exec"), rig.ProgGiven}})
	d := rig.Start(t, m)
	s := d.Session("r")

	nests := d.Call(s, "nests")
	x, page := explained(d, nests.CallID)
	if len(x.Delegated) != 1 || x.Delegated[0].Method != "add" || len(x.Effects) != 1 {
		t.Fatalf("nested: %+v, %+v", x.Delegated, x.Effects)
	}
	says(t, page, "called calculator.add, "+x.Delegated[0].CallID+": ok",
		"2 model requests and 30 tokens with those of the calls below it")
	_, page = explained(d, x.Delegated[0].CallID)
	says(t, page, "recurgentd why "+nests.CallID)

	_, page = explained(d, d.Call(s, "fetches", "http://user:hunter2@127.0.0.1:1/x").CallID)
	if strings.Contains(page, "hunter2") {
		t.Errorf("a password shows:\n%s", page)
	}

	x, page = explained(d, d.Call(s, "unsafe", 1).CallID)
	says(t, page, "it was refused before it ran")
	if len(x.Candidates) != 1 || x.Candidates[0].Stage != "validation" {
		t.Errorf("refused by the gate: %+v", x.Candidates)
	}

	secret := d.CallWith(s, "m", map[string]any{"password": "correct-horse-battery"})
	_, page = explained(d, secret.CallID)
	if strings.Contains(page, "correct-horse") || strings.Contains(page, "recurgentd right") {
		t.Errorf("a secret shows, or a verdict is offered that is not taken:\n%s", page)
	}

	_, page = explained(d, d.Call(s, "name=", "x").CallID)
	says(t, page, "It needed no program: the call changes the context of its session.")

	judged := d.Call(s, "m", 7)
	d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+judged.CallID+"/verdict", map[string]any{"verdict": "right"})
	_, page = explained(d, judged.CallID)
	says(t, page, "a person said that it is right", "recurgentd verdict "+judged.CallID+" --drop",
		"this call has become one since", "A person has judged it right")

	if r := d.Send(http.MethodGet, "/v1/calls/call_06gzqwq081srb0e6zx42fm96t4/why", nil,
		nil); r.Status != http.StatusNotFound {
		t.Errorf("no such call: %d %s", r.Status, r.Body)
	}
	if _, _, code := d.Client("why", "call_06gzqwq081srb0e6zx42fm96t4"); code != 3 {
		t.Errorf("recurgentd why of no call: exit %d", code)
	}
}

// A call that still runs is explained as far as it has got.
func TestRunningCall(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.Held(rig.ProgGiven)}})
	d := rig.Start(t, m)
	s := d.Session("r")
	r := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method": "m", "args": [1]}`),
		map[string]string{"Prefer": "respond-async"})
	var accepted struct {
		CallID string `json:"call_id"`
	}
	if err := json.Unmarshal(r.Body, &accepted); err != nil || r.Status != http.StatusAccepted {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	x, page := explained(d, accepted.CallID)
	says(t, page, "r.m has been running since", "Until then it can be canceled.",
		"POST /v1/calls/"+accepted.CallID+"/cancel {}")
	if x.Status != "running" || len(x.Counterfactuals) > 0 {
		t.Errorf("running: %+v", x)
	}
	m.Release()
}

// Another's call is not there for a token without the right to operate, and one's own is explained with requests that
// the token may send.
func TestAnothersCall(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgGiven}})
	file := rig.WriteFile(t, "tokens",
		"alice alice-secret-of-32-characters-xx scopes=read,call\nbob bob-secret-of-32-characters-xxxx scopes=read,call\n"+
			"carol carol-secret-of-32-characters-x namespace=acme scopes=read,call,operate,admin\n")
	d := rig.Start(t, m, "--auth-tokens-file", file)
	alice := d.As("alice-secret-of-32-characters-xx")
	call := alice.Call(alice.Session("r"), "m", 1)
	path := "/v1/calls/" + call.CallID + "/why"
	var x why.Explanation
	alice.Do(http.StatusOK, http.MethodGet, path, nil).Into(t, &x)
	if x.CallID != call.CallID || len(x.Next) < 3 {
		t.Errorf("the owner: %+v", x)
	}
	for _, step := range x.Next {
		take(alice, step)
	}
	for _, token := range []string{"bob-secret-of-32-characters-xxxx", "carol-secret-of-32-characters-x"} {
		d.As(token).Do(http.StatusNotFound, http.MethodGet, path, nil)
	}
}
