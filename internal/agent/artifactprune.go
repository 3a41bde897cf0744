package agent

import (
	"slices"
	"strings"
)

// displace prunes. Generations pushed out by an operator's program are held for its undo until something else happens.
func (a *Artifact) displace(g Generation, words WordingDigest) {
	all := a.Generations
	a.prune(words)
	if !strings.HasPrefix(g.Trigger, "operator:") {
		a.Displaced = nil
		return
	}
	if gone := a.missing(all); len(gone) > 0 {
		a.hold(Displaced{By: g.ID, Generations: gone})
	}
}

// missing returns those of all that are no longer kept.
func (a *Artifact) missing(all []*Generation) (gone []*Generation) {
	for _, old := range all {
		if a.Find(old.ID) == nil {
			gone = append(gone, old)
		}
	}
	return gone
}

// hold keeps the generations that a person's operation pushed out, for an undo.
func (a *Artifact) hold(d Displaced) {
	const most = 8 // consecutive operations without a call in between
	a.Displaced = append([]Displaced{d}, a.Displaced...)
	a.Displaced = a.Displaced[:min(most, len(a.Displaced))]
}

// prune keeps the newest three generations. Of the older ones it keeps:
//   - the current one, its parent and its newest approved ancestor,
//   - the newest one of its lineage that does not wait for a person's consent or examples,
//   - of up to eight contracts, the newest good one made for words, the digest of the registered wording,
//   - of up to eight other contracts, the newest good one.
func (a *Artifact) prune(words WordingDigest) {
	const latest, contracts = 3, 8
	if len(a.Generations) > latest { // a generation that a switch asked for does not displace the one that served
		a.Generations = slices.DeleteFunc(slices.Clone(a.Generations),
			func(g *Generation) bool { return g.Aside && g.ID != a.CurrentID })
	}
	if len(a.Generations) <= latest {
		return
	}
	kept := a.Generations[:latest:latest]
	seen := map[string]bool{}
	for _, g := range kept {
		seen[g.CheckedFingerprint] = true
	}
	extra := 0
	parent := ""
	if cur := a.Current(); cur != nil && cur.ParentID != nil {
		parent = *cur.ParentID // the predecessor, the target of a rollback
	}
	approved, reaching := "", "" // they answer while newer ones wait
	for _, g := range a.Lineage() {
		if approved == "" && g.Approved {
			approved = g.ID
		}
		if reaching == "" && !a.Awaits(g) {
			reaching = g.ID
		}
	}
	worded := a.worded(words, contracts)
	for _, g := range a.Generations[latest:] {
		fresh := !seen[g.CheckedFingerprint] && g.good()
		if g.ID == a.CurrentID || g.ID == parent || g.ID == approved || g.ID == reaching || slices.Contains(worded, g) {
			kept = append(kept, g)
			seen[g.CheckedFingerprint] = true
			continue
		}
		if fresh && extra < contracts {
			kept = append(kept, g)
			seen[g.CheckedFingerprint] = true
			extra++
		}
	}
	a.Generations = kept
}

// good reports whether the generation has succeeded and its recent failure rate is at most 0.6.
func (g *Generation) good() bool {
	rate, _ := g.FailureRate()
	return g.SuccessCount > 0 && rate <= 0.6
}

// worded returns, for each of up to most contracts, the newest good generation that was made for the words and does not
// wait. It answers calls under that wording.
func (a *Artifact) worded(words WordingDigest, most int) (out []*Generation) {
	if words == "" {
		return nil
	}
	seen := map[string]bool{}
	for _, g := range a.Generations {
		if len(out) < most && !seen[g.CheckedFingerprint] && g.good() && g.MadeFor != nil && !g.Aside && !a.Awaits(g) &&
			!g.Reworded(words) {
			seen[g.CheckedFingerprint] = true
			out = append(out, g)
		}
	}
	return out
}
