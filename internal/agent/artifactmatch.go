package agent

import "slices"

// Keeps reports whether the generation was made for a contract with that fingerprint of the machine-checked parts. Any
// generation answers a call without a contract (FingerprintNone), except one made for a caller's own contract.
func (g *Generation) Keeps(checked string) bool {
	if checked == FingerprintNone {
		return !g.CallersContract
	}
	return g.CheckedFingerprint == checked
}

// Matching returns a kept generation that matches the fingerprint and that healthy accepts: the current one, otherwise
// the newest. It returns nil if there is none.
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

// Neutral returns the kept generation whose interface a call without a contract may rely on: the current one unless it
// was made for a caller's contract, otherwise the newest that was not. It returns nil if all were: such a call gets a
// program of its own, which may take other arguments.
func (a *Artifact) Neutral() *Generation { return a.Matching(FingerprintNone, anyGeneration) }

func anyGeneration(*Generation) bool { return true }

// Judged returns the kept generation that now answers calls like the judged one: calls with the same contract if that
// call had its own, otherwise calls without one. It falls back to the current generation, which may be nil.
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

// Fits reports whether some kept generation has that fingerprint of its machine-checked contract parts. a may be nil.
func (a *Artifact) Fits(checked string) bool {
	return a != nil && slices.ContainsFunc(a.Generations,
		func(g *Generation) bool { return g.CheckedFingerprint == checked })
}

// FingerprintNone is the fingerprint of a call without a contract.
const FingerprintNone = "none"
