package tools

import (
	"net/http"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// guarded starts a daemon for ann, who may call, and op, who may do all.
func guarded(t *testing.T, m *rig.Model) (ann, op *rig.Daemon) {
	t.Helper()
	const annToken, opToken = "token-of-ann-0001", "token-of-op-0002"
	d := rig.Start(t, m, "--auth-tokens-file", rig.WriteFile(t, "tokens",
		"ann "+annToken+" scopes=read,call\nop "+opToken+"\n"))
	return d.As(annToken), d.As(opToken)
}

// A verdict of somebody with the right to operate stays in force: whoever may only call neither replaces it nor
// takes it back.
func TestVerdictsInForce(t *testing.T) {
	t.Parallel()
	ann, op := guarded(t, rig.NewModel(t, rig.Script{"tax.net": {progTax60}}))
	op.Policy(object{"correction": "manual"})
	call := ann.Call(ann.Session("tax"), "net", 1000)
	said := object{"verdict": "wrong", "expected": 700}
	first := verdict(op, call, said)
	if first["state"] != "active" || first["example_state"] != "active" {
		t.Fatalf("the verdict of who may operate is %v", first)
	}
	if again := verdict(ann, call, said); !rig.Equal(first, again) {
		t.Errorf("the same verdict again: %v, want %v", again, first)
	}
	path := "/v1/calls/" + call.CallID + "/verdict"
	for _, x := range []struct {
		method string
		body   object
	}{{http.MethodPost, object{"verdict": "right"}}, {http.MethodPost, object{"verdict": "wrong", "expected": 650}},
		{http.MethodPost, object{"verdict": "wrong"}}, {http.MethodDelete, nil}} {
		var body []byte
		if x.body != nil {
			body = rig.Encode(t, x.body)
		}
		got := ann.Send(x.method, path, body, nil)
		rig.CheckProblem(t, x.method, got)
		if o := got.Object(t); got.Status != http.StatusForbidden || o["code"] != "insufficient_scope" ||
			o["missing"] != "operate" {
			t.Errorf("%s %v: %d %s", x.method, x.body, got.Status, got.Body)
		}
	}
	if now := ann.Get(path); !rig.Equal(first, now) {
		t.Errorf("the verdict is %v, want %v", now, first)
	}
	if kept := op.Get(rig.MethodPath("tax", "net") +
		"/examples")["examples"].([]any); len(kept) != 1 || kept[0].(object)["state"] != "active" {
		t.Errorf("the examples are %v", kept)
	}
	op.Do(http.StatusNoContent, http.MethodDelete, path, nil)
	if v := verdict(ann, call, object{"verdict": "right"}); v["state"] != "proposed" {
		t.Errorf("after it was taken back: %v", v)
	}
}

// The list of examples can be put again as it was read: proposals in it stay proposals, also beside an active example
// of the same input. Its ETag keeps two people from overwriting each other.
func TestExamplesAreReadAndPut(t *testing.T) {
	t.Parallel()
	ann, op := guarded(t, rig.NewModel(t, rig.Script{"tax.net": {progTax60}}))
	path := rig.MethodPath("tax", "net") + "/examples"
	put := func(status int, header map[string]string, all any) rig.Response {
		t.Helper()
		got := op.Send(http.MethodPut, path, rig.Encode(t, object{"examples": all}), header)
		if got.Status != status {
			t.Fatalf("PUT with %v: %d %s, want %d", header, got.Status, got.Body, status)
		}
		return got
	}
	none := op.Send(http.MethodGet, path, nil, nil)
	put(http.StatusPreconditionFailed, map[string]string{"If-Match": "*"}, list(example(600, 1000)))
	first := put(http.StatusOK, map[string]string{"If-Match": none.Header.Get("ETag")}, list(example(600, 1000)))
	put(http.StatusPreconditionFailed, map[string]string{"If-None-Match": "*"}, list(example(600, 1000)))
	put(http.StatusPreconditionFailed, map[string]string{"If-Match": none.Header.Get("ETag")}, list(example(600, 1000)))

	s := ann.Session("tax")
	judged := verdict(ann, ann.Call(s, "net", 1000), object{"verdict": "wrong", "expected": 650})
	rewritten := verdict(ann, ann.Call(s, "net", 10), object{"verdict": "wrong", "expected": 7})
	put(http.StatusPreconditionFailed, map[string]string{"If-Match": first.Header.Get("ETag")},
		list(example(600, 1000)))
	now := op.Send(http.MethodGet, path, nil, nil)
	all := now.Object(t)["examples"].([]any)
	back := put(http.StatusOK, map[string]string{"If-Match": now.Header.Get("ETag")}, all)
	if !rig.Equal(now.Object(t), back.Object(t)) || len(all) != 3 || back.Header.Get("ETag") != now.Header.Get("ETag") {
		t.Errorf("put as it was read: %s, want %s", back.Body, now.Body)
	}
	for i, x := range all { // what a person writes themselves counts
		if x.(object)["id"] == rewritten["example_id"] {
			all[i].(object)["expect"] = object{"value": 8}
		}
	}
	states := map[any]any{}
	for _, x := range put(http.StatusOK, nil, all).Object(t)["examples"].([]any) {
		states[x.(object)["id"]] = x.(object)["state"]
	}
	if states[judged["example_id"]] != "proposed" || states[rewritten["example_id"]] != "active" || len(states) != 3 {
		t.Errorf("after a proposal was rewritten the states are %v", states)
	}
	op.Do(http.StatusOK, http.MethodPost, path+"/"+judged["example_id"].(string)+"/reject", nil)
	put(http.StatusPreconditionFailed, map[string]string{"If-Match": now.Header.Get("ETag")}, list(example(600, 1000)))
}

// An accepted verdict has the program corrected that serves by then, though it is not the one that was judged.
func TestAcceptedAfterAnotherProgram(t *testing.T) {
	t.Parallel()
	ann, op := guarded(t, rig.NewModel(t, rig.Script{"tax.net": {progTax60, progTax70}}))
	s := ann.Session("tax")
	proposed := verdict(ann, ann.Call(s, "net", 1000), object{"verdict": "wrong", "expected": 700})
	op.Do(http.StatusOK, http.MethodPut, rig.MethodPath("tax", "net"),
		object{"code": rig.Program("\treturn call.Arg(0, \"gross\").(float64) * 60 / 100, nil")})
	op.Do(http.StatusOK, http.MethodPost, rig.MethodPath("tax", "net")+"/examples/"+proposed["example_id"].(string)+
		"/accept", nil)
	rig.Until(t, "the program is corrected",
		func() bool { return op.Artifact("tax", "net")["current_generation"] == "gen-3" })
	wantCorrection(op, "tax", "net", "adopted")
	ann.WantValue(ann.Call(s, "net", 1000), 700, "persisted")
}

// Code and a generation exclude each other.
func TestTriesOfTwoPrograms(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {progTax60}}))
	d.WantValue(d.Call(d.Session("tax"), "net", 1000), 600, "generated")
	for _, path := range []string{"/try", "/examples/run"} {
		got := d.Send(http.MethodPost, rig.MethodPath("tax", "net")+path,
			rig.Encode(t, object{"code": progTax70, "generation": "gen-1"}), nil)
		rig.CheckProblem(t, path, got)
		if got.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s of both: %d %s", path, got.Status, got.Body)
		}
	}
}
