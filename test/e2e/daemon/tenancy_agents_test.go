package daemon

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A toolUser is a client of MCP in one namespace.
type toolUser struct{ *mcpClient }

func connectAs(t *testing.T, transport mcp.Transport, version string) *toolUser {
	t.Helper()
	return &toolUser{connectMCP(t, transport, version)}
}

// tools are the names of the listed tools that are methods.
func (a *toolUser) tools() (names []string) {
	a.t.Helper()
	for tool, err := range a.Tools(a.t.Context(), nil) {
		if err != nil {
			a.t.Fatal(err)
		}
		if strings.Contains(tool.Name, "__") {
			names = append(names, tool.Name)
		}
	}
	slices.Sort(names)
	return names
}

// call returns the text of what a tool answers.
func (a *toolUser) call(name string, arguments map[string]any) (text string) {
	a.t.Helper()
	r, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	for _, c := range r.Content {
		text += c.(*mcp.TextContent).Text
	}
	return text
}

// Agents list, find, call and forge in the namespace of their token. The
// protocol keeps no sessions over HTTP that could be carried elsewhere.
func TestAgentsInNamespaces(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			m := rig.NewModel(t, rig.Script{"clerk.greet": {greeter("a"), greeter("b")}, "own.of_b": {greeter("own")}})
			d := guarded(t, m)
			over := func(token, namespace string) *toolUser {
				return connectAs(t, &mcp.StreamableClientTransport{Endpoint: d.URL + "/mcp",
					HTTPClient: person(d, token, namespace).Plain()}, version)
			}
			a, b := over(tokenA, ""), over(tokenB, "")
			for _, x := range []struct {
				*toolUser
				name string
			}{{a, "a"}, {b, "b"}} {
				if got := x.call("call_method", map[string]any{"role": "clerk", "method": "greet",
					"args": []any{"an agent"}}); !strings.Contains(got, "hello from "+x.name+" to an agent") {
					t.Errorf("%s is answered %s", x.name, got)
				}
			}
			inB := person(d, tokenB, "")
			inB.Call(inB.Session("own"), "of_b", "x")
			rig.Until(t, "b lists both",
				func() bool { return slices.Equal(b.tools(), []string{"clerk__greet", "own__of_b"}) })
			if got := a.tools(); !slices.Equal(got, []string{"clerk__greet"}) {
				t.Errorf("a lists %v", got)
			}
			if got := a.call("find_tools",
				map[string]any{"query": "own of_b greet"}); strings.Contains(got, "of_b") ||
				!strings.Contains(got, "greet") {
				t.Errorf("a finds %s", got)
			}
			if got := a.call("clerk__greet",
				map[string]any{"who": "again"}); !strings.Contains(got, "hello from a to again") {
				t.Errorf("a is answered %s", got)
			}
			inB.Do(http.StatusOK, http.MethodPut, "/v1/tools/own", map[string]any{"purpose": "answers"})
			if got := over(tokenRoot, "b").tools(); !slices.Equal(got, []string{"own__of_b"}) {
				t.Errorf("an admin in b lists %v, want what a person of b registered", got)
			}
			if got := over(tokenRoot, "").tools(); len(got) != 0 {
				t.Errorf("an admin in default lists %v", got)
			}
			if version < "2026-07-28" && (a.ID() == "" || a.ID() == b.ID()) {
				t.Errorf("the sessions by which requests are canceled are %q and %q", a.ID(), b.ID())
			}
		})
	}
}

// Who listens in one namespace hears of its new tools, and of none of another's.
func TestNoticesOfTheirNamespace(t *testing.T) {
	t.Parallel()
	d := guarded(t, rig.NewModel(t, rig.Script{".": {rig.ProgGiven}}))
	over := func(token string) *toolUser {
		return connectAs(t, &mcp.StreamableClientTransport{Endpoint: d.URL + "/mcp",
			HTTPClient: person(d, token, "").Plain()}, "2026-07-28")
	}
	a, b, root := over(tokenA), over(tokenB), over(tokenRoot)
	inA, inB := person(d, tokenA, ""), person(d, tokenB, "")
	for i := range 5 {
		inB.Call(inB.Session("clerk"), fmt.Sprint("of_b_", i), "x")
		b.hears()
	}
	if n, m := len(a.changed), len(root.changed); n != 0 || m != 0 {
		t.Errorf("of five tools of b a got %d notices, and who listens in default %d", n, m)
	}
	inA.Call(inA.Session("clerk"), "of_a", "x")
	a.hears()
	if n := len(root.changed); n != 0 {
		t.Errorf("who listens in default got %d notices of a and b", n)
	}
	rig.Until(t, "a lists its own", func() bool { return slices.Equal(a.tools(), []string{"clerk__of_a"}) })
}

// recurgentd mcp acts in the namespace of --namespace, over a daemon and with one of its own.
func TestMCPCommandInANamespace(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, nil)
	m.Otherwise(greeter("anyone"))
	d := guarded(t, m)
	overStdio := func(env []string, args ...string) *toolUser {
		return connectAs(t, &mcp.CommandTransport{Command: rig.Command(t, env, append([]string{"mcp"}, args...)...),
			TerminateDuration: rig.Patience}, "")
	}
	root := []string{"RECURGENT_TOKEN=" + tokenRoot, "RECURGENT_URL=" + d.URL}
	inB, inA := overStdio(root, "--namespace", "b"), overStdio(append(root, "RECURGENT_NAMESPACE=a"))
	inB.call("call_method", map[string]any{"role": "clerk", "method": "greet", "args": []any{"x"}})
	if a, b := inA.tools(), inB.tools(); len(a) != 0 || !slices.Equal(b, []string{"clerk__greet"}) {
		t.Errorf("a lists %v, b %v", a, b)
	}
	if got := person(d, tokenB, "").List("/v1/tools"); len(got) != 1 {
		t.Errorf("b has %v", got)
	}

	dir := t.TempDir()
	own := []string{"OPENAI_BASE_URL=" + m.URL, "OPENAI_API_KEY=" + rig.SecretKey, "RECURGENT_MODEL=scripted"}
	for _, step := range []struct {
		args []string
		want []string
	}{{[]string{"--namespace", "acme"}, []string{"clerk__greet"}}, {nil, nil},
		{[]string{"--namespace", "acme"}, []string{"clerk__greet"}}} {
		x := overStdio(own, append([]string{"--embedded", "--data-dir", dir}, step.args...)...)
		if step.args != nil {
			x.call("call_method", map[string]any{"role": "clerk", "method": "greet", "args": []any{"x"}})
		}
		if got := x.tools(); !slices.Equal(got, step.want) {
			t.Errorf("%v: a daemon of its own lists %v, want %v", step.args, got, step.want)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := len(m.Questions()); n != 2 {
		t.Errorf("the model was asked %d times, want twice", n)
	}
}
