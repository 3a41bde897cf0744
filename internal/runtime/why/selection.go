package why

import (
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// program explains the selection from what is kept of the method. It repeats the selection as it was, with each other
// generation as the current one, and with each switch of the policy changed.
func (x *Explanation) program(in *Input) {
	e, a := &in.Call.Log, in.Artifact
	if a != nil && e.Generation != "" {
		if g := a.Find(e.Generation); g != nil {
			usage := g.ForgeUsage
			x.Selection.Trigger, x.Cost.Forge = g.Trigger, &usage
		} else {
			x.note("the program " + word(e.Generation) + ", which answered, is not kept any more")
		}
	}
	switch {
	case x.Selection.Decision == agent.DecideNone:
		return
	case a == nil && (e.Generation != "" || e.Selection.Generation != ""):
		x.note("no program of the method is kept any more, so what other settings would have led to cannot be computed")
		return
	}
	past, complete := Recall(e, a, in.Select)
	if !past.known {
		x.note("the contract is not known in full: no program that was made for it is kept")
	}
	// the baseline: a counterfactual differs from this, not from the record
	again := past.Under(in.Policy)
	x.Selection.Again = &again
	x.Selection.Same = Same(again, e.Selection)
	if !in.PolicyKnown {
		x.note("the policy of that time is not known: what other settings would have led to is computed with that of now")
	}
	if !complete || !x.Selection.Same {
		x.note("the health, pins, approvals and quarantine of that time are not known: what other settings would have led to is computed with those of now")
	}
	q := past.input
	q.Policy = in.Policy
	x.others(in, q)
	for _, f := range flips(in.Policy, e) {
		p := *in.Policy
		f.set(&p)
		d := past.Under(&p)
		x.Counterfactuals = append(x.Counterfactuals, Counterfactual{Switch: f.name, Value: f.value,
			Decision: d.Decision, Reason: d.Reason, Generation: d.Generation,
			Changes: Changes(d, again), Then: x.then(f.name, &p, d, e)})
	}
}

// then describes what the policy would have changed after the selection d, for a program that a model writes for the
// call.
func (x *Explanation) then(name string, p *agent.Policy, d agent.Selection, e *agent.LogEntry) string {
	written := e.ProgramSource == agent.SourceGenerated || e.ProgramSource == agent.SourceRepaired
	switch {
	case name == "approval_required" && p.ApprovalRequired && written && d.Decision != agent.DecideRefuse:
		return "the program that the model wrote would have waited for a person's approval"
	case name == "approval_required" && !p.ApprovalRequired && e.ProgramSource == agent.SourceNone &&
		e.Generation != "":
		return "the program that the model wrote would have answered without a person's approval"
	case name == "repair_enabled" && !p.RepairEnabled && e.ProgramSource == agent.SourceRepaired &&
		d.Decision == agent.DecideRun:
		return "when it failed the model would have written a new program instead of repairing it"
	case name == "repair_enabled" && p.RepairEnabled && x.Selection.Trigger == "regenerate:repair_disabled":
		return "when it failed the model would have tried to repair it first"
	}
	return ""
}

// A Past is the selection of an ended call, ready to be repeated.
type Past struct {
	input  selection.Input // without the policy, which Under sets
	choose func(selection.Input) selection.Decision
	known  bool // the fingerprint of the contract's checked parts is known for certain
}

// Recall returns the selection of the call, to be repeated on what is kept of its method; a is nil if nothing is.
// complete reports that no program was made since the call began. Health and approvals are the current ones.
func Recall(e *agent.LogEntry, a *agent.Artifact,
	choose func(selection.Input) selection.Decision) (p Past, complete bool) {
	then, complete := asOf(a, e)
	p = Past{choose: choose, input: selection.Input{Role: e.Role, Method: e.Method, HasArgs: len(e.Args) > 0 ||
		len(e.Kwargs) > len("{}"), Artifact: then, Now: began(e),
		Positional: len(e.Args), Kwargs: e.Kwargs}}
	if e.Selection.Reason == selection.ReasonPurposeChanged {
		// the wording of that time is not kept, but it differs from any that a program was made for
		p.input.Words = "changed"
	}
	p.input.CheckedFingerprint, p.known = checkedThen(a, e)
	return p, complete
}

// Under repeats the selection under that policy.
func (p Past) Under(policy *agent.Policy) agent.Selection {
	p.input.Policy = policy
	return logged(p.choose(p.input))
}

// Same reports whether two selections are equal, including the reason.
func Same(a, b agent.Selection) bool { return !Changes(a, b) && a.Reason == b.Reason }

// Changes reports whether two selections lead to different actions.
func Changes(a, b agent.Selection) bool {
	return a.Decision != b.Decision || a.Generation != b.Generation
}

// logged converts a decision to the form of the log.
func logged(d selection.Decision) agent.Selection {
	s := agent.Selection{Decision: d.Decision, Reason: d.Reason}
	if d.Generation != nil {
		s.Generation = d.Generation.ID
	}
	return s
}

// others explains for each other kept generation why it did not answer.
func (x *Explanation) others(in *Input, q selection.Input) {
	if in.Artifact == nil {
		return
	}
	for _, g := range in.Artifact.Generations {
		switch {
		case g.ID == in.Call.Log.Generation:
		case q.Artifact == nil || q.Artifact.Find(g.ID) == nil:
			x.Alternatives = append(x.Alternatives, Alternative{g.ID, "it was made during this call or after it"})
		default:
			x.Alternatives = append(x.Alternatives, Alternative{g.ID, x.whyNot(in, q, g)})
		}
	}
}

// whyNot repeats the selection with that generation as the current one. What would rule it out then explains why it did
// not answer.
func (x *Explanation) whyNot(in *Input, q selection.Input, g *agent.Generation) string {
	was := q.Artifact
	if g.Aside {
		return "it was written for one call while a switch of the policy was on, and answers no others"
	}
	// a copy, since others share the artifact
	as := *was
	as.CurrentID = g.ID
	q.Artifact = &as
	d := in.Select(q)
	switch current := was.CurrentID; {
	case d.Decision != agent.DecideRun:
		return reasonWords(d.Reason)
	case d.Generation != g:
		return "it does not fit the contract of the call, or another one had proved itself longer"
	case was.Pinned && g.ID != current:
		return "a person had pinned " + word(current)
	case g.ID != current:
		return word(current) + " was the current program" + x.because(was.Find(current))
	case x.Status != agent.StatusOK:
		return "it was the current program and did not answer"
	}
	return "it was the current program, but another one answered"
}

// because describes why a generation was made.
func (x *Explanation) because(g *agent.Generation) string {
	if g == nil || g.Trigger == "" {
		return ""
	}
	return " (made by " + word(g.Trigger) + ")"
}

// asOf returns the artifact as the call found it, or nil if there was none: without later generations, and with the
// flags that the recorded reason implies. complete reports that there are no later generations. Health and approvals
// are the current ones.
func asOf(a *agent.Artifact, e *agent.LogEntry) (then *agent.Artifact, complete bool) {
	if a == nil {
		return nil, true
	}
	c := flagged(a, e.Selection.Reason)
	start := began(e)
	later := func(g *agent.Generation) bool {
		return g.CreatedAt.Truncate(time.Millisecond).After(start) || g.ID == e.Generation &&
			e.ProgramSource != agent.SourcePersisted
	}
	if !slices.ContainsFunc(a.Generations, later) {
		return c, true
	}
	if c.Generations = slices.DeleteFunc(slices.Clone(a.Generations), later); len(c.Generations) == 0 {
		return nil, e.Selection.Reason == selection.ReasonMissing
	}
	// the current generation is a later one; assume the selected one, or else the newest
	if c.Find(c.CurrentID) == nil {
		c.CurrentID = c.Generations[0].ID
		if c.Find(e.Selection.Generation) != nil {
			c.CurrentID = e.Selection.Generation
		}
	}
	return c, false
}

// flagged returns a copy of the artifact with the flags that a selection for that reason implies. A selection by policy
// alone does not look at the flags, so it implies nothing about them.
func flagged(a *agent.Artifact, reason string) *agent.Artifact {
	c := *a
	switch reason {
	case selection.ReasonDispatch, selection.ReasonForced, selection.ReasonReadDisabled, selection.ReasonNotCanary:
		return &c
	}
	c.Quarantined, c.Pinned, c.ForceRegenerate = reason == selection.ReasonQuarantined,
		reason == selection.ReasonPinned, ""
	if reason == selection.ReasonRequested {
		c.ForceRegenerate = reason
	}
	if c.Correction.Pending() != (reason == selection.ReasonCorrection) {
		c.Correction = nil
		if reason == selection.ReasonCorrection {
			c.Correction = &agent.Correction{State: agent.CorrectionQueued}
		}
	}
	return &c
}

// checkedThen returns the fingerprint of the contract's checked parts, from a program that was made for the same
// contract. If none is kept, known is false.
func checkedThen(a *agent.Artifact, e *agent.LogEntry) (fingerprint string, known bool) {
	if a == nil || e.ContractFingerprint == "" || e.ContractFingerprint == agent.FingerprintNone {
		return agent.FingerprintNone, true
	}
	for _, g := range a.Generations {
		if g.ContractFingerprint == e.ContractFingerprint {
			return g.CheckedFingerprint, true
		}
	}
	if g := a.Find(e.Generation); g != nil {
		return g.CheckedFingerprint, false
	}
	return agent.FingerprintNone, false
}

// A flip is another value of one switch of the policy.
type flip struct {
	name  string
	value any
	set   func(*agent.Policy)
}

// flips returns the switches that a selection depends on, each with another value.
func flips(p *agent.Policy, e *agent.LogEntry) []flip {
	dispatch := !slices.Contains(p.DispatchMethods, e.Method)
	methods := slices.DeleteFunc(slices.Clone(p.DispatchMethods), func(m string) bool { return m == e.Method })
	if dispatch {
		methods = append(methods, e.Method)
	}
	canary := []string{}
	if len(p.ArtifactReadRoles) == 0 {
		canary = []string{"another-role"}
	}
	correction := agent.CorrectNextCall
	if p.Correction == correction {
		correction = agent.CorrectManual
	}
	all := []flip{
		{"artifact_read_enabled", !p.ArtifactReadEnabled,
			func(q *agent.Policy) { q.ArtifactReadEnabled = !p.ArtifactReadEnabled }},
		{"artifact_read_roles", canary, func(q *agent.Policy) { q.ArtifactReadRoles = canary }},
		{"force_generation", !p.ForceGeneration, func(q *agent.Policy) { q.ForceGeneration = !p.ForceGeneration }},
		{"repair_enabled", !p.RepairEnabled, func(q *agent.Policy) { q.RepairEnabled = !p.RepairEnabled }},
		{"approval_required", !p.ApprovalRequired, func(q *agent.Policy) { q.ApprovalRequired = !p.ApprovalRequired }},
		{"promotion.enforce", !p.Promotion.Enforce,
			func(q *agent.Policy) { q.Promotion.Enforce = !p.Promotion.Enforce }},
		{"correction", correction, func(q *agent.Policy) { q.Correction = correction }},
		{"dispatch_methods", methods, func(q *agent.Policy) { q.DispatchMethods = methods }},
	}
	if e.Selection.Reason == selection.ReasonNewReach {
		all = append(all, flip{"new_reach", agent.ReachAllow, func(q *agent.Policy) { q.NewReach = agent.ReachAllow }})
	}
	return all
}
