package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestManifestAllows(t *testing.T) {
	t.Parallel()
	m := &Manifest{Effects: Effects{Hosts: []string{"*.example.org", "127.0.0.1:8080", "api.example.net"},
		Methods: []string{"GET"}, Tools: []string{"tax.rate"}}}
	for host, want := range map[string]bool{
		"api.example.net": true, "api.example.net:8443": false, "evil-api.example.net": false, "a.example.org": true,
		"a.b.example.org": true, "example.org": false,
		"notexample.org": false, "a.example.org:8443": false, "127.0.0.1:8080": true, "127.0.0.1": false, "": false,
		"*": false,
	} {
		if got := m.AllowsHost(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
	if !m.AllowsMethod("GET") || m.AllowsMethod("POST") || !m.AllowsTool("tax", "rate") ||
		m.AllowsTool("tax", "rates") {
		t.Error("methods and tools count by their whole names")
	}
	all := &Manifest{Effects: Effects{Hosts: []string{"*"}, Methods: []string{"*"}, Tools: []string{"*"}}}
	if lacks := all.Lacks(Effects{Hosts: []string{"x"}, Methods: []string{"PUT"}, Tools: []string{"a.b"},
		Files: []string{"text/csv"}}); !lacks.Empty() {
		t.Errorf("stars lack %+v", lacks)
	}
}

func TestCheckEffects(t *testing.T) {
	t.Parallel()
	got, err := CheckEffects(Effects{Hosts: []string{"API.Example.org.", "*", "*.b.example", "[::1]:80",
		"localhost:8080"}, Methods: []string{"post", "*"}, Tools: []string{"movie finder.find"},
		Files: []string{"text/csv"}})
	want := Effects{Hosts: []string{"*", "*.b.example", "[::1]:80", "api.example.org", "localhost:8080"},
		Methods: []string{"*", "POST"}, Tools: []string{"movie finder.find"}, Files: []string{"text/csv"}}
	if err != nil || string(Encoded(got)) != string(Encoded(want)) {
		t.Errorf("%v %s, want %s", err, Encoded(got), Encoded(want))
	}
	for at, bad := range map[string]Effects{
		"/hosts/0":   {Hosts: []string{"https://api.example.org"}},
		"/hosts/1":   {Hosts: []string{"*", "api.example.org/path"}},
		"/methods/0": {Methods: []string{"FETCH"}},
		"/tools/0":   {Tools: []string{"tax"}},
		"/files/0":   {Files: []string{"csv"}},
		"/hosts":     {Hosts: slices.Repeat([]string{"a.example"}, MaxEffects+1)},
	} {
		var in *InputError
		if _, err := CheckEffects(bad); !errors.As(err, &in) || in.Pointer != at {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for _, host := range []string{"", "a b", "user@host", "a*b", "*.", "a?x", "a#x", "host:port:1"} {
		if _, err := CheckEffects(Effects{Hosts: []string{host}}); err == nil {
			t.Errorf("the host %q was taken", host)
		}
	}
}

// NamedHosts returns the hosts of the addresses in a program's source. Each host has one name, however it is written.
func TestNamedHosts(t *testing.T) {
	t.Parallel()
	var literals []string
	for _, s := range []string{"https://API.example.org/v1?x=1", "https://api.example.org:443/",
		"http://localhost:8080", "http://[::1]/", "https://%s/x", "https://", "ftp://a.example/", "plain",
		"http://u:p@b.example/"} {
		literals = append(literals, string(Encoded(s)))
	}
	g := &Generation{Facts: Encoded(map[string]any{"literals": append(literals, "7")})}
	if got, want := g.NamedHosts(), []string{"[::1]", "api.example.org", "b.example",
		"localhost:8080"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for address, want := range map[string]string{"https://A.example.:443/": "a.example",
		"http://a.example:443/": "a.example:443", "http://[::1]:80/": "[::1]", "https://[::1]:8443/": "[::1]:8443"} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := HostOf(u); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	if hosts := (&Generation{}).NamedHosts(); len(hosts) > 0 {
		t.Error(hosts)
	}
}

// Effects of concurrent calls add up in any order, lists stay bounded, and a manifest approved by a person does not
// change.
func TestEffectsAddUp(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	reach := func(grow bool, hosts ...string) ArtifactChange {
		return ArtifactChange{Role: "r", MethodName: "m", At: at, Result: ClassOK,
			Effects: &Effects{Hosts: hosts, Methods: []string{"GET"}}, Grow: grow}
	}
	a := (*Artifact)(nil).Apply(ArtifactChange{Role: "r", MethodName: "m", At: at,
		Generation: &Generation{ID: "gen-1"}})
	if a.Manifest != nil || a.Current().Effects != nil {
		t.Fatal("a program that never ran has effects")
	}
	x := a.Apply(reach(true, "a")).Apply(reach(true, "b")).Apply(reach(true, "a"))
	y := a.Apply(reach(true, "b")).Apply(reach(true, "a"))
	if string(Encoded(x.Current().Effects)) != string(Encoded(y.Current().Effects)) ||
		!slices.Equal(x.Manifest.Hosts, []string{"a", "b"}) || x.Manifest.Revision != 2 || y.Manifest.Revision != 2 {
		t.Errorf("%s %s; manifests %+v %+v", Encoded(x.Current().Effects), Encoded(y.Current().Effects), x.Manifest,
			y.Manifest)
	}
	enforced := a.Apply(reach(false, "a")).Apply(reach(false, "b"))
	if !slices.Equal(enforced.Manifest.Hosts, []string{"a"}) ||
		!slices.Equal(enforced.Current().Effects.Hosts, []string{"a", "b"}) {
		t.Errorf("under enforce: %+v, %+v", enforced.Manifest, enforced.Current().Effects)
	}
	approved := x.Apply(ArtifactChange{Role: "r", MethodName: "m", At: at,
		Manifest: &Manifest{Effects: Effects{Hosts: []string{"c"}}, ApprovedBy: "op"}}).Apply(reach(true, "d"))
	if !slices.Equal(approved.Manifest.Hosts, []string{"c"}) || approved.Manifest.Revision != 3 {
		t.Errorf("a person's manifest: %+v", approved.Manifest)
	}
	for i := range 3 * MaxEffects {
		a = a.Apply(reach(true, fmt.Sprint("h", i)))
	}
	if n, m := len(a.Current().Effects.Hosts),
		len(a.Manifest.Hosts); n != MaxEffects || m != MaxEffects || a.Manifest.Revision != MaxEffects {
		t.Errorf("%d hosts, %d in the manifest, revision %d", n, m, a.Manifest.Revision)
	}
	if raw, _ := json.Marshal(a); strings.Contains(string(raw), "null,null") || len(a.Manifest.Tools) != 0 {
		t.Error("empty lists are null")
	}
}

func TestNewHosts(t *testing.T) {
	t.Parallel()
	first := "gen-1"
	a := &Artifact{Generations: []*Generation{
		{ID: "gen-2", ParentID: &first,
			Facts: json.RawMessage(`{"literals":["\"https://new.example/\"","\"https://old.example/\""]}`)},
		{ID: "gen-1", Effects: &Effects{Hosts: []string{"old.example"}}},
	}}
	if got := a.NewHosts(a.Generations[0]); !slices.Equal(got, []string{"new.example"}) {
		t.Errorf("got %q", got)
	}
	if got := a.NewHosts(a.Generations[1]); got != nil {
		t.Errorf("the first one has %q", got)
	}
}
