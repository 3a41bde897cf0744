package agent

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"
)

func listed(hosts, methods, tools string) *Effects {
	return &Effects{Hosts: strings.Fields(hosts), Methods: strings.Fields(methods), Tools: strings.Fields(tools),
		Files: []string{}}
}

// All spellings of a host give the same host. Ports and subdomains give different ones.
func TestHostOf(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://API.Example.org/x": "api.example.org", "https://api.example.org:443": "api.example.org",
		"http://api.example.org:80/": "api.example.org", "https://api.example.org:80/": "api.example.org:80",
		"https://api.example.org./": "api.example.org", "https://user:pw@api.example.org": "api.example.org",
		"https://Bücher.example/": "xn--bcher-kva.example", "https://xn--bcher-kva.example/": "xn--bcher-kva.example",
		"http://[::1]:8080/": "[::1]:8080", "https://a.api.example.org": "a.api.example.org",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := HostOf(u); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
	m := &Manifest{Effects: Effects{Hosts: []string{"bücher.example"}}} // checked by an earlier version
	if !m.AllowsHost("xn--bcher-kva.example") || m.AllowsHost("a.xn--bcher-kva.example") {
		t.Error("a manifest with letters of its own")
	}
	if e, err := CheckEffects(
		Effects{Hosts: []string{"Bücher.example"}}); err != nil || e.Hosts[0] != "xn--bcher-kva.example" {
		t.Errorf("a manifest of a person's: %v, %v", e, err)
	}
}

// Beyond covers names that neither the manifest nor the predecessor has, and computed ones if the predecessor computes
// none.
func TestBeyond(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                   string
		manifest, before, text *Effects
		want                   *Effects
	}{
		{"nothing", listed("", "", ""), listed("", "", ""), listed("", "", ""), nil},
		{"what the predecessor names", listed("", "", ""), listed("a.example", "POST", "tax.rate"),
			listed("a.example", "POST", "tax.rate"), nil},
		{"what its calls did", listed("a.example", "GET POST", "tax.rate"), listed("", "", ""),
			listed("a.example", "POST", "tax.rate"), nil},
		{"another of each kind", listed("a.example", "GET", "tax.rate"), listed("", "", ""),
			listed("a.example b.a.example", "POST", "tax.net"), listed("b.a.example", "POST", "tax.net")},
		{"a domain that a person allowed", listed("*.example", "", ""), listed("", "", ""),
			listed("a.example b.other", "", ""), listed("b.other", "", "")},
		{"everything that a person allowed", listed("*", "*", "*"), listed("", "", ""),
			listed("* b.other", "* POST", "* tax.net"), nil},
		{"it computes", listed("a.example", "", ""), listed("a.example", "", ""), listed("* a.example", "*", "*"),
			listed("*", "*", "*")},
		{"it computes, too", listed("a.example", "", ""), listed("* a.example", "*", "*"),
			listed("* a.example", "*", "*"), nil},
		{"it names what the other may have computed", listed("a.example", "", ""), listed("*", "*", "*"),
			listed("b.example", "POST", "tax.net"), listed("b.example", "POST", "tax.net")},
	} {
		m := &Manifest{Effects: *tt.manifest}
		got := m.Beyond(tt.before, tt.text)
		if string(Encoded(got)) != string(Encoded(tt.want)) {
			t.Errorf("%s: got %s, want %s", tt.name, Encoded(got), Encoded(tt.want))
		}
	}
}

// A generation waits until a person approves it or a manifest that covers its effects.
func TestAwaitsReach(t *testing.T) {
	t.Parallel()
	g := &Generation{ID: "gen-2", Beyond: listed("b.example", "", "")}
	a := &Artifact{Generations: []*Generation{g}, Manifest: &Manifest{Effects: *listed("b.example", "GET", "")}}
	if !a.AwaitsReach(g) {
		t.Error("a manifest that calls wrote lets it in")
	}
	a.Manifest.ApprovedBy = "op"
	if a.AwaitsReach(g) {
		t.Error("a person's manifest does not")
	}
	a.Manifest.Hosts = nil
	if approved := *g; !a.AwaitsReach(g) {
		t.Error("a person's manifest without it lets it in")
	} else if approved.Approved = true; a.AwaitsReach(&approved) {
		t.Error("an approved one waits")
	}
	if a.AwaitsReach(nil) || a.AwaitsReach(&Generation{}) {
		t.Error("one that asks for nothing waits")
	}
	if missing := a.Manifest.Missing(*listed("b.example", "",
		"tax.net")); strings.Join(missing.Hosts, " ") != "b.example" || strings.Join(missing.Tools, " ") != "tax.net" ||
		len(missing.Methods) != 0 {
		t.Errorf("missing: %+v", missing)
	}
	a.Manifest.Methods = nil
	if missing := a.Manifest.Missing(*listed("b.example", "", "")); strings.Join(missing.Methods, " ") != "GET" {
		t.Errorf("of a new host: %+v", missing)
	}
}

// For programs checked by an earlier version, the addresses among their literals also count. Computed addresses are not
// hosts.
func TestNamed(t *testing.T) {
	t.Parallel()
	g := &Generation{Facts: json.RawMessage(
		`{"literals": ["\"https://a.example/x\"", "1", "\"https://%s.example\""], "hosts": ["https://B.example:443", "*"], "writes": ["POST"], "tools": ["tax.rate", "*"]}`)}
	named := g.Named()
	if want := listed("* a.example b.example", "POST", "* tax.rate"); string(Encoded(named)) != string(Encoded(want)) {
		t.Errorf("got %s", Encoded(named))
	}
	if want := listed("a.example b.example", "POST",
		"tax.rate"); string(Encoded(g.Reach())) != string(Encoded(want)) ||
		strings.Join(g.NamedHosts(), " ") != "a.example b.example" {
		t.Errorf("its reach: %s, hosts %v", Encoded(g.Reach()), g.NamedHosts())
	}
}

// The serving program is kept, however many newer ones wait.
func TestPruneKeepsWhatServes(t *testing.T) {
	t.Parallel()
	var a *Artifact
	at := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	put := func(parent string, beyond *Effects) {
		g := &Generation{ID: a.nextID(), Trigger: "repair:execution", Beyond: beyond}
		if parent != "" {
			g.ParentID = &parent
		}
		a = a.Apply(ArtifactChange{Role: "r", MethodName: "m", At: at, Generation: g})
	}
	put("", nil)
	for range 6 {
		put("gen-1", listed("b.example", "", ""))
	}
	if a.Find("gen-1") == nil || a.AwaitsReach(a.Find("gen-1")) || !a.AwaitsReach(a.Current()) {
		t.Errorf("kept: %s", Encoded(a))
	}
}

// nextID returns the id of the first generation if there is no artifact.
func (a *Artifact) nextID() string {
	if a == nil {
		return "gen-1"
	}
	return a.NextGenerationID()
}
