package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A shelf is a store with a catalog.
type shelf struct {
	*Catalog
	t      *testing.T
	policy *agent.Policy
	outage *outage
}

// An outage is a store with a hook before reads of artifacts; a read fails with the hook's error.
type outage struct {
	store.Store
	before func(method string) error // nil means that reads succeed
}

type outageNamespace struct {
	store.Namespace
	all *outage
}

var errAway = errors.New("the store is away")

func (o *outage) Namespace(name agent.Namespace) (store.Namespace, error) {
	n, err := o.Store.Namespace(name)
	return outageNamespace{n, o}, err
}

func (n outageNamespace) Artifact(ctx context.Context, role, method string) (*agent.Artifact, error) {
	if n.all.before != nil {
		if err := n.all.before(method); err != nil {
			return nil, err
		}
	}
	return n.Namespace.Artifact(ctx, role, method)
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	p := agent.DefaultPolicy()
	s := &shelf{t: t, policy: &p, outage: &outage{Store: storetest.NewMemory(time.Now)}}
	var err error
	s.Catalog, err = New(Options{Store: s.outage,
		Policy: func() *agent.Policy { return s.policy }, Serving: s.serving})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *shelf) serving(a *agent.Artifact) (*agent.Generation, string) {
	d := selection.Select(selection.Input{Role: a.Role, Method: a.MethodName, Artifact: a,
		CheckedFingerprint: agent.FingerprintNone, Policy: s.policy,
		Now: time.Now(), ImportAllowed: func(string) bool { return true },
		IgnoresArgs: func(*agent.Generation) bool { return false }})
	if d.Decision != agent.DecideRun {
		return nil, d.Reason
	}
	return d.Generation, ""
}

// put registers the role and gives the method a program.
func (s *shelf) put(role, method string, f *agent.Interface) {
	s.t.Helper()
	g := &agent.Generation{ID: "gen-1", Trigger: "initial_forge", Code: "package tool",
		CodeChecksum: agent.Checksum("package tool"), RuntimeVersion: agent.ABI,
		Cacheable: true, Interface: f, Facts: json.RawMessage(`{"imports":[],"uses_args":true}`)}
	s.change(role, method, agent.ArtifactChange{Generation: g})
}

func (s *shelf) purpose(role, text string) {
	s.t.Helper()
	if _, err := s.store.PutTool(s.t.Context(), agent.Tool{Role: role, Contract: agent.Contract{Purpose: text}},
		store.AnyRevision, nil); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shelf) change(role, method string, c agent.ArtifactChange) {
	s.t.Helper()
	c.Role, c.MethodName, c.At = role, method, time.Now()
	if _, err := s.store.ChangeArtifact(s.t.Context(), store.AnyRevision, c, nil); err != nil {
		s.t.Fatal(err)
	}
}

// anybody is the user of a daemon without access tokens, who owns everything.
var anybody = agent.Reader{Owner: agent.LocalOwner, Operates: true}

func (s *shelf) all() (names []string) {
	s.t.Helper()
	for after := ""; ; {
		tools, more, err := s.List(s.t.Context(), anybody, after, 2)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, tool := range tools {
			names = append(names, tool.Name)
		}
		if !more {
			return names
		}
		after = names[len(names)-1]
	}
}

func (s *shelf) want(names ...string) {
	s.t.Helper()
	if got := s.all(); !slices.Equal(got, names) {
		s.t.Errorf("listed: %v, want %v", got, names)
	}
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.want()
	add := &agent.Interface{Summary: "Add two numbers.", Origin: agent.OriginDeclared,
		Returns: json.RawMessage(`{"type":"number"}`),
		Parameters: []agent.Parameter{{Name: "a", Type: "number", Required: true},
			{Name: "b", Type: "number", Required: true}}}
	s.put("calculator", "add", add)
	s.put("calculator", "mul", nil)
	s.put("übung", "x", nil)
	umlaut := toolName(Method{"übung", "x"})
	s.want(umlaut, "calculator__add", "calculator__mul")

	tool, err := s.Find(t.Context(), anybody, "calculator__add")
	if err != nil || tool.Description != "calculator.add. Described by a language model, parameters included: Add two numbers." || string(tool.Returns) != `{"type":"number"}` || tool.FreeForm || !tool.ReadOnly || tool.OpenWorld {
		t.Errorf("add: %+v, %v", tool, err)
	}
	if tool.Signature != "add(a: number, b: number) -> number" ||
		!strings.Contains(string(tool.Parameters), `"required":["a","b"]`) {
		t.Errorf("add: %s, %s", tool.Signature, tool.Parameters)
	}
	if tool, err = s.Find(t.Context(), anybody,
		"calculator__mul"); err != nil || !tool.FreeForm || tool.Returns != nil {
		t.Errorf("mul: %+v, %v", tool, err)
	}
	before, _ := s.Revision(t.Context())
	s.change("calculator", "mul", agent.ArtifactChange{Result: agent.ClassOK}) // as each call does
	if now, _ := s.Revision(t.Context()); now != before {
		t.Error("a call changed the list")
	}
	s.purpose("calculator", "arithmetic")
	if tool, err = s.Find(t.Context(), anybody,
		"calculator__mul"); err != nil ||
		tool.Description != "calculator.mul, of calculator. What it takes is not known. It has no effects. Described by a language model, parameters included: arithmetic" {
		t.Errorf("mul: %+v, %v", tool, err)
	}
	if now, _ := s.Revision(t.Context()); now == before {
		t.Error("a purpose did not change the list")
	}

	why := "wrong answers"
	s.change("calculator", "mul", agent.ArtifactChange{Quarantine: &why})
	s.want(umlaut, "calculator__add")
	s.missing("calculator__mul", "calculator.mul is not offered now: quarantined")
	s.missing("calculator__div", "list the tools")
	s.change("calculator", "mul", agent.ArtifactChange{Release: true})
	s.want(umlaut, "calculator__add", "calculator__mul")

	target := []store.Target{{Role: "calculator", Method: "add"}}
	if err := s.store.Archive(t.Context(), target, agent.AuditEntry{ID: "a1"}); err != nil {
		t.Fatal(err)
	}
	s.want(umlaut, "calculator__mul")
	if err := s.store.Restore(t.Context(), target, agent.AuditEntry{ID: "a2"}); err != nil {
		t.Fatal(err)
	}
	s.want(umlaut, "calculator__add", "calculator__mul")
}

// A program that reads any keywords has no parameters to list. Every form of its schema offers args and kwargs, since
// agents send only what a schema lists.
func TestProgramsThatReadAnyKeywords(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.put("kw", "render", &agent.Interface{Parameters: []agent.Parameter{}, Open: true})
	tool, err := s.Find(t.Context(), anybody, "kw__render")
	if err != nil {
		t.Fatal(err)
	}
	for form, schema := range map[string]json.RawMessage{"plain": tool.Parameters, "strict": tool.Strict(),
		"gemini": tool.Gemini()} {
		if !strings.Contains(string(schema), `"args":{`) || !strings.Contains(string(schema), `"kwargs":{`) {
			t.Errorf("%s: %s", form, schema)
		}
	}
	if !strings.Contains(tool.Description, "It takes arguments by name.") {
		t.Errorf("described as %q", tool.Description)
	}
	for in, want := range map[string]string{`{"kwargs":{"a":1}}`: `{"a":1}`, `{"a":1}`: `{"a":1}`} {
		if args, kwargs, err := tool.Arguments(json.RawMessage(in), Plain); err != nil || len(args) > 0 ||
			string(kwargs) != want {
			t.Errorf("%s: %s, %s, %v", in, args, kwargs, err)
		}
	}
}

// A request fails while the store does, even the first one.
func TestOutage(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.put("calculator", "add", nil)
	s.outage.before = func(string) error { return errAway }
	if _, err := s.Of(t.Context(), anybody, Method{"calculator", "add"}); !errors.Is(err, errAway) {
		t.Errorf("the first request: %v, want %v", err, errAway)
	}
	s.outage.before = nil
	s.want("calculator__add")
}

// The next list has the entries read before the store failed.
func TestOutageWithinABatch(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	methods := []string{"add", "mul"}
	for _, method := range methods {
		s.put("calculator", method, nil)
	}
	before, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	for _, method := range methods { // both are read again, in any order, but neither is listed otherwise
		s.change("calculator", method, agent.ArtifactChange{Result: agent.ClassOK})
	}
	var gone string
	s.outage.before = func(method string) error {
		if gone != "" {
			return errAway // at the second read
		}
		gone = method
		why := "wrong answers"
		s.change("calculator", method, agent.ArtifactChange{Quarantine: &why})
		return nil
	}
	if _, err := s.Revision(t.Context()); !errors.Is(err, errAway) {
		t.Errorf("while the second read fails: %v, want %v", err, errAway)
	}
	s.outage.before = nil
	if now, err := s.Revision(t.Context()); err != nil || now == before {
		t.Errorf("without %s, the revision is %d as before (%v)", gone, now, err)
	}
	s.want(slices.DeleteFunc([]string{"calculator__add", "calculator__mul"},
		func(name string) bool { return strings.HasSuffix(name, gone) })...)
}

func (s *shelf) missing(name, reason string) {
	s.t.Helper()
	tool, err := s.Find(s.t.Context(), anybody, name)
	if !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), reason) {
		s.t.Errorf("%s: %+v, %v; want %q", name, tool, err, reason)
	}
}

func TestExpose(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.put("r", "candidate", nil)
	s.put("r", "durable", nil)
	s.put("r", "approved", nil)
	yes := true
	s.change("r", "durable", agent.ArtifactChange{State: agent.StateDurable})
	s.change("r", "approved", agent.ArtifactChange{Approve: &yes})
	for expose, names := range map[string][]string{agent.ExposeAll: {"r__approved", "r__candidate", "r__durable"},
		agent.ExposeDurable: {"r__durable"}, agent.ExposeApproved: {"r__approved"}} {
		p := *s.policy
		p.MCP.Expose = expose
		s.policy = &p
		s.want(names...)
	}
	p := *s.policy
	p.MCP.Expose = agent.ExposeDurable
	s.policy = &p
	s.missing("r__candidate", "durable programs only")
}

// Methods that claim one name are listed under separate names, and the error for the shared name lists them.
func TestCollidingTools(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.put("a_", "b", nil)
	s.want("a___b")
	s.put("a", "_b", nil)
	names := s.all()
	if len(names) != 2 || slices.Contains(names, "a___b") {
		t.Fatalf("listed: %v", names)
	}
	s.missing("a___b", "several methods have that name; use a___b_")
	roles := map[string]bool{}
	for _, name := range names {
		tool, err := s.Find(t.Context(), anybody, name)
		if err != nil {
			t.Fatal(err)
		}
		roles[tool.Role] = true
	}
	if len(roles) != 2 {
		t.Errorf("the names stand for %v", roles)
	}
}

// Thousands of tools are listed in pages. A tool that stays during the listing appears exactly once.
func TestChangesDuringAListing(t *testing.T) {
	t.Parallel()
	const roles, methods = 60, 50
	s := newShelf(t)
	stays := map[string]int{}
	for i := range roles {
		for j := range methods {
			s.put(fmt.Sprintf("role%02d", i), fmt.Sprintf("m%02d", j), nil)
			if j%10 != 0 {
				stays[fmt.Sprintf("role%02d__m%02d", i, j)] = 0
			}
		}
	}
	why, after, pages := "gone", "", 0
	for {
		tools, more, err := s.List(t.Context(), anybody, after, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			if _, ok := stays[tool.Name]; ok {
				stays[tool.Name]++
			}
		}
		pages++
		if !more {
			break
		}
		after = tools[len(tools)-1].Name
		i := pages % roles
		s.change(fmt.Sprintf("role%02d", i), fmt.Sprintf("m%02d", pages%5*10), agent.ArtifactChange{Quarantine: &why})
		s.put(fmt.Sprintf("role%02d", i), fmt.Sprintf("new%d", pages), nil)
	}
	for name, times := range stays {
		if times != 1 {
			t.Errorf("%s was listed %d times", name, times)
		}
	}
	if pages < roles*methods/100 {
		t.Errorf("%d pages", pages)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.put("calculator", "add", &agent.Interface{Summary: "Add two numbers.", Parameters: []agent.Parameter{}})
	s.put("text_tools", "slugify", &agent.Interface{Summary: "Make a title fit for a URL.",
		Parameters: []agent.Parameter{}})
	s.put("text_tools", "count", &agent.Interface{Summary: "Count words.",
		Parameters: []agent.Parameter{{Name: "numbers", Type: "boolean"}}})
	for query, want := range map[string]string{
		"add numbers": "calculator__add text_tools__count", "URL for a title": "text_tools__slugify calculator__add",
		"slug":       "text_tools__slugify",
		"TEXT tools": "text_tools__count text_tools__slugify", "nothing fits": "",
		"": "calculator__add text_tools__count text_tools__slugify"} {
		tools, err := s.Search(t.Context(), anybody, query, 10)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range tools {
			names = append(names, tool.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
	if tools, _ := s.Search(t.Context(), anybody, "text tools", 1); len(tools) != 1 {
		t.Errorf("limit 1: %d tools", len(tools))
	}
}

// Subscribers are notified of changes. Concurrent readers and writers see complete lists.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	hints, stop := s.Subscribe()
	defer stop()
	before, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 10 {
				s.put(fmt.Sprintf("role%d", i), fmt.Sprintf("m%d", j), nil)
				if _, _, err := s.List(context.Background(), anybody, "", 5); err != nil {
					t.Error(err)
				}
			}
		})
	}
	<-hints
	wg.Wait()
	if now, _ := s.Revision(t.Context()); now == before {
		t.Error("the revision is the same")
	}
	if got := len(s.all()); got != 40 {
		t.Errorf("%d tools, want 40", got)
	}
}

// Counting a call does not describe the method again: agents look up a tool by name before each call.
func TestCallsDescribeNothing(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.put("calculator", "add", &agent.Interface{Summary: "Add two numbers.", Parameters: []agent.Parameter{}})
	before, err := s.Find(t.Context(), anybody, "calculator__add")
	if err != nil {
		t.Fatal(err)
	}
	m := Method{"calculator", "add"}
	was := s.known[m]
	s.change("calculator", "add", agent.ArtifactChange{Result: agent.ClassOK, Caller: "ann"})
	s.change("calculator", "add", agent.ArtifactChange{Result: agent.ClassOK, Caller: "ben"})
	if now, err := s.Find(t.Context(), anybody, "calculator__add"); err != nil || now != before || s.known[m] != was {
		t.Errorf("after two calls: %+v, %v", now, err)
	}
	yes := true
	s.change("calculator", "add", agent.ArtifactChange{Approve: &yes})
	if _, err := s.Find(t.Context(), agent.Reader{Owner: "ann"}, "calculator__add"); err != nil || s.known[m] == was {
		t.Errorf("after it was approved: %v", err)
	}
}
