package runtime

import (
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// A manifestGuard denies a run everything that the manifest of its method lacks. It belongs to one run. For a nil
// guard, permitTool allows everything; Permit must not be called.
type manifestGuard struct {
	role, method string
	manifest     *agent.Manifest
	missing      *fetch.Approval // the first denied request
	denied       agent.Effects   // everything that was denied
}

// guard returns the guard that holds a run of the method to its manifest, or nil if the policy does not enforce
// manifests. A method has no manifest before its first ok call, and then guard returns nil as well.
func (c *Selection) guard() *manifestGuard {
	if c.Policy.Effects != agent.EffectsEnforce || c.artifact == nil || c.artifact.Manifest == nil {
		return nil
	}
	return &manifestGuard{role: c.Role, method: c.Method, manifest: c.artifact.Manifest}
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

// unapproved turns a failure that is due to a missing approval into a denial: extrinsic, and for a person to resolve.
func (j *judged) unapproved(missing *fetch.Approval) {
	was := j.outcome
	j.outcome, j.class, j.unallowed = agent.Failed(agent.ErrDenied, missing.Message), agent.ClassExtrinsic, true
	j.outcome.Metadata = map[string]any{"approve": missing.Request, "lacks": missing.Details}
	if was.ErrorType != agent.ErrDenied {
		j.outcome.Metadata["program_error"] = agent.Clip(was.ErrorType+": "+was.ErrorMessage, 400)
	}
}

// noteReach counts and logs what the run reached, or tried to reach, beyond the manifest of its method.
func (rec *recovery) noteReach(j *judged) {
	rec.countWrites(j.result.Effects.Fetches)
	if rec.artifact == nil || rec.artifact.Manifest == nil || !j.touched() {
		return
	}
	lacks, denied := rec.artifact.Manifest.Lacks(j.effectsOfRun()), agent.Effects{}
	if j.guard != nil {
		denied = j.guard.denied
	}
	for _, x := range []struct {
		what   agent.Effects
		result string
	}{{lacks, telemetry.EffectObserved}, {denied, telemetry.EffectDenied}} {
		if x.what.Empty() {
			continue
		}
		rec.Env.Metrics.BeyondManifest(len(x.what.Hosts), len(x.what.Methods), len(x.what.Tools), x.result)
		rec.Env.Logger.Warn().Str("call_id", rec.ID).Str("role", rec.Role).Str("method", rec.Method).Str("generation",
			j.program.ID).Str("result", x.result).
			Strs("hosts", x.what.Hosts).Strs("methods", x.what.Methods).Strs("tools",
			x.what.Tools).Msg("a program reached beyond its effects manifest")
	}
	beyond := lacks.With(&denied)
	if !beyond.Empty() {
		all := beyond
		if rec.beyond != nil {
			all = rec.beyond.With(&beyond)
		}
		rec.beyond = &all
	}
}

// countWrites counts the writing requests of a run by their result.
func (rec *recovery) countWrites(fetches []sandbox.Fetch) {
	for i := range fetches {
		switch f := &fetches[i]; {
		case !f.Write:
		case f.Mode == fetch.ModeRecorded:
			rec.Env.Metrics.Write(telemetry.WriteRepeated)
		case !f.Sent && f.ErrorKind == fetch.KindDenied:
			rec.Env.Metrics.Write(telemetry.WriteDenied)
		case !f.Sent:
			rec.Env.Metrics.Write(telemetry.WriteFailed)
		case f.Status == 0:
			rec.Env.Metrics.Write(telemetry.WriteUnknown)
		default:
			rec.Env.Metrics.Write(telemetry.WriteSent)
		}
	}
}

// namesUnapproved returns a denied attempt if the program of a correction names a host that its method may not reach,
// or nil otherwise. A correction is adopted without a run; adopting such a program would take a working one out of
// service.
func (c *Selection) namesUnapproved(g *agent.Generation) *judged {
	guard := c.guard()
	if guard == nil {
		return nil
	}
	lacks := guard.manifest.Lacks(agent.Effects{Hosts: g.NamedHosts()})
	if len(lacks.Hosts) == 0 {
		return nil
	}
	j := &judged{attempted: attempted{id: c.ID + ".f", program: g}, stage: stageProof}
	j.unapproved(guard.deny("reach "+strings.Join(lacks.Hosts, ", "), lacks))
	return j
}
