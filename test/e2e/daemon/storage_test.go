package daemon

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const storageTokens = "ann token-of-ann-0001 scopes=read,call\nben token-of-ben-0002 scopes=read,call\nop token-of-op-00003\neve token-of-eve-0004 namespace=acme\n"

// crowd is a daemon whose stores are small, and who uses it. Of 1 MiB an owner may have 192 KiB of histories and of
// values, 64 KiB of contexts, 32 KiB of tools and of examples.
type crowd struct{ d, ann, ben, op, eve *rig.Daemon }

func newCrowd(t *testing.T, m *rig.Model, args ...string) crowd {
	t.Helper()
	d := rig.Start(t, m, append([]string{"--storage-max", "1MiB", "--auth-tokens-file",
		rig.WriteFile(t, "tokens", storageTokens)}, args...)...)
	return crowd{d, d.As("token-of-ann-0001"), d.As("token-of-ben-0002"), d.As("token-of-op-00003"),
		d.As("token-of-eve-0004")}
}

// full checks that the reply says that the share of what is full.
func full(d *rig.Daemon, r rig.Response, code, share, of string) map[string]any {
	d.T.Helper()
	rig.CheckProblem(d.T, of, r)
	p := r.Object(d.T)
	used, _ := p["used"].(float64)
	limit, _ := p["limit"].(float64)
	if r.Status != http.StatusInsufficientStorage || p["code"] != code || p["share"] != share || p["of"] != of ||
		limit == 0 || used > limit+(1<<20) {
		d.T.Fatalf("got %d %s, want %s of %s's %s", r.Status, r.Body, code, share, of)
	}
	return p
}

// wantFull checks that a call ended because the share of what is full, by no fault of its program.
func wantFull(d *rig.Daemon, got rig.Reply, of string) {
	d.T.Helper()
	d.WantError(got, "resource_exhausted")
	if m := got.Outcome.Metadata; m["share"] != "owner" || m["of"] != of || m["limit"] == nil || m["used"] == nil ||
		got.Outcome.Retriable {
		d.T.Errorf("got %+v, want one for %s", got.Outcome, of)
	}
}

// until repeats what is done until it is refused, and returns how it was.
func until(t *testing.T, most int, do func(i int) rig.Response) rig.Response {
	t.Helper()
	for i := range most {
		if r := do(i); r.Status >= 400 {
			return r
		}
	}
	t.Fatalf("%d were not refused", most)
	return rig.Response{}
}

func callOf(d *rig.Daemon, session, method string, args ...string) rig.Response {
	d.T.Helper()
	return d.Send(http.MethodPost, "/v1/sessions/"+session+"/calls",
		rig.MustJSON(map[string]any{"method": method, "args": args}), nil)
}

// storedOf is what an owner has by GET /v1/usage.
func storedOf(d *rig.Daemon, owner string) map[string]any {
	d.T.Helper()
	for _, row := range d.Get("/v1/usage")["storage"].([]any) {
		if row := row.(map[string]any); row["owner"] == owner {
			return row
		}
	}
	return nil
}

var (
	progFetchLength = rig.Program(
		"\tif _, err := call.Fetch(call.Arg(1, \"url\").(string)); err != nil {\n\t\treturn nil, err\n\t}\n\treturn len(call.Arg(0, \"text\").(string)), nil")
	progLarge = rig.Program("\treturn strings.Repeat(\"v\", 60<<10) + call.Arg(0, \"v\").(string), nil",
		"strings")
	progRemember = rig.Program(
		"\tcall.Context[call.Arg(0, \"k\").(string)] = strings.Repeat(\"c\", 50<<10)\n\treturn true, nil", "strings")
	progAsksLarge = rig.Program(
		"\to := call.Tool(\"clerk\").Call(\"given\", strings.Repeat(\"n\", 150<<10))\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(\"heard\", o.ErrorType+\" \"+o.ErrorMessage)\n\t}\n\treturn true, nil", "strings")
)

// A history that is full is refused before the program runs: nothing is fetched, nothing recorded, no model asked.
// Others go on, in the namespace and in others, also after a restart; a deletion makes room at once.
func TestFullHistory(t *testing.T) {
	t.Parallel()
	source := rig.NewSource(t, "here")
	m := rig.NewModel(t, rig.Script{"clerk.length": {progFetchLength, progFetchLength}, "clerk.fresh": {rig.ProgGiven}})
	c := newCrowd(t, m, "--fetch-allow", "127.0.0.1")
	long := strings.Repeat("x", 40<<10)
	sessions := []string{c.ann.Session("clerk"), c.ann.Session("clerk")}
	r := until(t, 20, func(i int) rig.Response { return callOf(c.ann, sessions[i%2], "length", long, source.URL) })
	p := full(c.ann, r, "storage_full", "owner", "histories")
	if text := fmt.Sprint(p["detail"], p["hint"]); !strings.Contains(text, "ann") ||
		!strings.Contains(text, "DELETE /v1/sessions") {
		t.Errorf("the problem says %q", text)
	}
	fetched, asked, logged := source.Requests(), len(m.Requests()), len(c.ann.List("/v1/calls"))
	full(c.ann, callOf(c.ann, sessions[0], "length", long, source.URL), "storage_full", "owner", "histories")
	full(c.ann, c.ann.Send(http.MethodPost, "/v1/functions/clerk__length",
		rig.MustJSON(map[string]any{"arguments": map[string]any{"text": long, "url": source.URL}}), nil),
		"storage_full", "owner", "histories")
	full(c.ann, c.ann.Send(http.MethodPost, "/v1/sessions/"+sessions[0]+"/calls",
		[]byte(`{"method":"fresh","args":["`+long+`"]}`), map[string]string{"Prefer": "respond-async"}), "storage_full",
		"owner", "histories")
	if now := source.Requests(); now != fetched || len(m.Requests()) != asked ||
		len(c.ann.List("/v1/calls")) != logged {
		t.Errorf("a refused call fetched %d times, had the model asked %d times, and left %d entries", now-fetched,
			len(m.Requests())-asked, len(c.ann.List("/v1/calls"))-logged)
	}
	for _, who := range []*rig.Daemon{c.ben, c.eve} {
		who.WantValue(who.Call(who.Session("clerk"), "length", long, source.URL), float64(len(long)), "")
	}
	own := storedOf(c.ann, "ann")
	if all := c.op.Get("/v1/usage")["storage"].([]any); len(all) != 2 ||
		fmt.Sprint(storedOf(c.op, "ann")) != fmt.Sprint(own) || storedOf(c.op,
		"ben")["histories"].(float64) < float64(len(long)) {
		t.Errorf("op sees %v, ann %v", all, own)
	}
	if rows := c.ann.Get("/v1/usage")["storage"].([]any); len(rows) != 1 || own["histories"].(float64) < 3*40<<10 ||
		own["values"].(float64) == 0 || own["contexts"].(float64) == 0 || own["tools"].(float64) == 0 {
		t.Errorf("ann sees %v", rows)
	}
	c.d.Stop(syscall.SIGKILL)
	c.d.Start()
	c.ann, c.op = c.d.As("token-of-ann-0001"), c.d.As("token-of-op-00003")
	full(c.ann, callOf(c.ann, sessions[0], "length", long, source.URL), "storage_full", "owner", "histories")
	if got := storedOf(c.ann, "ann"); fmt.Sprint(got) != fmt.Sprint(own) {
		t.Errorf("after a restart ann has %v, had %v", got, own)
	}
	if got := c.op.Metric(`recurgent_storage_refused_total{kind="histories"}`); got == 0 {
		t.Error("no refusal was counted")
	}
	c.op.Do(http.StatusNoContent, http.MethodDelete, "/v1/sessions/"+sessions[0], nil)
	c.ann.WantValue(c.ann.Call(sessions[1], "length", long, source.URL), float64(len(long)), "persisted")
}

// A value without room is for its caller alone; it is an error where nobody waits, or a repetition must find it. Where
// there is no room at all calls are refused, and a program that calls another learns that there was no room for that.
func TestFullValues(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, rig.NewModel(t, rig.Script{"clerk.large": {progLarge}, "clerk.ask": {progAsksLarge},
		"clerk.given": {rig.ProgGiven}}))
	s := c.ann.Session("clerk")
	c.ann.WantValue(c.ann.Call(s, "large", ""), strings.Repeat("v", 60<<10), "generated")
	for range 2 {
		c.ann.WantValue(c.ann.Call(s, "large", ""), strings.Repeat("v", 60<<10), "persisted")
	}
	lost := c.ann.Call(s, "large", "")
	c.ann.WantValue(lost, strings.Repeat("v", 60<<10), "persisted")
	if e := c.ann.LogOf(lost); e["outcome"] != nil || e["outcome_status"] != "ok" ||
		!strings.Contains(fmt.Sprint(e["warnings"]), "no room for values") {
		t.Errorf("it has %v, %v, %v", e["outcome"], e["outcome_status"], e["warnings"])
	}
	keyed := c.ann.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method":"large","args":[""]}`),
		map[string]string{"Idempotency-Key": "k"})
	if o := keyed.Object(t)["outcome"].(map[string]any); o["error_type"] != "resource_exhausted" {
		t.Errorf("with a key: got %v", o)
	}
	full(c.ann, until(t, 60, func(int) rig.Response { return callOf(c.ann, s, "given", strings.Repeat("s", 700)) }),
		"storage_full", "owner", "values")
	c.ben.WantValue(c.ben.Call(c.ben.Session("clerk"), "large", ""), strings.Repeat("v", 60<<10), "persisted")
	c.ann.Do(http.StatusNoContent, http.MethodDelete, "/v1/sessions/"+s, nil)
	s = c.ann.Session("clerk")
	c.ann.WantValue(c.ann.Call(s, "large", ""), strings.Repeat("v", 60<<10), "persisted")

	// histories have room for one of these, and not for what the program passes on
	callOf(c.ann, s, "given", strings.Repeat("h", 60<<10))
	got := c.ann.Call(s, "ask", "x")
	c.ann.WantError(got, "heard")
	if !strings.Contains(got.Outcome.ErrorMessage, "resource_exhausted") ||
		!strings.Contains(got.Outcome.ErrorMessage, "histories") {
		t.Errorf("the program saw %q", got.Outcome.ErrorMessage)
	}
	if n := len(c.ann.History(s)); n != 3 {
		t.Errorf("%d records, want those of the three calls", n)
	}
}

// A context that does not fit is refused by whatever way it comes; a call that leaves one ends in an error, with its
// record and without the context.
func TestFullContexts(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, rig.NewModel(t, rig.Script{"clerk.remember": {progRemember}}))
	large := map[string]any{"k": strings.Repeat("c", 50<<10)}
	s := c.ann.Session("clerk", map[string]any{"context": large})
	full(c.ann, c.ann.Send(http.MethodPost, "/v1/sessions",
		rig.MustJSON(map[string]any{"role": "clerk", "context": large}), nil), "storage_full", "owner", "contexts")
	other := c.ann.Session("clerk")
	full(c.ann, c.ann.Send(http.MethodPatch, "/v1/sessions/"+other+"/context", rig.MustJSON(large), nil),
		"storage_full", "owner", "contexts")
	wantFull(c.ann, c.ann.Call(other, "remember", "a"), "contexts")
	wantFull(c.ann, c.ann.Call(other, "b=", strings.Repeat("c", 50<<10)), "contexts")
	if n, kept := len(c.ann.History(other)),
		c.ann.Get("/v1/sessions/"+other+"/context"); n != 2 || kept["a"] != nil || kept["b"] != nil ||
		kept["k"] != nil {
		t.Errorf("%d records, and a context %v", n, kept)
	}
	c.ann.WantValue(c.ann.Call(s, "remember", "k"), true, "persisted") // no growth
	if a := c.op.Artifact("clerk", "remember"); a["failure_count"] != 0.0 {
		t.Errorf("it counted against the program: %v", a["failure_count"])
	}
	c.ann.Do(http.StatusOK, http.MethodPatch, "/v1/sessions/"+s+"/context", map[string]any{"k": nil})
	c.ann.WantValue(c.ann.Call(other, "remember", "a"), true, "persisted")
	c.ben.WantValue(c.ben.Call(c.ben.Session("clerk"), "b=", "small"), "small", "none")
}

// A context has its bound also where a call makes it grow.
func TestContextOfCallsIsBounded(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	s := d.Session("clerk")
	d.WantValue(d.Call(s, "a=", strings.Repeat("c", 600<<10)), strings.Repeat("c", 600<<10), "none")
	d.WantError(d.Call(s, "b=", strings.Repeat("c", 600<<10)), "resource_exhausted")
	if kept := d.Get("/v1/sessions/" + s + "/context"); kept["a"] == nil || kept["b"] != nil {
		t.Errorf("kept %.100v", kept)
	}
}

// No model is asked for a program that could not be kept. What is stored answers, other owners have theirs written, and
// archiving makes room.
func TestFullTools(t *testing.T) {
	t.Parallel()
	heavy := func(n int) string {
		return rig.Program(fmt.Sprintf("\t// %s\n\treturn %d, nil", strings.Repeat("t", 20<<10), n))
	}
	m := rig.NewModel(t, rig.Script{"clerk.one": {heavy(1)}, "clerk.two": {heavy(2)},
		"clerk.three": {heavy(3), heavy(3)}})
	c := newCrowd(t, m)
	s := c.ann.Session("clerk")
	c.ann.WantValue(c.ann.Call(s, "one"), 1.0, "generated")
	c.ann.WantValue(c.ann.Call(s, "two"), 2.0, "generated")
	asked := len(m.Requests())
	for range 2 { // no delay comes of it
		wantFull(c.ann, c.ann.Call(s, "three"), "tools")
	}
	if now := len(m.Requests()); now != asked {
		t.Errorf("the model was asked %d times", now-asked)
	}
	c.ann.WantValue(c.ann.Call(s, "one"), 1.0, "persisted")
	c.ben.WantValue(c.ben.Call(c.ben.Session("clerk"), "three"), 3.0, "generated")
	c.op.Do(http.StatusNoContent, http.MethodDelete, rig.MethodPath("clerk", "three"), nil)
	c.op.Do(http.StatusNoContent, http.MethodDelete, rig.MethodPath("clerk", "two"), nil)
	c.ann.WantValue(c.ann.Call(s, "three"), 3.0, "generated")

	put := func(kib int) rig.Response {
		return c.op.Send(http.MethodPut, "/v1/tools/clerk",
			rig.MustJSON(map[string]any{"purpose": strings.Repeat("p", kib<<10)}), nil)
	}
	full(c.op, put(40), "storage_full", "owner", "tools")
	if r := put(1); r.Status != http.StatusOK {
		t.Errorf("a small contract: %d %s", r.Status, r.Body)
	}
	full(c.op, c.op.Send(http.MethodPut, rig.MethodPath("clerk", "mine"),
		rig.MustJSON(map[string]any{"code": heavy(4) + "// " + strings.Repeat("u", 12<<10) + "\n"}), nil),
		"storage_full", "owner", "tools")
}

// Examples, and verdicts, are held likewise.
func TestFullExamples(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, rig.NewModel(t, rig.Script{"clerk.given": {rig.ProgGiven}}))
	path := rig.MethodPath("clerk", "given") + "/examples"
	list := func(n, kib int) []byte {
		all := []map[string]any{}
		for i := range n {
			v := fmt.Sprint(i, strings.Repeat("e", kib<<10))
			all = append(all, map[string]any{"args": []any{v}, "expect": map[string]any{"value": v}})
		}
		return rig.MustJSON(map[string]any{"examples": all})
	}
	full(c.op, c.op.Send(http.MethodPut, path, list(3, 10), nil), "storage_full", "owner", "examples")
	if r := c.op.Send(http.MethodPut, path, list(1, 10), nil); r.Status >= 300 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	if r := c.op.Send(http.MethodPut, path, list(0, 0), nil); r.Status >= 300 { // frees what they took
		t.Fatalf("fewer examples: %d %s", r.Status, r.Body)
	}
	s := c.ann.Session("clerk")
	r := until(t, 10, func(i int) rig.Response {
		got := c.ann.Call(s, "given", fmt.Sprint(i, strings.Repeat("e", 5<<10)))
		return c.ann.Send(http.MethodPost, "/v1/calls/"+got.CallID+"/verdict",
			[]byte(`{"verdict":"wrong","expected":"other"}`), nil)
	})
	full(c.ann, r, "storage_full", "owner", "examples")
	if r := c.op.Send(http.MethodPut, path, list(1, 2), nil); r.Status >= 300 {
		t.Errorf("another owner: %d %s", r.Status, r.Body)
	}
}

// Nobody fills the files of all: not one owner those of the namespace, not one namespace those of the others. Files of
// a token that is gone are found, and deleted, by who operates.
func TestFullFiles(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, rig.NewModel(t, rig.Script{}), "--file-max", "1MiB", "--files-max", "8MiB")
	put := func(d *rig.Daemon) rig.Response {
		return d.Send(http.MethodPost, "/v1/files", []byte(strings.Repeat("x", 1<<20-512)),
			map[string]string{"Content-Type": "text/plain"})
	}
	if p := full(c.ann, until(t, 9, func(int) rig.Response { return put(c.ann) }), "files_full", "owner",
		"files"); p["used"] != 4.0*(1<<20) || p["limit"] != 4.0*(1<<20) {
		t.Errorf("ann's share is %v of %v", p["used"], p["limit"])
	}
	full(c.ben, until(t, 9, func(int) rig.Response { return put(c.ben) }), "files_full", "namespace", "files")
	if r := put(c.eve); r.Status != http.StatusCreated {
		t.Fatalf("another namespace: %d %s", r.Status, r.Body)
	}
	if r := c.ann.Send(http.MethodGet, "/v1/files?owner=ben", nil, nil); r.Status != http.StatusForbidden {
		t.Errorf("ann lists ben's files: %d %s", r.Status, r.Body)
	}
	list := c.op.List("/v1/files?owner=ann")
	if len(list) != 4 {
		t.Fatalf("op sees %d files of ann", len(list))
	}
	for _, f := range list[:2] { // what eve has counts towards the namespace's share, too
		c.op.Do(http.StatusNoContent, http.MethodDelete, "/v1/files/"+f["id"].(string), nil)
	}
	if r := put(c.ann); r.Status != http.StatusCreated {
		t.Errorf("after a deletion: %d %s", r.Status, r.Body)
	}
}

// The policy says what one owner's share is, with and without tokens.
func TestOwnerShare(t *testing.T) {
	t.Parallel()
	share := func(d *rig.Daemon) any { return d.Get("/v1/policy")["storage"].(map[string]any)["owner_share"] }
	d := rig.Start(t, rig.NewModel(t, rig.Script{"clerk.given": {rig.ProgGiven}}), "--storage-max", "1MiB")
	if got := share(d); got != 1.0 {
		t.Errorf("without tokens it is %v", got)
	}
	if c := newCrowd(t, nil); share(c.op) != 0.5 {
		t.Errorf("with tokens it is %v", share(c.op))
	}
	s := d.Session("clerk")
	arg := strings.Repeat("h", 200<<10)
	if r := callOf(d, s, "given", arg); r.Status != http.StatusOK { // more than half of histories
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	d.Policy(map[string]any{"storage": map[string]any{"owner_share": 0.25}})
	full(d, callOf(d, s, "given", "small"), "storage_full", "owner", "histories")
	if h := d.History(s); len(h) != 1 {
		t.Errorf("what is there is not read: %d records", len(h))
	}
	r := d.Send(http.MethodPatch, "/v1/policy", []byte(`{"storage":{"owner_share":1.5}}`), nil)
	if p := r.Object(t); p["code"] != "invalid_policy" {
		t.Errorf("%s", r.Body)
	}
	d.Policy(map[string]any{"storage": nil})
	if got := share(d); got != 1.0 {
		t.Errorf("the default is %v", got)
	}
	d.WantValue(d.Call(s, "given", "small"), "small", "persisted")
}

// Records of calls take nothing from the share of files: who has no file fills nobody's share of them. A file without
// bytes takes some.
func TestFilesAreFilesAlone(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, rig.NewModel(t, rig.Script{"clerk.given": {rig.ProgGiven}}), "--storage-max", "64MiB",
		"--file-max", "64KiB", "--files-max", "1MiB")
	s := c.ann.Session("clerk")
	for i := range 4 {
		if r := callOf(c.ann, s, "given", strings.Repeat("v", 600<<10)+fmt.Sprint(i)); r.Status != http.StatusOK {
			t.Fatalf("call %d: %d %s", i, r.Status, r.Body)
		}
	}
	for name, d := range map[string]*rig.Daemon{"ann": c.ann, "ben": c.ben, "eve": c.eve} {
		if r := d.Send(http.MethodPost, "/v1/files", []byte("a line\n"),
			map[string]string{"Content-Type": "text/plain"}); r.Status != http.StatusCreated {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
	}
	full(c.ann, until(t, 2000, func(int) rig.Response {
		return c.ann.Send(http.MethodPost, "/v1/files", nil, map[string]string{"Content-Type": "text/plain"})
	}), "files_full", "owner", "files")
	if n := c.op.Metric(`recurgent_stored_limit_bytes{kind="files"}`); n != 1<<20 {
		t.Errorf("the metric says that files may take %v bytes", n)
	}
}

// Contracts that programs delegate with are kept while there is room, and hold for their call in any case.
func TestDelegatedContractsHaveRoom(t *testing.T) {
	t.Parallel()
	delegates := rig.Program(
		"\tn, _ := call.Arg(0, \"n\").(float64)\n\tfor i := range 8 {\n\t\tcall.Delegate(fmt.Sprintf(\"made_%v_%d\", n, i), recurgent.Contract{Purpose: strings.Repeat(\"p\", 3000)})\n\t}\n\treturn n, nil", "fmt", "strings")
	c := newCrowd(t, rig.NewModel(t, rig.Script{"clerk.delegates": {delegates}}))
	s := c.ann.Session("clerk")
	for i := range 4 {
		c.ann.WantValue(c.ann.Call(s, "delegates", i), i, map[bool]string{true: "generated",
			false: "persisted"}[i == 0])
	}
	if got := storedOf(c.ann, "ann")["tools"].(float64); got > 36<<10 || got < 26<<10 {
		t.Errorf("ann has %v bytes of tools, of 32 KiB", got)
	}
	if e := c.op.LogOf(c.ann.Call(s, "delegates", 5)); !strings.Contains(fmt.Sprint(e["warnings"]),
		"no room to keep it") {
		t.Errorf("the log warns of %v", e["warnings"])
	}
}

// A contract that waits for a person is of the owner whose call it was, and has room in that owner's share alone.
func TestProposedContractsHaveRoom(t *testing.T) {
	t.Parallel()
	delegates := rig.Program(
		"\tfor i := range 12 {\n\t\tcall.Delegate(fmt.Sprint(\"role\", i), recurgent.Contract{Purpose: strings.Repeat(\"p\", 5000), Deliverable: map[string]any{\"type\": \"array\"}})\n\t}\n\treturn call.Arg(0, \"n\"), nil", "fmt", "strings")
	c := newCrowd(t, rig.NewModel(t, rig.Script{"clerk.delegates": {delegates}}))
	for i := range 12 {
		c.op.Do(http.StatusCreated, http.MethodPut, fmt.Sprint("/v1/tools/role", i), map[string]any{"purpose": "of op"})
	}
	before := storedOf(c.op, "op")["tools"]
	s := c.ben.Session("clerk")
	var got rig.Reply
	for i := range 3 {
		got = c.ben.Call(s, "delegates", i)
		c.ben.WantValue(got, i, "")
	}
	waiting := len(c.op.List("/v1/inbox?kind=proposal"))
	if bytes := storedOf(c.op, "ben")["tools"].(float64); waiting < 4 || waiting >= 8 || bytes < 4*5000 ||
		bytes > 36<<10 || storedOf(c.op, "op")["tools"] != before {
		t.Errorf("%d contracts wait, ben has %v bytes, op %v, before %v", waiting, bytes, storedOf(c.op, "op")["tools"],
			before)
	}
	if e := c.op.LogOf(got); !strings.Contains(fmt.Sprint(e["warnings"]), "no room to keep it") {
		t.Errorf("the log warns of %v", e["warnings"])
	}
}

// Calls that wait together have room together: what waits is held against the share, and what there is no room for in
// the end is left out.
func TestWaitingCallsHaveRoom(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, rig.NewModel(t, rig.Script{"clerk.given": {rig.ProgGiven}}))
	warm := c.ann.Session("clerk")
	c.ann.Call(warm, "given", "warm")
	var sessions []string
	for range 8 {
		sessions = append(sessions, c.ann.Session("clerk"))
	}
	refused, accepted := 0, []string{}
	for i := range 24 {
		r := c.ann.Send(http.MethodPost, "/v1/sessions/"+sessions[i%len(sessions)]+"/calls",
			rig.MustJSON(map[string]any{"method": "given", "args": []string{strings.Repeat("w", 30<<10)}}),
			map[string]string{"Prefer": "respond-async"})
		if r.Status == http.StatusInsufficientStorage {
			refused++
			continue
		}
		accepted = append(accepted, r.Object(t)["call_id"].(string))
	}
	for _, id := range accepted { // its events end with it
		c.ann.Send(http.MethodGet, "/v1/calls/"+id+"/events", nil, nil)
	}
	got := storedOf(c.ann, "ann")
	if refused == 0 || got["histories"].(float64) > 192<<10 || got["values"].(float64) > 200<<10 {
		t.Errorf("%d of 24 were refused; ann has %v", refused, got)
	}
	if r := callOf(c.ben, c.ben.Session("clerk"), "given", "x"); r.Status != http.StatusOK {
		t.Errorf("ben: %d %s", r.Status, r.Body)
	}
}

// That there is no room teaches nothing of programs, whatever they make of it.
func TestNoRoomTeachesNothing(t *testing.T) {
	t.Parallel()
	panics := rig.Program("\to := call.Tool(\"clerk\").Call(\"given\", strings.Repeat(\"n\", int(call.Arg(0, \"n\").(float64))))\n\tif !o.OK() {\n\t\tpanic(\"no clerk today\")\n\t}\n\treturn true, nil", "strings")
	remembers := rig.Program(
		"\tn, _ := call.Arg(0, \"n\").(float64)\n\tcall.Context[\"k\"] = strings.Repeat(\"c\", int(n))\n\treturn n, nil", "strings")
	m := rig.NewModel(t, rig.Script{"clerk.given": {rig.ProgGiven}, "clerk.panics": {panics},
		"clerk.remembers": {remembers}})
	c := newCrowd(t, m)
	s := c.ann.Session("clerk")
	c.ann.Call(s, "panics", 1)
	c.ann.Call(s, "remembers", 1)
	asked := len(m.Questions())
	for range 4 {
		got := c.ann.Call(s, "panics", 300<<10)
		if got.Outcome.OK || got.Program.Source != "persisted" {
			t.Errorf("got %+v of %+v", got.Outcome, got.Program)
		}
		c.ann.WantError(c.ann.Call(s, "remembers", 300<<10), "resource_exhausted")
	}
	for method, ok := range map[string]float64{"panics": 1, "remembers": 1} {
		a := c.op.Artifact("clerk", method)
		if a["success_count"] != ok || a["intrinsic_failure_count"] != 0.0 || a["adaptive_failure_count"] != 0.0 ||
			a["recent_failure_rate"] != 0.0 {
			t.Errorf("%s: %v successes, %v and %v failures", method, a["success_count"], a["intrinsic_failure_count"],
				a["adaptive_failure_count"])
		}
	}
	if n := len(m.Questions()); n != asked {
		t.Errorf("the model was asked %d times", n-asked)
	}
}

// What was archived comes back only while there is room, by an undo too.
func TestRestoredToolsHaveRoom(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, rig.NewModel(t, rig.Script{}))
	contract := map[string]any{"purpose": strings.Repeat("p", 7000)}
	for i := range 12 {
		role := fmt.Sprintf("made_%d", i)
		c.op.Do(http.StatusCreated, http.MethodPut, "/v1/tools/"+role, contract)
		c.op.Do(http.StatusNoContent, http.MethodDelete, "/v1/tools/"+role, nil)
	}
	refused := until(t, 12, func(i int) rig.Response {
		return c.op.Send(http.MethodPost, "/v1/maintenance/restore",
			rig.MustJSON(map[string]any{"role": fmt.Sprintf("made_%d", i)}), nil)
	})
	full(c.op, refused, "storage_full", "owner", "tools")
	if got := storedOf(c.op, "op")["tools"].(float64); got > 40<<10 {
		t.Errorf("op has %v bytes of tools, of 32 KiB", got)
	}
}
