package agent

import "slices"

// Keeps reports whether a generation was made for a contract with that fingerprint of its machine-checked parts. A call without a contract ("none") is answered by any,
// but not by one that was made for the contract of somebody's call.
func (g *Generation) Keeps(checked string) bool {
	if checked == FingerprintNone {
		return !g.CallersContract
	}
	return g.CheckedFingerprint == checked
}

// Matching returns the newest kept generation that keeps the contract with that fingerprint and that healthy accepts, the current one first. It
// returns nil when there is none.
func (a *Artifact) Matching(checked string, healthy func(*Generation) bool) *Generation {
	fits := func(g *Generation) bool { return g != nil && g.Keeps(checked) && healthy(g) }
	cur := a.Current()
	if fits(cur) {
		return cur
	}
	if checked == FingerprintNone && (cur == nil || cur.Keeps(checked)) {
		return nil // for a call without a contract, no other generation answers better than the current one
	}
	for _, g := range a.Generations {
		if fits(g) {
			return g
		}
	}
	return nil
}

// Neutral returns the kept generation whose interface a call without a contract may rely on: the current one, unless it was made for the contract of somebody's call,
// else the newest one that was not. It returns nil where all were: such a call has a program of its own written, which may take something else.
func (a *Artifact) Neutral() *Generation { return a.Matching(FingerprintNone, anyGeneration) }

func anyGeneration(*Generation) bool { return true }

// Judged returns the kept generation that now answers calls like the judged one: those with the same contract of their own or, where it had none, all others.
func (a *Artifact) Judged(v *Verdict) *Generation {
	checked := FingerprintNone
	if g := a.Find(v.Generation); g != nil && g.CallersContract {
		checked = g.CheckedFingerprint
	}
	if g := a.Matching(checked, anyGeneration); g != nil {
		return g
	}
	return a.Current()
}

// Fits reports whether a kept generation's machine-checked contract parts have that fingerprint. a may be nil.
func (a *Artifact) Fits(checked string) bool {
	return a != nil && slices.ContainsFunc(a.Generations,
		func(g *Generation) bool { return g.CheckedFingerprint == checked })
}

// FingerprintNone is the fingerprint of no contract.
const FingerprintNone = "none"
