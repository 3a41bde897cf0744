package agent

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Effects lists what programs reach outside themselves and the kinds of files they make. Each list is sorted, without
// duplicates, and has at most MaxEffects members.
type Effects struct {
	// Hosts have a port only if it is not the scheme's default: api.example.org, localhost:8080.
	Hosts   []string `json:"hosts"`
	Methods []string `json:"methods"` // HTTP methods, upper case
	Tools   []string `json:"tools"`   // role.method
	Files   []string `json:"files"`   // media types of the files made
}

// MaxEffects bounds each list of Effects. Further effects of a generation are not recorded.
const MaxEffects = 64

// A Manifest lists what the programs of a method may do under the policy effects: enforce. The first ok call of the
// method creates it. Under observe it grows with the effects of ok calls until a person approves it.
type Manifest struct {
	Effects
	Revision   int64      `json:"revision"` // counts its changes
	ApprovedBy string     `json:"approved_by,omitempty"`
	ApprovedAt *time.Time `json:"approved_at,omitempty"`
}

// Values of Policy.Effects.
const (
	EffectsObserve = "observe" // effects beyond the manifest are counted and logged
	EffectsEnforce = "enforce" // effects beyond the manifest are denied
)

// anyEffect in a list of a manifest allows everything of that kind.
const anyEffect = "*"

// AllowsHost reports whether the manifest lists the host by its name, by *.domain or by *.
func (m *Manifest) AllowsHost(host string) bool {
	return slices.ContainsFunc(m.Hosts, func(h string) bool {
		h = asciiHost(h) // one of an earlier version may be as a person wrote it
		domain, wild := strings.CutPrefix(h, "*.")
		return h == anyEffect || h == host || wild && strings.HasSuffix(host, "."+domain)
	})
}

// AllowsMethod reports whether the manifest lists the HTTP method.
func (m *Manifest) AllowsMethod(method string) bool { return allows(m.Methods, method) }

// AllowsTool reports whether the manifest lists the tool's method.
func (m *Manifest) AllowsTool(role, method string) bool { return allows(m.Tools, role+"."+method) }

func allows(list []string, name string) bool {
	return slices.Contains(list, name) || slices.Contains(list, anyEffect)
}

// Lacks returns the effects that the manifest does not allow. It ignores Files.
func (m *Manifest) Lacks(e Effects) Effects {
	var out Effects
	for _, h := range e.Hosts {
		if !m.AllowsHost(h) {
			out.Hosts = append(out.Hosts, h)
		}
	}
	for _, x := range e.Methods {
		if !m.AllowsMethod(x) {
			out.Methods = append(out.Methods, x)
		}
	}
	for _, t := range e.Tools {
		if !allows(m.Tools, t) {
			out.Tools = append(out.Tools, t)
		}
	}
	return out
}

// Empty reports whether all lists are empty.
func (e *Effects) Empty() bool {
	return len(e.Hosts)+len(e.Methods)+len(e.Tools)+len(e.Files) == 0
}

// Covers reports whether e includes all of o.
func (e *Effects) Covers(o *Effects) bool {
	return covers(e.Hosts, o.Hosts) && covers(e.Methods, o.Methods) && covers(e.Tools, o.Tools) &&
		covers(e.Files, o.Files)
}

func covers(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// With returns the union of both, each list cut to MaxEffects. Lists of the result are never nil.
func (e *Effects) With(o *Effects) Effects {
	return Effects{union(e.Hosts, o.Hosts), union(e.Methods, o.Methods), union(e.Tools, o.Tools),
		union(e.Files, o.Files)}
}

// union returns a and as many members of b as fit, sorted.
func union(a, b []string) []string {
	out := append(make([]string, 0, len(a)+len(b)), a...)
	for _, s := range b {
		if !slices.Contains(out, s) && len(out) < MaxEffects {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

// httpMethods are the methods that programs' requests may use.
var httpMethods = []string{"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"}

// CheckEffects returns the effects of a person's manifest in stored form, or an *InputError if they are invalid. It
// changes the given lists.
func CheckEffects(e Effects) (Effects, error) {
	for i, m := range e.Methods {
		e.Methods[i] = strings.ToUpper(m)
	}
	for i, t := range e.Tools {
		e.Tools[i] = NormalForm(t)
	}
	for i, h := range e.Hosts {
		if e.Hosts[i] = strings.ToLower(h); !strings.HasPrefix(h, anyEffect) { // "*.": not the wildcard "*"
			e.Hosts[i] = asciiHost(strings.TrimSuffix(e.Hosts[i], "."))
		}
	}
	for _, l := range []struct {
		at, hint string
		list     []string
		good     func(string) bool
	}{
		{"/hosts", `such as "api.example.org", "localhost:8080", "*.example.org" or "*"`, e.Hosts, goodHost},
		{"/methods", "one of " + strings.Join(httpMethods, ", ") + `, or "*"`, e.Methods,
			func(s string) bool { return slices.Contains(httpMethods, s) }},
		{"/tools", `role.method, such as "tax.rate", or "*"`, e.Tools, goodTool},
		{"/files", `a media type, such as "text/csv", or "*"`, e.Files,
			func(s string) bool { return len(s) <= 200 && strings.Contains(s, "/") }},
	} {
		if len(l.list) > MaxEffects {
			return e, &InputError{Code: "validation_failed", Pointer: l.at,
				Detail: fmt.Sprintf("%d entries, at most %d", len(l.list), MaxEffects), Hint: `["*"] allows everything`}
		}
		for i, s := range l.list {
			if s != anyEffect && !l.good(s) {
				return e, &InputError{Code: "validation_failed", Pointer: fmt.Sprintf("%s/%d", l.at, i),
					Detail: fmt.Sprintf("%.80q is not allowed here", s), Hint: l.hint}
			}
		}
	}
	return (&Effects{}).With(&e), nil
}

// goodHost reports whether h is a valid entry of Effects.Hosts: a host with an optional port, *.domain, or
// connection:NAME.
func goodHost(h string) bool {
	// A port consists of digits; anything else is a connection's name.
	if name, ok := strings.CutPrefix(h, ConnectionScheme+":"); ok && strings.Trim(name, "0123456789") != "" {
		return len(name) <= 63 && !strings.ContainsAny(name, ".*@/: ")
	}
	h = strings.TrimPrefix(h, "*.")
	u, err := url.Parse("//" + h)
	return err == nil && u.Host == h && u.Hostname() != "" && len(h) <= 300 && !strings.ContainsAny(h, "*@ ") &&
		(strings.Count(h, ":") < 2 || h[0] == '[')
}

// goodTool reports whether t has the form role.method. Roles and methods may contain dots themselves.
func goodTool(t string) bool {
	return len(t) <= 500 && strings.Contains(strings.Trim(t, "."), ".")
}

// record adds the effects first seen in an ok run of the generation. They create the method's manifest. They extend it
// only if the policy just observes and no person has approved it.
func (a *Artifact) record(g *Generation, did *Effects, grow bool) {
	known := g.Effects
	if known == nil {
		known = &Effects{}
	}
	all := known.With(did)
	g.Effects = &all
	switch m := a.Manifest; {
	case m == nil:
		a.Manifest = &Manifest{Effects: all, Revision: 1}
	case grow && m.ApprovedBy == "" && !m.Covers(&all):
		a.Manifest = &Manifest{Effects: m.With(&all), Revision: m.Revision + 1}
	}
}

// Without returns the effects that are not in o.
func (e *Effects) Without(o *Effects) Effects {
	less := func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
	}
	return Effects{less(e.Hosts, o.Hosts), less(e.Methods, o.Methods), less(e.Tools, o.Tools), less(e.Files, o.Files)}
}
