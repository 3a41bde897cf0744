package daemon

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A method's first ok call writes its manifest; under enforce another host is denied, in words and with a request that
// a person can follow, until a person has; the approval is audited, survives a restart and can be undone.
func TestAManifestIsEnforced(t *testing.T) {
	t.Parallel()
	own, other := newUpstream(t), newUpstream(t)
	m := rig.NewModel(t, rig.Script{"shop.rate": {fetches("GET url")},
		"shop.above": {rig.Program(
			"\tout := call.Tool(\"shop\").Call(\"rate\", call.Arg(0, \"url\"))\n\tif !out.OK() {\n\t\treturn nil, recurgent.Fail(out.ErrorType, out.ErrorMessage)\n\t}\n\treturn out.Value, nil")}})
	d := rig.Start(t, m, "--fetch-allow", own.host()+","+other.host())
	s := d.Session("shop")
	const path, request = "/v1/tools/shop/methods/rate/effects", "PUT /v1/tools/shop/methods/rate/effects"
	rig.CheckProblem(t, "before the first call", d.Do(http.StatusNotFound, http.MethodGet, path, nil))
	d.WantValue(d.Call(s, "rate", own.URL+"/a"), "answer 1", "generated")
	d.WantValue(d.Call(s, "above", own.URL+"/a"), "answer 2", "generated")
	if e := effectsOf(d, "shop", "rate"); !rig.Equal([]any{own.host()}, e["hosts"]) ||
		!rig.Equal([]any{"GET"}, e["methods"]) || e["origin"] != "observed" || e["revision"] != 1.0 {
		t.Errorf("the manifest of the first call: %v", e)
	}
	if e := effectsOf(d, "shop", "above"); !rig.Equal([]any{"shop.rate"}, e["tools"]) ||
		!rig.Equal([]any{}, e["hosts"]) {
		t.Errorf("the manifest of the caller: %v", e)
	}

	d.Policy(object{"effects": "enforce"})
	for range 3 {
		deniedFor(d, d.Call(s, "rate", other.URL+"/b"), request,
			"recurgentd tools allow shop rate --host "+other.host())
		deniedFor(d, d.Call(s, "rate", own.URL+"/to?u="+other.URL+"/b"), request, other.host())
		d.WantError(d.Call(s, "above", other.URL+"/b"), "denied")
	}
	d.WantValue(d.Call(s, "rate", own.URL+"/a"), "answer 6", "persisted")
	if got := other.requests(); len(got) > 0 {
		t.Errorf("the other host got %q", got)
	}
	for _, method := range []string{"rate", "above"} {
		if a := d.Artifact("shop", method); m.Count("shop", method) != 1 || a["intrinsic_failure_count"] != 0.0 ||
			a["extrinsic_failure_count"].(float64) < 3 {
			t.Errorf("%s: %d requests to the model, %v", method, m.Count("shop", method), a)
		}
	}
	if n := d.Metric(`recurgent_effects_beyond_manifest_total{kind="host",result="denied"}`); n < 6 {
		t.Errorf("the metric counts %v", n)
	}
	if !strings.Contains(d.Output.String(), "a program reached beyond its effects manifest") {
		t.Error("the log does not mention it")
	}

	body := object{"hosts": []string{own.host(), other.host()}, "reason": "the new source"}
	stale := d.Send(http.MethodPut, path, rig.Encode(t, body), map[string]string{"If-Match": `"7"`})
	rig.CheckProblem(t, "another revision", stale)
	if stale.Status != http.StatusPreconditionFailed {
		t.Errorf("another revision: %d", stale.Status)
	}
	if e := allow(d, "shop", "rate", body); e["origin"] != "approved" || e["approved_by"] != "local" ||
		e["revision"] != 2.0 || !rig.Equal([]any{"GET"}, e["methods"]) {
		t.Errorf("approved: %v", e)
	}
	d.WantValue(d.Call(s, "rate", other.URL+"/b"), "answer 1", "persisted")
	d.Restart()
	d.WantValue(d.Call(s, "rate", other.URL+"/b"), "answer 2", "persisted")

	entry := d.List("/v1/maintenance/audit")[0]
	if entry["action"] != "artifact.effects" || entry["reason"] != "the new source" || entry["target"] != "shop.rate" {
		t.Errorf("the audit trail: %v", entry)
	}
	d.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/audit/"+entry["id"].(string)+"/undo", nil)
	deniedFor(d, d.Call(s, "rate", other.URL+"/b"), request, other.host())
	if e := effectsOf(d, "shop", "rate"); e["origin"] != "observed" || e["revision"] != 1.0 {
		t.Errorf("undone: %v", e)
	}
}

// A person may approve before the method exists; what cannot be meant is refused.
func TestAManifestBeforeTheMethod(t *testing.T) {
	t.Parallel()
	own := newUpstream(t)
	m := rig.NewModel(t, rig.Script{"shop.rate": {fetches("GET url")}})
	d := rig.Start(t, m, "--fetch-allow", own.host())
	d.Policy(object{"effects": "enforce"})
	for _, bad := range []object{{"hosts": []string{"https://a.example/"}}, {"methods": []string{"FETCH"}},
		{"tools": []string{"rate"}}, {"hosts": "*"}, {"host": []string{"*"}}, {}} {
		got := d.Send(http.MethodPut, rig.MethodPath("shop", "rate")+"/effects", rig.Encode(t, bad), nil)
		rig.CheckProblem(t, "a manifest that cannot be meant", got)
		if got.Status != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d", bad, got.Status)
		}
	}
	// The ETag of a manifest that nobody has written yet is good for writing it.
	example := object{"args": []any{"never asked"}, "expect": object{"error_type": "denied"}}
	d.Do(http.StatusOK, http.MethodPut, rig.MethodPath("shop", "later")+"/examples", object{"examples": []any{example}})
	none := map[string]string{"If-Match": d.Send(http.MethodGet, rig.MethodPath("shop", "later")+"/effects", nil,
		nil).Header.Get("ETag")}
	for _, want := range []int{http.StatusOK, http.StatusPreconditionFailed} {
		got := d.Send(http.MethodPut, rig.MethodPath("shop", "later")+"/effects",
			rig.Encode(t, object{"methods": []string{"GET"}}), none)
		if got.Status != want {
			t.Errorf("with %v: %d %s, want %d", none, got.Status, got.Body, want)
		}
	}
	allow(d, "shop", "rate", object{"hosts": []string{"api.example.org"}, "methods": []string{"GET"}})
	s := d.Session("shop")
	deniedFor(d, d.Call(s, "rate", own.URL+"/a"), "PUT /v1/tools/shop/methods/rate/effects", own.host())
	allow(d, "shop", "rate", object{"hosts": []string{"*"}})
	d.WantValue(d.Call(s, "rate", own.URL+"/a"), "answer 1", "persisted")
	if n := m.Count("shop", "rate"); n != 1 {
		t.Errorf("%d requests to the model", n)
	}
}

// A repaired program that needs a new host is held until a person allows the host, and then answers, without another
// request to the model. What made files is recorded.
func TestARepairWaitsForItsHost(t *testing.T) {
	t.Parallel()
	own, other := newUpstream(t), newUpstream(t)
	reads := func(program, argument string) string {
		return strings.Replace(program, "\tvar body string\n", "\tvar body string\n\tif call.Arg(0, \"x\") == "+
			argument+" {\n\t\tpanic(\"boom\")\n\t}\n", 1)
	}
	old, next := reads(fetches("GET "+own.URL+"/a"), "1.0"), reads(fetches("GET "+other.URL+"/b"), "2.0")
	made := rig.Program("\tf, err := call.Create(\"rates.csv\", \"text/csv\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tfmt.Fprintln(f, \"a,b\")\n\treturn f.Ref(), f.Close()", "fmt")
	m := rig.NewModel(t, rig.Script{"shop.rate": {old, next}, "shop.export": {made}})
	d := rig.Start(t, m, "--fetch-allow", own.host()+","+other.host())
	d.Policy(object{"effects": "enforce", "new_reach": "allow", "fixtures_enabled": false})
	s := d.Session("shop")
	d.WantValue(d.Call(s, "rate"), "answer 1", "generated")
	for range 3 {
		deniedFor(d, d.Call(s, "rate", 1), "PUT /v1/tools/shop/methods/rate/effects", other.host())
		d.WantValue(d.Call(s, "rate"), "answer "+strconv.Itoa(len(own.requests())), "persisted")
	}
	allow(d, "shop", "rate", object{"hosts": []string{own.host(), other.host()}})
	d.WantValue(d.Call(s, "rate", 1), "answer 1", "repaired")
	if n := m.Count("shop", "rate"); n != 2 {
		t.Errorf("%d requests to the model", n)
	}
	if got := d.Call(s, "export"); !got.Outcome.OK {
		t.Errorf("a program that makes a file: %+v", got.Outcome)
	}
	if e := effectsOf(d, "shop", "export"); !rig.Equal([]any{"text/csv"}, e["files"]) {
		t.Errorf("what makes a file: %v", e)
	}
}

// A successor's new host shows before a person approves the successor: in the reply, in tools approve, in tools effects
// and in tools diff.
func TestANewHostShowsInASuccessor(t *testing.T) {
	t.Parallel()
	own, other := newUpstream(t), newUpstream(t)
	m := rig.NewModel(t, rig.Script{"shop.rate": {fetches("GET " + own.URL + "/a"),
		fetches("GET " + other.URL + "/b")}})
	d := rig.Start(t, m, "--fetch-allow", own.host()+","+other.host())
	s := d.Session("shop")
	d.WantValue(d.Call(s, "rate"), "answer 1", "generated")
	d.Policy(object{"approval_required": true, "effects": "enforce"})
	d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("shop", "rate")+"/approve", nil)
	d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("shop", "rate")+"/regenerate",
		object{"reason": "another source"})
	d.WantValue(d.Call(s, "rate"), "answer 2", "persisted")
	e := effectsOf(d, "shop", "rate")
	newest, _ := e["generations"].([]any)[0].(object)
	lacks, _ := newest["lacks"].(object)
	if newest["id"] != "gen-2" || newest["did"] != nil || !rig.Equal([]any{other.host()}, newest["new_hosts"]) ||
		!rig.Equal([]any{other.host()}, lacks["hosts"]) {
		t.Errorf("the successor: %v", newest)
	}
	d.Expect(0, []string{"may reach: hosts " + own.host() + ", methods GET, as its calls did",
		"policy effects: enforce", "no ok call yet; its text names " + other.host()}, "tools", "effects", "shop",
		"rate")
	d.Expect(0, []string{"effects that changed with it:\n-reaches " + own.host() + "\n-sends GET\n+reaches " +
		other.host()}, "tools", "diff", "shop", "rate", "gen-1", "gen-2")
	d.Expect(0, []string{`"new":{"hosts":["` + other.host() + `"]`}, "tools", "diff", "shop", "rate", "gen-1", "gen-2",
		"--output", "json")
	d.Expect(0, []string{"it reaches or names hosts that its predecessor does not: " + other.host()}, "tools",
		"approve", "shop", "rate")
	deniedFor(d, d.Call(s, "rate"), "PUT /v1/tools/shop/methods/rate/effects", other.host())
	if _, _, code := d.Client("tools", "allow", "shop", "rate"); code == 0 {
		t.Error("allowing nothing is no error")
	}
	both := []string{own.host(), other.host()}
	slices.Sort(both)
	d.Expect(0, []string{"may reach: hosts " + strings.Join(both, ", "), "as local approved"}, "tools", "allow", "shop",
		"rate", "--host", other.host(), "--reason", "it moved")
	d.WantValue(d.Call(s, "rate"), "answer 1", "persisted")
	d.Expect(0, []string{"may reach: hosts " + other.host() + ", methods GET, as local approved"}, "tools", "allow",
		"shop", "rate", "--only", "--host", other.host())
	d.Expect(0, []string{"may reach: hosts " + other.host()}, "tools", "show", "shop", "rate")
}
