package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func greeter(name string) string {
	return rig.Program("\twho, _ := call.Arg(0, \"who\").(string)\n\treturn \"hello from " + name + " to \" + who, nil")
}

var fetcher = rig.Program(`	r, err := call.FetchWith(recurgent.Request{URL: call.Args[0].(string), Cache: true})
	if err != nil {
		return nil, err
	}
	return r.Body, nil`)

// twoTenants are two namespaces of one daemon in which the same things were done under the same names. secrets returns
// what their source was sent.
func twoTenants(t *testing.T) (d *rig.Daemon, a, b *tenant, m *rig.Model, secrets func() string) {
	t.Helper()
	var mu sync.Mutex
	var signed []string
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		signed = append(signed, r.Header.Get("Authorization"))
		mu.Unlock()
		w.Header().Set("Cache-Control", "max-age=3600, public")
		fmt.Fprint(w, r.Header.Get("Authorization"))
	}))
	t.Cleanup(source.Close)
	host := strings.TrimPrefix(source.URL, "http://")
	m = rig.NewModel(t, rig.Script{"clerk.greet": {greeter("a"), greeter("b")}, "fetcher.page": {fetcher},
		"finder a.find": {rig.ProgMoviesWeak}, "finder b.find": {rig.ProgMoviesWeak}})
	m.Answer("", "", rig.Text("A: answered"))
	d = guarded(t, m, "--fetch-allow", host)
	a = &tenant{Daemon: person(d, tokenA, ""), name: "a", canary: "canary-of-first"}
	b = &tenant{Daemon: person(d, tokenB, ""), name: "b", canary: "canary-of-second"}
	followed := follow(t, a.Daemon, "")
	a.visit(d, host)
	asked := len(m.Questions())
	b.visit(d, host)
	last := a.Call(a.ids["id"][0], "greet", "the last")
	seen := followed(last.CallID)
	if bytes.Contains(seen, []byte(b.canary)) || !bytes.Contains(seen, []byte(a.canary)) {
		t.Errorf("the stream of a: %s", seen)
	}
	for i, q := range m.Questions() {
		own, other := a, b
		if i >= asked {
			own, other = b, a
		}
		if text := q.System + q.User; strings.Contains(text, other.canary) || !strings.Contains(text, own.canary) {
			t.Errorf("the prompt for %s.%s in %s: what is its own %v, what is another's %v", q.Role, q.Method, own.name,
				strings.Contains(text, own.canary), strings.Contains(text, other.canary))
		}
	}
	if n := len(m.Questions()); n != 2*asked || asked != 4 {
		t.Errorf("%d prompts of which %d in the first, want one for each method and prediction in each namespace", n,
			asked)
	}
	return d, a, b, m, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(signed, ", ")
	}
}

// Two namespaces do the same things under the same names. Each has its own answers, and neither can read, list, follow
// or guess anything of the other; nor can a model be shown it. It stays so over a restart.
func TestNothingShowsElsewhere(t *testing.T) {
	t.Parallel()
	d, a, b, _, secrets := twoTenants(t)
	search(t, a, b)
	search(t, b, a)
	if got := secrets(); got != "Bearer secret-of-a, Bearer secret-of-b" {
		t.Errorf("the source was sent %s", got)
	}

	d.Restart()
	for _, x := range []*tenant{a, b} {
		x.URL = d.URL
		x.WantValue(x.Call(x.ids["id"][0], "greet", "again"), "hello from "+x.name+" to again", "persisted")
	}
	search(t, a, b)
	search(t, b, a)
	root := person(d, tokenRoot, "")
	if got := root.List("/v1/namespaces"); len(got) != 3 {
		t.Errorf("namespaces: %v", got)
	}
	if tools := root.List("/v1/tools"); len(tools) != 0 {
		t.Errorf("the default namespace has %v", tools)
	}
	if r := a.Send(http.MethodGet, "/v1/tools", nil,
		map[string]string{"Recurgent-Namespace": "b"}); r.Status != http.StatusForbidden {
		t.Errorf("a in b: %d %s", r.Status, r.Body)
	}
}

// follow reads the stream of calls, behind the call after ("" from now on); the returned function returns what came up
// to the end of a call.
func follow(t *testing.T, d *rig.Daemon, after string) func(until string) []byte {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	header := map[string]string{}
	if after != "" {
		header["Last-Event-ID"] = after
	}
	resp := d.Stream(ctx, "/v1/events", header)
	lines := bufio.NewReader(resp.Body)
	return func(until string) (seen []byte) {
		defer stop()
		defer resp.Body.Close()
		for {
			line, err := lines.ReadBytes('\n')
			seen = append(seen, line...)
			if err != nil || bytes.Contains(line, []byte("data: ")) && bytes.Contains(line, []byte(until)) {
				return seen
			}
		}
	}
}

// Many namespaces are made and written to; a restart opens none of them, and what is called is opened alone.
func TestManyNamespaces(t *testing.T) {
	m := rig.NewModel(t, nil)
	m.Otherwise(rig.ProgEcho)
	d := rig.Start(t, m)
	const many = 60
	for i := range many {
		d.Do(http.StatusCreated, http.MethodPut, fmt.Sprintf("/v1/namespaces/n%d", i), nil)
		in := person(d, "", fmt.Sprintf("n%d", i))
		in.Do(http.StatusCreated, http.MethodPut, "/v1/tools/clerk", map[string]any{"purpose": fmt.Sprint("of ", i)})
	}
	d.Restart()
	var list struct {
		Data []struct{ Name string } `json:"data"`
	}
	if err := json.Unmarshal(d.Do(http.StatusOK, http.MethodGet, "/v1/namespaces?limit=1000", nil).Body,
		&list); err != nil || len(list.Data) != many+1 {
		t.Fatalf("%d namespaces are listed, %v", len(list.Data), err)
	}
	for _, i := range []int{0, many / 2, many - 1} {
		in := person(d, "", fmt.Sprintf("n%d", i))
		if got := in.Get("/v1/tools/clerk"); got["purpose"] != fmt.Sprint("of ", i) {
			t.Errorf("n%d has %v", i, got)
		}
	}
}
