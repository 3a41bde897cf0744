package attempt

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

// A Guard denies a run everything that the manifest of its method lacks. It belongs to one run. On a nil
// guard permitTool allows everything, and Permit must not be called.
type Guard struct {
	Role, Method string
	Manifest     *agent.Manifest
	missing      *fetch.Approval // the first denied request
	Denied       agent.Effects   // everything that was denied
}

// OfFetch returns the guard in the form that sandbox requests take.
func (g *Guard) OfFetch() fetch.Guard {
	if g == nil {
		return nil // not an interface that holds a nil pointer
	}
	return g
}

// Permit implements fetch.Guard.
func (g *Guard) Permit(method, host string) *fetch.Approval {
	switch {
	case !g.Manifest.AllowsHost(host):
		return g.Deny("reach "+host, agent.Effects{Hosts: []string{host}})
	case !g.Manifest.AllowsMethod(method):
		return g.Deny("send "+method+" requests", agent.Effects{Methods: []string{method}})
	}
	return nil
}

// permitTool returns why the run may not call the tool, or nil if it may.
func (g *Guard) permitTool(role, method string) *fetch.Approval {
	if g == nil || g.Manifest.AllowsTool(role, method) {
		return nil
	}
	return g.Deny("call "+role+"."+method, agent.Effects{Tools: []string{role + "." + method}})
}

// Deny records what the run was denied and returns the approval that would allow it.
func (g *Guard) Deny(what string, lacks agent.Effects) *fetch.Approval {
	a := ApprovalOf(g.Role, g.Method, what, lacks)
	g.Denied = g.Denied.With(&lacks)
	if g.missing == nil {
		g.missing = a
	}
	return a
}

// ApprovalOf describes what a person has to allow, and how.
func ApprovalOf(role, method, what string, lacks agent.Effects) *fetch.Approval {
	flags := []string{"recurgentd tools allow", ShellWord(role), ShellWord(method)}
	details := map[string]any{}
	for _, l := range []struct {
		member, flag string
		list         []string
	}{{"hosts", "--host", lacks.Hosts}, {"methods", "--http-method", lacks.Methods}, {"tools", "--tool", lacks.Tools}} {
		if len(l.list) > 0 {
			details[l.member] = l.list
		}
		for _, name := range l.list {
			flags = append(flags, l.flag, ShellWord(name))
		}
	}
	return &fetch.Approval{Request: "PUT " + ToolPath(role, method) + "/effects", Details: details,
		Message: role + "." + method + " may not " + what +
			": its effects manifest lacks that. A person can allow it: " + strings.Join(flags, " ")}
}

// ShellWord quotes a name for a shell if it needs quoting.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-:", r)
	}
	if s != "" && strings.TrimFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// ReachOf renders a list from a manifest for a prompt.
func ReachOf(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return agent.Clip(strings.Join(list, ", "), 250)
}

// EffectsOfRun returns everything that the run reached.
func (a *Attempt) EffectsOfRun() agent.Effects {
	did := agent.Effects{Tools: a.Tools, Files: a.made}
	for _, f := range a.Result.Effects.Fetches {
		for _, hop := range f.Reached {
			did.Hosts, did.Methods = append(did.Hosts, hop.Host), append(did.Methods, hop.Method)
		}
	}
	return (&agent.Effects{}).With(&did)
}

// Touched reports whether the run reached anything or was denied something.
func (a *Attempt) Touched() bool {
	return len(a.Result.Effects.Fetches)+len(a.Tools)+len(a.made) > 0 || a.Guard != nil && a.Guard.missing != nil
}

// FirstSeen returns what the run reached, if any of it was not known of its generation, and nil otherwise. For a
// generation that has answered a call before, a run that reaches nothing costs nothing here.
func (a *Attempt) FirstSeen(known *agent.Effects) *agent.Effects {
	if known != nil && !a.Touched() {
		return nil
	}
	did := a.EffectsOfRun()
	if known != nil {
		all := known.With(&did)
		if known.Covers(&all) { // effects over the bound are dropped from the union, so they do not count as new
			return nil
		}
	}
	return &did
}

// Missing returns the approval that the run lacked, or nil.
func (a *Attempt) Missing() *fetch.Approval {
	if a.Guard != nil && a.Guard.missing != nil {
		return a.Guard.missing
	}
	for i := range a.Result.Effects.Fetches {
		if m := a.Result.Effects.Fetches[i].Missing; m != nil {
			return m
		}
	}
	return nil
}
