package tools

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Programs that delegate to cinema.list with the deliverable and the purpose that they are given, and programs of
// cinema.list.
var (
	progDelegates = rig.Program(
		"\tk := recurgent.Contract{}\n\tk.Deliverable, _ = call.Arg(0, \"deliverable\").(map[string]any)\n\tk.Purpose, _ = call.Arg(1, \"purpose\").(string)\n" +
			"\to := call.Delegate(\"cinema\", k).Call(\"list\")\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value, nil")
	progUses = rig.Program("\to := call.Tool(\"cinema\").Call(\"list\")\n\treturn o.Value, nil")
	// progInsists delegates with 1, 2, 3 ... items at least.
	progInsists = rig.Program(
		"\tn, _ := call.Arg(0, \"n\").(float64)\n\tfor i := range int(n) {\n\t\tcall.Delegate(\"cinema\", recurgent.Contract{Deliverable: map[string]any{\"type\": \"array\", \"min_items\": i + 1}})\n\t}\n\treturn n, nil")
	noMovies  = rig.Program("\treturn []any{}, nil")
	twoMovies = rig.Program("\treturn []any{\"Up\", \"Ran\"}, nil")
)

// atLeast is a deliverable: a list of so many items.
func atLeast(n int) object { return object{"type": "array", "min_items": float64(n)} }

// wantKept checks what the registry has of cinema.
func wantKept(d *rig.Daemon, purpose, deliverable any) {
	d.T.Helper()
	if tool := d.Get("/v1/tools/cinema"); tool["purpose"] != purpose || !rig.Equal(tool["deliverable"], deliverable) ||
		tool["proposals"] != nil {
		d.T.Fatalf("the registry has %s, want %v and %s", rig.MustJSON(tool), purpose, rig.MustJSON(deliverable))
	}
}

// 001:92, 99 and 003:18: the contract that a program delegates with is kept also where the tool was known already, a
// stricter one takes its place, a weaker one does not, and the tool's program is held to it at once, whoever calls.
func TestBuildersStrengthenContracts(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"office.use": {progUses}, "office.gather": {progDelegates},
		"cinema.list": {noMovies, noMovies, twoMovies}})
	d := rig.Start(t, m)
	s := d.Session("office")
	d.WantValue(d.Call(s, "use"), list(), "generated")
	wantKept(d, nil, nil)
	d.WantValue(d.Call(s, "gather", object{"type": "array"}, "movies on show"), list(), "generated")
	wantKept(d, "movies on show", object{"type": "array"})
	d.WantValue(d.Call(s, "gather", atLeast(1), "movies on show, at least one"), list("Up", "Ran"), "persisted")
	wantKept(d, "movies on show, at least one", atLeast(1))
	if asked := m.LastQuestion().User; !strings.Contains(asked, "min_items") {
		t.Errorf("the tool was written anew for:\n%s", asked)
	}
	revision := func() any { return d.Get("/v1/tools/cinema")["revision"] }
	for _, deliverable := range []any{object{"type": "array"}, object{"type": list("array", "null"), "min_items": 1},
		object{"items": object{"type": "string"}}, atLeast(1), nil} {
		was := revision()
		d.Call(s, "gather", deliverable, "other words")
		if now := revision(); now != was.(float64)+1 { // that call
			t.Errorf("%v: the tool's revision went from %v to %v", deliverable, was, now)
		}
		wantKept(d, "movies on show, at least one", atLeast(1))
	}
	d.Restart()
	wantKept(d, "movies on show, at least one", atLeast(1))
	d.Call(s, "gather", atLeast(2), "")
	wantKept(d, "movies on show, at least one", atLeast(2))
	if waits := d.List("/v1/inbox"); len(waits) != 0 {
		t.Errorf("the inbox has %v", waits)
	}
}

// A program that a contract came after is held to it by the next call of anybody: what breaks it is repaired.
func TestStrengthenedContractBindsEveryCall(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"office.insist": {progInsists}, "cinema.list": {noMovies, twoMovies}})
	d := rig.Start(t, m)
	cinema := d.Session("cinema")
	d.WantValue(d.Call(cinema, "list"), list(), "generated")
	d.WantValue(d.Call(d.Session("office"), "insist", 1), 1, "generated")
	d.WantValue(d.Call(cinema, "list"), list("Up", "Ran"), "")
	wantKept(d, nil, atLeast(1))
}

// Two builders write the same check in different ways: with a type in capitals, in a list, or the required keys in
// another order. None of it asks for another program, and neither does a program of an earlier version, to which they
// were different.
func TestWritingIsNoContract(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"office.gather": {progDelegates},
		"cinema.list": {rig.Program("\treturn map[string]any{\"a\": 1, \"b\": 2}, nil")}})
	d := rig.Start(t, m)
	s := d.Session("office")
	want := object{"a": 1.0, "b": 2.0}
	d.WantValue(d.Call(s, "gather", object{"type": "object", "required": list("b", "a")}), want, "generated")
	for _, deliverable := range []object{{"type": "Object", "required": list("b", "a")},
		{"type": list("object"), "required": list("a", "b")}, {"required": list("a", "b", "a"), "type": "OBJECT"}} {
		d.WantValue(d.Call(s, "gather", deliverable), want, "persisted")
	}
	checked := func() string {
		return d.Artifact("cinema", "list")["history"].([]any)[0].(map[string]any)["checked_fingerprint"].(string)
	}
	now, was := checked(), contract.WrittenFingerprint(&agent.Contract{Deliverable: rig.MustJSON(
		object{"type": "object", "required": list("b", "a")})})
	if now == was {
		t.Fatal("the keys were in order")
	}
	d.Edit(func(dir string) {
		for path, data := range rig.Files(t, dir) {
			if strings.HasSuffix(path, ".json") && strings.Contains(string(data), now) {
				rig.WriteAt(t, path, strings.ReplaceAll(string(data), now, was))
			}
		}
	})
	if got := checked(); got != was {
		t.Fatalf("the stored fingerprint is %s, want %s", got, was)
	}
	d.WantValue(d.Call(s, "gather", object{"type": "object", "required": list("b", "a")}), want, "persisted")
	if n := m.Count("cinema", "list"); n != 1 {
		t.Errorf("%d requests for one check", n)
	}
}

// A loop of ever stricter contracts changes the registry a few times for each run, costs the program nothing, and
// leaves one contract.
func TestInsistingBuilder(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"office.insist": {progInsists}, "cinema.list": {twoMovies}}))
	d.Call(d.Session("cinema"), "list")
	s := d.Session("office")
	got := d.Call(s, "insist", 100)
	d.WantValue(got, 100, "generated")
	wantKept(d, nil, atLeast(8))
	if warned := fmt.Sprint(d.LogOf(got)["warnings"]); !strings.Contains(warned,
		"holds for this call alone, one run of a program changes at most 8 contracts") {
		t.Errorf("the log warns of %s", warned)
	}
	if r := d.Get("/v1/tools/cinema")["revision"]; r != 9.0 {
		t.Errorf("the tool has the revision %v", r)
	}
}

// builders are ann and ben, who may call, and op, who may do all.
func builders(t *testing.T, m *rig.Model, args ...string) (ann, ben, op *rig.Daemon) {
	t.Helper()
	const a, b, o = "token-of-ann-0001", "token-of-ben-0002", "token-of-op-0003"
	d := rig.Start(t, m, append([]string{"--auth-tokens-file",
		rig.WriteFile(t, "tokens", "ann "+a+" scopes=read,call\nben "+b+" scopes=read,call\nop "+o+"\n")}, args...)...)
	return d.As(a), d.As(b), d.As(o)
}

// proposals lists the contracts that wait.
func proposals(d *rig.Daemon) (all []object) {
	d.T.Helper()
	for _, w := range d.List("/v1/inbox?kind=proposal") {
		if w["method"] != "" || w["role"] != "cinema" {
			d.T.Fatalf("the inbox has %v", w)
		}
		all = append(all, w)
	}
	return all
}

// wantProposed checks that one contract waits, and returns its entry.
func wantProposed(d *rig.Daemon, deliverable object) object {
	d.T.Helper()
	all := proposals(d)
	if len(all) != 1 {
		d.T.Fatalf("%d contracts wait: %s", len(all), rig.MustJSON(all))
	}
	k := all[0]["evidence"].(object)["contract"].(object)
	if !rig.Equal(k["proposed"].(object)["deliverable"], deliverable) {
		d.T.Fatalf("what waits is %s, want %s", rig.MustJSON(k), rig.MustJSON(deliverable))
	}
	return all[0]
}

// decide sends the operation of that name.
func decide(d *rig.Daemon, entry object, name string) rig.Response {
	d.T.Helper()
	for _, o := range entry["operations"].([]any) {
		if op := o.(object); op["name"] == name {
			return d.Do(http.StatusOK, op["method"].(string), op["path"].(string), op["body"])
		}
	}
	d.T.Fatalf("no operation %q in %v", name, entry)
	return rig.Response{}
}

// A person's contract is changed by a person: a program's stricter one waits in the inbox, once, in plain words.
// Accepted it is in force, audited and undone like any contract; rejected it does not come again.
func TestStricterThanAPersons(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"office.gather": {progDelegates}, "cinema.list": {twoMovies}})
	d := rig.Start(t, m)
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/cinema",
		object{"purpose": "movies", "deliverable": object{"type": "array"}, "acceptance": list("true titles")})
	s := d.Session("office")
	got := d.Call(s, "gather", atLeast(1), "at least one")
	d.WantValue(got, list("Up", "Ran"), "generated")
	if warned := fmt.Sprint(d.LogOf(got)["warnings"]); !strings.Contains(warned, "waits for a person's decision") {
		t.Errorf("the log warns of %s", warned)
	}
	wantKept(d, "movies", object{"type": "array"})
	first := wantProposed(d, atLeast(1))
	revision := d.Get("/v1/tools/cinema")["revision"].(float64)
	d.Call(s, "gather", atLeast(1), "in other words")
	if now := d.Get("/v1/tools/cinema")["revision"]; now != revision+1 {
		t.Errorf("a second call took the tool from revision %v to %v", revision, now)
	}
	if again := wantProposed(d, atLeast(1)); again["id"] != first["id"] || again["since"] != first["since"] {
		t.Errorf("again it is %v, was %v", again, first)
	}
	d.Expect(0, []string{"proposal cinema",
		"a program of office.gather delegates with a contract that is stricter than the role's",
		"accept the contract: recurgentd tools contract accept cinema prop_",
		"reject the contract: recurgentd tools contract reject cinema prop_"}, "inbox")

	id := first["evidence"].(object)["contract"].(object)["id"].(string)
	d.Expect(0, []string{"cinema"}, "tools", "contract", "accept", "cinema", id)
	wantKept(d, "at least one", atLeast(1))
	if tool := d.Get("/v1/tools/cinema"); tool["by_person"] != true ||
		!rig.Equal(tool["acceptance"], list("true titles")) {
		t.Errorf("after the acceptance: %v", tool)
	}
	if left := proposals(d); len(left) != 0 {
		t.Errorf("after the acceptance there is %v", left)
	}
	d.Do(http.StatusNotFound, http.MethodPost, "/v1/tools/cinema/proposals/"+id+"/accept", object{})
	entry := d.List("/v1/maintenance/audit")[0]
	if entry["action"] != "tool.put" || entry["target"] != "cinema" || entry["reason"] != id {
		t.Errorf("the acceptance is audited as %v", entry)
	}
	d.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/audit/"+entry["id"].(string)+"/undo", object{})
	wantKept(d, "movies", object{"type": "array"})

	d.Call(s, "gather", atLeast(1), "at least one")
	d.Restart()
	decide(d, wantProposed(d, atLeast(1)), "reject the contract")
	if entry := d.List("/v1/maintenance/audit")[0]; entry["action"] != "tool.reject" || entry["reason"] != id {
		t.Errorf("the rejection is audited as %v", entry)
	}
	d.Call(s, "gather", object{"min_items": 1, "type": "array", "title": "the same"}, "at least one")
	d.Restart()
	d.Call(s, "gather", atLeast(1), "at least one")
	if left := proposals(d); len(left) != 0 {
		t.Errorf("what was rejected waits again: %v", left)
	}
	d.Call(s, "gather", atLeast(2), "")
	wantProposed(d, atLeast(2))
	d.Do(http.StatusOK, http.MethodPut, "/v1/tools/cinema", object{"purpose": "many movies", "deliverable": atLeast(2)})
	if left := proposals(d); len(left) != 0 {
		t.Errorf("what the person's contract has waits still: %v", left)
	}
}

// Of a tool that another owner's call made a program changes no contract: it proposes, also where nobody had written
// one. What one owner's programs propose no other who may not operate sees.
func TestStricterThanAnothers(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"office.gather": {progDelegates}, "desk.gather": {progDelegates},
		"desk.insist": {progInsists}, "cinema.list": {twoMovies}})
	ann, ben, op := builders(t, m)
	office, desk := ann.Session("office"), ben.Session("desk")
	ann.Call(ann.Session("cinema"), "list")
	ben.WantValue(ben.Call(desk, "gather", object{"type": "array"}, "bens words"), list("Up", "Ran"), "generated")
	wantKept(ann, nil, nil)
	wantProposed(op, object{"type": "array"})
	ann.Call(office, "gather", object{"type": "array"}, "movies")
	wantKept(ann, "movies", object{"type": "array"})
	if left := proposals(op); len(left) != 0 { // it is no stricter any more
		t.Errorf("there waits %v", left)
	}
	ben.WantValue(ben.Call(desk, "insist", 100), 100, "generated")
	wantKept(ann, "movies", object{"type": "array"})
	seen := wantProposed(ben, atLeast(8))
	if k := seen["evidence"].(object)["contract"].(object); k["owner"] != "ben" || k["by"] != "desk.insist" ||
		k["by_person"] != false {
		t.Errorf("ben sees %v", k)
	}
	if others := proposals(ann); len(others) != 0 {
		t.Errorf("ann sees %v", others)
	}
	for _, d := range []*rig.Daemon{ann, ben} {
		path := seen["operations"].([]any)[0].(object)["path"].(string)
		if r := d.Send(http.MethodPost, path, nil, nil); r.Status != http.StatusForbidden {
			t.Errorf("who may call alone decides with %d %s", r.Status, r.Body)
		}
	}
	decide(op, wantProposed(op, atLeast(8)), "accept the contract")
	if tool := op.Get("/v1/tools/cinema"); tool["by_person"] != true || tool["owner"] != "op" ||
		tool["purpose"] != "movies" || !rig.Equal(tool["deliverable"], atLeast(8)) {
		t.Errorf("accepted: %v", tool)
	}
}

// A program of another owner's changes no contract on behalf of who calls it, nor does one's own for another who calls
// it.
func TestAnothersProgramChangesNoContract(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"office.gather": {progDelegates}, "desk.gather": {progDelegates},
		"cinema.list": {twoMovies}})
	ann, ben, op := builders(t, m)
	office := ann.Session("office")
	ann.Call(office, "gather", object{"type": "array"}, "movies")
	ben.Call(ben.Session("desk"), "gather", nil, "")
	ann.WantValue(ann.Call(ann.Session("desk"), "gather", atLeast(1), "bens program"), list("Up", "Ran"), "persisted")
	wantKept(ann, "movies", object{"type": "array"})
	wantProposed(op, atLeast(1))
	ben.WantValue(ben.Call(ben.Session("office"), "gather", atLeast(2), "bens arguments"), list("Up", "Ran"),
		"persisted")
	wantKept(ann, "movies", object{"type": "array"})
	if all := proposals(op); len(all) != 2 {
		t.Errorf("there waits %v", all)
	}
	ann.Call(office, "gather", atLeast(1), "my own")
	wantKept(ann, "my own", atLeast(1))
	wantProposed(op, atLeast(2))
}
