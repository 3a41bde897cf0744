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
	ReachAsk   = "ask"   // a successor that reaches beyond its predecessor waits for a person
	ReachAllow = "allow" // such a successor serves like any other
)

// Named returns the effects that the program's source mentions, whether or not it has run: hosts, writing HTTP methods
// and tools, with "*" for computed ones.
func (g *Generation) Named() Effects {
	var facts struct{ Literals, Hosts, Writes, Tools []string }
	if json.Unmarshal(g.Facts, &facts) != nil {
		return Effects{}
	}
	named := NamedIn(facts.Hosts, facts.Writes, facts.Tools)
	var literals []string // of programs checked by an earlier version
	for _, l := range facts.Literals {
		var address string
		if json.Unmarshal([]byte(l), &address) == nil && (strings.HasPrefix(address, "https://") ||
			strings.HasPrefix(address, "http://")) {
			literals = append(literals, address)
		}
	}
	return named.With(&Effects{Hosts: hostsOf(literals)})
}

// NamedIn returns findings of the gate as Effects. hosts are addresses with a scheme.
func NamedIn(hosts, writes, tools []string) Effects {
	return (&Effects{}).With(&Effects{Hosts: hostsOf(hosts), Methods: writes, Tools: tools})
}

// hostsOf returns the hosts of addresses. "*" stays; an address without a valid host is skipped.
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

// HostOf returns the host of an address in the form used in Effects. The host of a connection address is
// connection:NAME.
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

// asciiHost returns the ASCII form (IDNA) of a host name, so that an internationalized name has one spelling.
func asciiHost(host string) string {
	if !strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) {
		return host
	}
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		return ascii
	}
	return host
}

// NamedHosts returns the hosts mentioned in the program's source: at most MaxEffects, sorted.
func (g *Generation) NamedHosts() []string {
	named := g.Named()
	return named.spelled().Hosts
}

// spelled returns the effects without the computed ones ("*").
func (e *Effects) spelled() *Effects {
	names := e.Without(&Effects{Hosts: []string{anyEffect}, Methods: []string{anyEffect}, Tools: []string{anyEffect}})
	return &names
}

// Reach returns the effects of the generation's ok calls and those that its source spells out.
func (g *Generation) Reach() *Effects {
	named := g.Named()
	all := (&Effects{}).With(named.spelled())
	if g.Effects != nil {
		all = g.Effects.With(&all)
	}
	return &all
}

// NewHosts returns the hosts that the generation reaches or names and its parent does not. It returns nil if no parent
// is kept.
func (a *Artifact) NewHosts(g *Generation) []string {
	if g.ParentID == nil || a.Find(*g.ParentID) == nil {
		return nil
	}
	return g.Reach().Without(a.Find(*g.ParentID).Reach()).Hosts
}

// Beyond returns the effects that a program's source names or computes beyond the manifest and its predecessor, or nil
// if there are none. If the predecessor computes effects of a kind, the successor may compute them too, but not name
// new ones.
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

// Missing returns what must be added to the manifest for programs with the effects e: those that it lacks and, with a
// new host, GET.
func (m *Manifest) Missing(e Effects) Effects {
	lacks := m.Lacks(e)
	if len(lacks.Hosts) > 0 && len(lacks.Methods) == 0 && !m.AllowsMethod("GET") {
		lacks.Methods = []string{"GET"}
	}
	return lacks
}

// AwaitsReach reports whether the generation waits for a person because it reaches beyond its predecessor. It waits
// until a person approves it, or a manifest that covers its effects.
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
