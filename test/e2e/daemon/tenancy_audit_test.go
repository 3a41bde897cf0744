package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	document "github.com/recurgentd/recurgentd/api"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// unaudited are the operations that change something, or may, and leave no audit entry, with the reason.
var unaudited = map[string]string{
	"createSession":  "the session says whose it is and since when, and the entry of its deletion keeps that",
	"createCall":     "the call log has every call",
	"callFunction":   "the call log has every call",
	"mcp":            "calls are in the call log; what its other messages do goes the way of the operations here",
	"replayCall":     "stores nothing: it compares",
	"predict":        "the call log has every prediction",
	"predictNamed":   "the call log has every prediction",
	"runExamples":    "stores nothing: it compares",
	"tryProgram":     "stores nothing: it compares",
	"simulatePolicy": "stores nothing: it compares",
	"checkModel":     "stores nothing: spend counts what it costs",
	"uploadFile":     "the file says whose it is and since when, and the entry of its deletion keeps that",
}

// An audited operation: what makes it, the action of its newest entry, and whether that has what was before and after.
type audited struct {
	id            string // operationId
	action        string
	before, after bool
	do            func()
}

// secretOfConnection must stand in no entry.
const secretOfConnection = "secret-in-no-trail-8842"

// auditedOperations lists the operations in an order in which each can be done. eve may do everything, cal may call.
func auditedOperations(eve, cal *rig.Daemon, release func()) []audited {
	const tool, method = "/v1/tools/clerk", "/v1/tools/clerk/methods/greet"
	id, lent := eve.Session("clerk"), cal.Session("clerk")
	judged, proposed, refused := eve.Call(id, "greet", "x"), cal.Call(lent, "greet", "y"), cal.Call(lent, "greet", "z")
	for i := range 4 {
		eve.Call(eve.Session("low"), "m", i)
	}
	advice := eve.Recommendations("")[0]["id"].(string)
	slow := eve.Send(http.MethodPost, "/v1/sessions/"+eve.Session("clerk")+"/calls",
		rig.Encode(eve.T, map[string]any{"method": "slow"}), map[string]string{"Prefer": "respond-async"})
	slowID, _ := slow.Object(eve.T)["call_id"].(string)
	file := eve.Send(http.MethodPost, "/v1/files?name=list.txt", []byte("bytes"),
		map[string]string{"Content-Type": "text/plain"}).Object(eve.T)["id"].(string)
	propose := func(r rig.Reply) string {
		v := cal.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+r.CallID+"/verdict",
			map[string]any{"verdict": "right"}).Object(cal.T)
		return v["example_id"].(string)
	}
	do := func(want int, verb, path string, v any) func() { return func() { eve.Do(want, verb, path, v) } }
	post := func(path string, v map[string]any) func() { return do(http.StatusOK, http.MethodPost, path, v) }
	on := func(action string, body map[string]any) audited {
		return audited{action + "Artifact", "artifact." + action, true, true, post(method+"/"+action, body)}
	}
	wish := func(least int, decision string) func() {
		return func() {
			eve.Do(http.StatusCreated, http.MethodPut, fmt.Sprint("/v1/tools/wish", least),
				map[string]any{"purpose": "wishes"})
			eve.Call(id, "wants", least)
			waits := eve.List(fmt.Sprint("/v1/inbox?kind=proposal&role=wish", least))
			k, _ := waits[0]["evidence"].(map[string]any)["contract"].(map[string]any)
			eve.Do(http.StatusOK, http.MethodPost, fmt.Sprintf("/v1/tools/wish%d/proposals/%s/%s", least, k["id"],
				decision), map[string]any{})
		}
	}
	newest := func() string { return eve.List("/v1/maintenance/audit")[0]["id"].(string) }
	return []audited{
		{"cancelCall", "call.cancel", false, false, func() {
			eve.Do(http.StatusNoContent, http.MethodPost, "/v1/calls/"+slowID+"/cancel", nil)
			release()
		}},
		{"patchContext", "context.patch", true, true, do(http.StatusOK, http.MethodPatch, "/v1/sessions/"+id+"/context",
			map[string]any{"note": "mine", "password": secretOfConnection})},
		{"judgeCall", "verdict.put", false, true, post("/v1/calls/"+judged.CallID+"/verdict",
			map[string]any{"verdict": "right", "note": "so it is"})},
		{"dropVerdict", "verdict.delete", true, false, do(http.StatusNoContent, http.MethodDelete,
			"/v1/calls/"+judged.CallID+"/verdict", nil)},
		{"putExamples", "examples.put", true, true, do(http.StatusOK, http.MethodPut, method+"/examples",
			map[string]any{"examples": []any{map[string]any{"args": []any{"a"},
				"expect": map[string]any{"value": "hello a"}}}})},
		{"acceptExample", "example.accept", true, true,
			func() { eve.Do(http.StatusOK, http.MethodPost, method+"/examples/"+propose(proposed)+"/accept", nil) }},
		{"rejectExample", "example.reject", true, true,
			func() { eve.Do(http.StatusOK, http.MethodPost, method+"/examples/"+propose(refused)+"/reject", nil) }},
		{"acceptContract", "tool.put", true, true, wish(1, "accept")},
		{"rejectContract", "tool.reject", true, false, wish(2, "reject")},
		{"putTool", "tool.put", true, true, do(http.StatusOK, http.MethodPut, tool,
			map[string]any{"purpose": "greets"})},
		{"putProgram", "artifact.put", true, true, do(http.StatusOK, http.MethodPut, method,
			map[string]any{"code": rig.Program(
				"\treturn \"hello \" + call.Arg(0, \"who\").(string), nil\n\t// again")})},
		{"putEffects", "artifact.effects", true, true, do(http.StatusOK, http.MethodPut, method+"/effects",
			map[string]any{"hosts": []string{"a.example.org"}})},
		on("quarantine", map[string]any{"reason": "suspect"}), on("release", map[string]any{}),
		on("regenerate", map[string]any{}), on("promote", map[string]any{}),
		on("rollback", map[string]any{"generation": "gen-1"}), on("pin", map[string]any{}),
		on("unpin", map[string]any{}), on("approve", map[string]any{}),
		{"applyRecommendation", "recommendation.apply", true, true,
			post("/v1/recommendations/"+advice+"/apply", map[string]any{})},
		{"dismissRecommendation", "recommendation.dismiss", false, true, func() {
			eve.Do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+advice+"/apply", map[string]any{"undo": true})
			eve.Do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+advice+"/dismiss", map[string]any{})
		}},
		{"putSignature", "signature.put", false, true, do(http.StatusCreated, http.MethodPut, "/v1/signatures/qa",
			map[string]any{"instructions": "answer", "inputs": []any{map[string]any{"name": "q"}},
				"outputs": []any{map[string]any{"name": "a"}}})},
		{"deleteSignature", "signature.delete", true, false, do(http.StatusNoContent, http.MethodDelete,
			"/v1/signatures/qa", nil)},
		{"putConnection", "connection.put", false, true, do(http.StatusCreated, http.MethodPut,
			"/v1/connections/weather", map[string]any{"hosts": []string{"a.example.org"}, "methods": []string{"GET"},
				"roles": []string{"clerk"},
				"auth":  map[string]any{"type": "bearer", "secret": secretOfConnection}})},
		{"deleteConnection", "connection.delete", true, false, do(http.StatusNoContent, http.MethodDelete,
			"/v1/connections/weather", nil)},
		{"patchPolicy", "policy.change", true, true, do(http.StatusOK, http.MethodPatch, "/v1/policy",
			map[string]any{"repair_enabled": false})},
		{"undo", "policy.change", true, true, func() {
			eve.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/audit/"+newest()+"/undo", map[string]any{})
		}},
		{"deleteArtifact", "artifact.archive", true, true, do(http.StatusNoContent, http.MethodDelete, method, nil)},
		{"restore", "maintenance.restore", true, true, post("/v1/maintenance/restore",
			map[string]any{"role": "clerk", "method": "greet"})},
		{"deleteTool", "tool.archive", true, true, do(http.StatusNoContent, http.MethodDelete, tool, nil)},
		{"prune", "maintenance.prune", false, true, post("/v1/maintenance/prune",
			map[string]any{"stale_days": 0, "dry_run": false})},
		{"exportStore", "store.export", false, false, do(http.StatusOK, http.MethodGet, "/v1/maintenance/export", nil)},
		{"deleteFile", "file.delete", true, false, do(http.StatusNoContent, http.MethodDelete, "/v1/files/"+file, nil)},
		{"deleteSession", "session.delete", true, false, do(http.StatusNoContent, http.MethodDelete, "/v1/sessions/"+id,
			nil)},
		{"putNamespace", "namespace.create", false, false, do(http.StatusCreated, http.MethodPut, "/v1/namespaces/made",
			nil)},
		{"deleteNamespace", "namespace.delete", false, false, do(http.StatusNoContent, http.MethodDelete,
			"/v1/namespaces/made", nil)},
	}
}

// changing lists the operations of the document that may change something.
func changing(t *testing.T) []string {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(document.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"exportStore"} // reads everything
	for _, item := range doc.Paths.Map() {
		for verb, op := range item.Operations() {
			if verb != http.MethodGet && verb != http.MethodHead {
				all = append(all, op.OperationID)
			}
		}
	}
	return all
}

// lastAuditID keeps the id of the audit entry that the last reply names, "" where it names none.
type lastAuditID struct {
	http.RoundTripper
	id string
}

func (l *lastAuditID) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		l.id = res.Header.Get("Recurgent-Audit-Id")
	}
	return res, err
}

// TestEveryOperationIsAudited does every operation of the document that changes something, and finds its entry in the
// audit trail, with who did it and what was before and after, under the id that the reply names. An operation that is
// new has to come here, or among the exceptions with a reason.
func TestEveryOperationIsAudited(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{
		"clerk.greet": {rig.Program("\treturn \"hello \" + call.Arg(0, \"who\").(string), nil")},
		"clerk.slow":  {rig.Held(rig.ProgEcho)},
		"clerk.wants": {rig.Program(
			"\tcall.Delegate(fmt.Sprint(\"wish\", call.Arg(0, \"least\")), recurgent.Contract{Deliverable: map[string]any{\"min_items\": call.Arg(0, \"least\")}})\n\treturn 1, nil", "fmt")},
		"low.m": {rig.Program(
			"\treturn map[string]any{\"status\": \"partial\", \"n\": call.Arg(0, \"n\")}, nil")},
	})
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("eve token-of-eve-0001\ncal token-of-cal-0002 scopes=read,call\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	d := rig.Start(t, m, "--auth-tokens-file", file)
	eve, cal := person(d, "token-of-eve-0001", ""), person(d, "token-of-cal-0002", "")
	last := &lastAuditID{RoundTripper: eve.HTTP.Transport}
	eve.HTTP.Transport = last
	done := map[string]bool{}
	for _, op := range auditedOperations(eve, cal, m.Release) {
		op.do()
		done[op.id] = true
		left := last.id
		e := eve.List("/v1/maintenance/audit")[0]
		if e["id"] != left {
			t.Errorf("%s: the reply names the entry %q, the newest is %v", op.id, left, e["id"])
		}
		if session, _ := e["session_id"].(string); session != "" && !chain.AboutSessions(op.action) {
			t.Errorf("%s: its entry is erased with the session %s, which store verify would take for an alteration",
				op.id, session)
		}
		_, before := e["before"]
		_, after := e["after"]
		if e["action"] != op.action || e["principal"] != "eve" || e["actor"] != "eve" || before != op.before ||
			after != op.after || e["target"] == "" {
			t.Errorf("%s: got the entry %v, want %s by eve with before %v and after %v", op.id, e, op.action, op.before,
				op.after)
		}
	}
	for _, id := range changing(t) {
		if done[id] == (unaudited[id] != "") {
			t.Errorf("%s is audited: %v, and an exception: %q", id, done[id], unaudited[id])
		}
	}
	if known := changing(t); slices.ContainsFunc(slices.Collect(maps.Keys(unaudited)),
		func(id string) bool { return !slices.Contains(known, id) }) {
		t.Errorf("an exception is no operation: %v", unaudited)
	}
	checkTrail(eve, cal)
	checkOffline(d, eve.Get("/v1/maintenance/audit")["head"].(map[string]any)["hash"].(string))
}

// checkOffline stops the daemon, verifies the trail against its noted head, and finds the operations on the stopped
// store in it.
func checkOffline(d *rig.Daemon, head string) {
	d.Stop(syscall.SIGTERM)
	changing := [][]string{{"store", "export", filepath.Join(d.T.TempDir(), "all.tar.gz")}}
	if rig.Store(d.T) == "disk" { // a database has no files to repair
		changing = append(changing, []string{"store", "repair"})
	}
	for _, args := range append(changing, []string{"store", "verify", "--audit-head", head}) {
		if stdout, stderr, code := d.Client(args...); code != 0 {
			d.T.Errorf("%v: exit code %d: %s%s", args, code, stdout, stderr)
		}
	}
	if stdout, stderr, code := d.Client("store", "verify", "--audit-head", strings.Repeat("0", 64)); code == 0 {
		d.T.Errorf("a head that the trail does not have: exit code %d: %s%s", code, stdout, stderr)
	}
	trail := d.Stored()["audit.jsonl"]
	for _, args := range changing {
		action := args[0] + "." + args[1]
		if !bytes.Contains(trail, []byte(`"principal":"local","action":"`+action+`"`)) {
			d.T.Errorf("%s is not in the trail", action)
		}
	}
}

// checkTrail reads the trail as JSON lines and by principal.
func checkTrail(eve, cal *rig.Daemon) {
	t := eve.T
	lines := eve.Send(http.MethodGet, "/v1/maintenance/audit?format=jsonl", nil, nil)
	if bytes.Contains(lines.Body, []byte(secretOfConnection)) {
		t.Error("a secret is in the trail")
	}
	if cal.Send(http.MethodGet, "/v1/maintenance/audit", nil, nil).Status != http.StatusForbidden {
		t.Error("who may only call reads the trail")
	}
	count := map[string]int{}
	for line := range bytes.Lines(lines.Body) {
		var e struct{ Principal, Hash string }
		if err := json.Unmarshal(line, &e); err != nil || e.Hash == "" {
			t.Fatalf("%s: %v", line, err)
		}
		count[e.Principal]++
	}
	if count["cal"] != 2 || count["eve"] < 30 {
		t.Errorf("the trail has %v, want two of cal and more of eve", count)
	}
	for _, name := range []string{"cal", "eve"} {
		mine := eve.Send(http.MethodGet, "/v1/maintenance/audit?format=jsonl&principal="+name, nil, nil).Body
		if got := strings.Count(string(mine), "\n"); got != count[name] {
			t.Errorf("got %d entries of %s, want %d", got, name, count[name])
		}
	}
}

// Archiving what is not there changes nothing, and leaves no entry that nobody could undo. Namespaces are made and
// deleted with a reason, which the trail of the default one has.
func TestEntriesOfNothingAndReasons(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/clerk", map[string]any{"purpose": "greets"})
	for _, path := range []string{"/v1/tools/none?reason=why", "/v1/tools/none/methods/m",
		"/v1/tools/clerk/methods/m"} {
		d.Do(http.StatusNoContent, http.MethodDelete, path, nil)
		if trail := d.List("/v1/maintenance/audit"); len(trail) != 1 {
			t.Errorf("DELETE %s left %v", path, trail[0])
		}
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/tools/clerk", nil)
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/tools/clerk", nil) // once more
	if trail := d.List("/v1/maintenance/audit"); len(trail) != 2 {
		t.Errorf("the tool was archived twice: %v", trail)
	}
	for _, args := range [][]string{{"namespaces", "create", "acme", "--reason", "a new customer"},
		{"namespaces", "rm", "acme", "--yes", "--reason", "who left & said so"}} {
		if out, errs, code := d.Client(args...); code != 0 {
			t.Fatalf("%v: exit %d\n%s%s", args, code, out, errs)
		}
	}
	trail := d.List("/v1/maintenance/audit")
	for i, want := range []string{"who left & said so", "a new customer"} {
		if trail[i]["reason"] != want || trail[i]["target"] != "acme" {
			t.Errorf("entry %d is %v, want the reason %q", i, trail[i], want)
		}
	}
	long := d.Send(http.MethodPut, "/v1/namespaces/long?reason="+strings.Repeat("x", 3000), nil, nil)
	rig.CheckProblem(t, "a reason that is too long", long)
	if long.Status != http.StatusBadRequest || len(d.List("/v1/namespaces")) != 1 {
		t.Errorf("a reason that is too long: %d %s", long.Status, long.Body)
	}
}
