package agent

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/idna"
)

// Values of Policy.NewReach.
const (
	ReachAsk   = "ask"   // a successor that reaches what its predecessor never did waits for a person
	ReachAllow = "allow" // it serves like any other
)

// Named is what the program's text names, whether it has run or not: hosts, writing HTTP methods and tools, "*" for those that it computes.
func (g *Generation) Named() Effects {
	var facts struct{ Literals, Hosts, Writes, Tools []string }
	if json.Unmarshal(g.Facts, &facts) != nil {
		return Effects{}
	}
	named := NamedIn(facts.Hosts, facts.Writes, facts.Tools)
	var literals []string // of programs that were checked by an earlier version
	for _, l := range facts.Literals {
		var address string
		if json.Unmarshal([]byte(l), &address) == nil && (strings.HasPrefix(address, "https://") ||
			strings.HasPrefix(address, "http://")) {
			literals = append(literals, address)
		}
	}
	return named.With(&Effects{Hosts: hostsOf(literals)})
}

// NamedIn is what the gate finds in a program's text, hosts with their scheme, in the form of Effects.
func NamedIn(hosts, writes, tools []string) Effects {
	return (&Effects{}).With(&Effects{Hosts: hostsOf(hosts), Methods: writes, Tools: tools})
}

// hostsOf are the hosts of addresses; "*" stays.
func hostsOf(addresses []string) (hosts []string) {
	for _, a := range addresses {
		if a == anyEffect {
			hosts = append(hosts, a)
		} else if u, err := url.Parse(a); err == nil && u.Scheme == ConnectionScheme && goodHost(a) {
			hosts = append(hosts, a)
		} else if err == nil && goodHost(u.Host) && !strings.ContainsAny(u.Host, "%{}") {
			hosts = append(hosts, HostOf(u))
		}
	}
	return hosts
}

// HostOf returns the host of an address as Effects have it. A connection that is an address stands for its own host: connection:NAME.
func HostOf(u *url.URL) string {
	if name, ok := ConnectionIn(u); ok {
		return ConnectionScheme + ":" + name
	}
	host, port := asciiHost(strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" || port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
		return host
	}
	return host + ":" + port
}

// asciiHost is the host as it is asked for: a name in letters of its own has one spelling.
func asciiHost(host string) string {
	if !strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) {
		return host
	}
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		return ascii
	}
	return host
}

// NamedHosts returns the hosts of the addresses that stand in the program's text: at most MaxEffects, sorted.
func (g *Generation) NamedHosts() []string {
	named := g.Named()
	return named.spelled().Hosts
}

// spelled is without what programs compute.
func (e *Effects) spelled() *Effects {
	names := e.Without(&Effects{Hosts: []string{anyEffect}, Methods: []string{anyEffect}, Tools: []string{anyEffect}})
	return &names
}

// Reach is what the generation did in ok calls, and what its text names.
func (g *Generation) Reach() *Effects {
	named := g.Named()
	all := (&Effects{}).With(named.spelled())
	if g.Effects != nil {
		all = g.Effects.With(&all)
	}
	return &all
}

// NewHosts returns the hosts that the generation reaches, or names in its text, and its parent does not; none without a kept parent.
func (a *Artifact) NewHosts(g *Generation) []string {
	if g.ParentID == nil || a.Find(*g.ParentID) == nil {
		return nil
	}
	return g.Reach().Without(a.Find(*g.ParentID).Reach()).Hosts
}

// Beyond returns what the text of a program names, or computes, beyond what the manifest and its predecessor reach, nil for nothing. What a predecessor
// computes lets its successor compute, and name nothing.
func (m *Manifest) Beyond(predecessor, named *Effects) *Effects {
	within := &Manifest{Effects: m.With(predecessor.spelled())}
	beyond := within.Lacks(*named.spelled())
	for _, l := range []struct{ of, before, may, to *[]string }{{&named.Hosts, &predecessor.Hosts, &m.Hosts,
		&beyond.Hosts}, {&named.Methods, &predecessor.Methods, &m.Methods, &beyond.Methods},
		{&named.Tools, &predecessor.Tools, &m.Tools, &beyond.Tools}} {
		if computes := func(list []string) bool {
			return slices.Contains(list,
				anyEffect)
		}; computes(*l.of) && !computes(*l.before) && !computes(*l.may) {
			*l.to = append(*l.to, anyEffect)
		}
	}
	if beyond.Empty() {
		return nil
	}
	all := beyond.With(&Effects{})
	return &all
}

// Missing returns what the manifest has to be given for programs that reach that: what it lacks, and of a new host the reading.
func (m *Manifest) Missing(e Effects) Effects {
	lacks := m.Lacks(e)
	if len(lacks.Hosts) > 0 && len(lacks.Methods) == 0 && !m.AllowsMethod("GET") {
		lacks.Methods = []string{"GET"}
	}
	return lacks
}

// AwaitsReach reports whether the generation waits for a person because it reaches beyond its predecessor: until one approves it, or the effects.
func (a *Artifact) AwaitsReach(g *Generation) bool {
	if g == nil || g.Beyond == nil || g.Approved {
		return false
	}
	if m := a.Manifest; m != nil && m.ApprovedBy != "" {
		lacks := m.Lacks(*g.Beyond)
		return !lacks.Empty()
	}
	return true
}
