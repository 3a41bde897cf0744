package runtime

import (
	"net/url"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
)

// ToolPath returns the path of an artifact in the REST API.
func ToolPath(role, method string) string {
	return "/v1/tools/" + url.PathEscape(role) + "/methods/" + url.PathEscape(method)
}

// A manifestGuard denies a run everything that the manifest of its method lacks. It belongs to one run. For a nil
// guard, permitTool allows everything; Permit must not be called.
type manifestGuard struct {
	role, method string
	manifest     *agent.Manifest
	missing      *fetch.Approval // the first denied request
	denied       agent.Effects   // everything that was denied
}

// ofFetch returns the guard in the form that sandbox requests take.
func (g *manifestGuard) ofFetch() fetch.Guard {
	if g == nil {
		return nil // not an interface that holds a nil pointer
	}
	return g
}

// Permit implements fetch.Guard.
func (g *manifestGuard) Permit(method, host string) *fetch.Approval {
	switch {
	case !g.manifest.AllowsHost(host):
		return g.deny("reach "+host, agent.Effects{Hosts: []string{host}})
	case !g.manifest.AllowsMethod(method):
		return g.deny("send "+method+" requests", agent.Effects{Methods: []string{method}})
	}
	return nil
}

// permitTool returns why the run may not call the tool, or nil if it may.
func (g *manifestGuard) permitTool(role, method string) *fetch.Approval {
	if g == nil || g.manifest.AllowsTool(role, method) {
		return nil
	}
	return g.deny("call "+role+"."+method, agent.Effects{Tools: []string{role + "." + method}})
}

// deny records what the run was denied and returns the approval that would allow it.
func (g *manifestGuard) deny(what string, lacks agent.Effects) *fetch.Approval {
	a := approvalOf(g.role, g.method, what, lacks)
	g.denied = g.denied.With(&lacks)
	if g.missing == nil {
		g.missing = a
	}
	return a
}

// approvalOf describes what a person has to allow, and how.
func approvalOf(role, method, what string, lacks agent.Effects) *fetch.Approval {
	flags := []string{"recurgentd tools allow", shellWord(role), shellWord(method)}
	details := map[string]any{}
	for _, l := range []struct {
		member, flag string
		list         []string
	}{{"hosts", "--host", lacks.Hosts}, {"methods", "--http-method", lacks.Methods}, {"tools", "--tool", lacks.Tools}} {
		if len(l.list) > 0 {
			details[l.member] = l.list
		}
		for _, name := range l.list {
			flags = append(flags, l.flag, shellWord(name))
		}
	}
	return &fetch.Approval{Request: "PUT " + ToolPath(role, method) + "/effects", Details: details,
		Message: role + "." + method + " may not " + what +
			": its effects manifest lacks that. A person can allow it: " + strings.Join(flags, " ")}
}

// shellWord quotes a name for a shell if it needs quoting.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-:", r)
	}
	if s != "" && strings.TrimFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// reachOf renders a list from a manifest for a prompt.
func reachOf(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return agent.Clip(strings.Join(list, ", "), 250)
}

// effectsOfRun returns everything that the run reached.
func (a *attempted) effectsOfRun() agent.Effects {
	did := agent.Effects{Tools: a.tools, Files: a.made}
	for _, f := range a.result.Effects.Fetches {
		for _, hop := range f.Reached {
			did.Hosts, did.Methods = append(did.Hosts, hop.Host), append(did.Methods, hop.Method)
		}
	}
	return (&agent.Effects{}).With(&did)
}

// touched reports whether the run reached anything or was denied something.
func (a *attempted) touched() bool {
	return len(a.result.Effects.Fetches)+len(a.tools)+len(a.made) > 0 || a.guard != nil && a.guard.missing != nil
}

// firstSeen returns what the run reached, if any of it was not known of its generation, and nil otherwise. For a
// generation that has answered a call before, a run that reaches nothing costs nothing here.
func (a *attempted) firstSeen(known *agent.Effects) *agent.Effects {
	if known != nil && !a.touched() {
		return nil
	}
	did := a.effectsOfRun()
	if known != nil {
		all := known.With(&did)
		if known.Covers(&all) { // effects over the bound are dropped from the union, so they do not count as new
			return nil
		}
	}
	return &did
}

// missing returns the approval that the run lacked, or nil.
func (a *attempted) missing() *fetch.Approval {
	if a.guard != nil && a.guard.missing != nil {
		return a.guard.missing
	}
	for i := range a.result.Effects.Fetches {
		if m := a.result.Effects.Fetches[i].Missing; m != nil {
			return m
		}
	}
	return nil
}
