package agent

import "slices"

// Matching returns the newest kept generation whose machine-checked contract parts have that fingerprint and that
// healthy accepts, the current one first; "none" (no contract) matches any generation. It returns nil when there is none.
func (a *Artifact) Matching(checked string, healthy func(*Generation) bool) *Generation {
	fits := func(g *Generation) bool {
		return g != nil && (checked == FingerprintNone || g.CheckedFingerprint == checked) && healthy(g)
	}
	if cur := a.Current(); fits(cur) {
		return cur
	}
	if checked == FingerprintNone {
		return nil // for a call without a contract, no other generation answers better than the current one
	}
	for _, g := range a.Generations {
		if fits(g) {
			return g
		}
	}
	return nil
}

// Fits reports whether a kept generation's machine-checked contract parts have that fingerprint. a may be nil.
func (a *Artifact) Fits(checked string) bool {
	return a != nil && slices.ContainsFunc(a.Generations, func(g *Generation) bool { return g.CheckedFingerprint == checked })
}

// FingerprintNone is the fingerprint of no contract.
const FingerprintNone = "none"
