package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Restored marks a generation that a person restored from the archive while a newer program was in use. Newer
// generations take precedence over it.
type Restored struct {
	By   string `json:"by"`             // the audit id of the operation
	From string `json:"from,omitempty"` // the audit id of the operation that archived it; omitted if unknown
}

// RestoreBelow returns the change that adds the serving program of an archived artifact of the same name as an older
// generation of this artifact, whose own program keeps answering. by and from are those of Restored. The error explains
// why nothing can be restored.
func (a *Artifact) RestoreBelow(old *Artifact, by, from string, at time.Time) (ArtifactChange, error) {
	g := old.Served()
	switch {
	case a.Current() == nil:
		return ArtifactChange{}, errors.New(
			"it has examples and no program: archive these first, and all of it comes back")
	case old.Current() == nil:
		return ArtifactChange{}, errors.New("what is archived of it has no program")
	case old.Quarantined:
		return ArtifactChange{}, errors.New(
			"what is archived of it is quarantined, and no older generation can be: archive the newer one first")
	case g == nil:
		return ArtifactChange{}, errors.New(
			"what is archived of it waits for a person, and no program served before it: archive the newer one first, and approve this one once it is back")
	}
	for _, kept := range a.Generations {
		if kept.CodeChecksum == g.CodeChecksum {
			return ArtifactChange{}, fmt.Errorf("it has that program, as %s", kept.ID)
		}
	}
	back := *g
	back.ID, back.ParentID, back.Aside, back.Restored = a.NextGenerationID(), nil, false, &Restored{By: by, From: from}
	back.Breaks = nil // these ids belong to archived examples
	return ArtifactChange{Role: a.Role, MethodName: a.MethodName, At: at, Restore: &back}, nil
}

// Served returns the newest program in the current one's lineage that does not wait for a person, or nil. If the
// lineage has an approved program, an unapproved one that never answered counts as waiting.
func (a *Artifact) Served() *Generation {
	var newest *Generation
	for _, g := range a.Lineage() {
		switch {
		case a.Awaits(g):
		case newest == nil && (g.Approved || g.ran()):
			return g
		case newest == nil:
			newest = g
		case g.Approved:
			return g
		}
	}
	return newest
}

// Answers reports whether the generation is the current one, or serves while the current one waits for a person. It
// ignores generations that the selection picks by a call's contract, a person's wording or an approval.
func (a *Artifact) Answers(g *Generation) bool { return g.ID == a.CurrentID || g == a.Served() }

// ran reports whether any call result was counted for the program.
func (g *Generation) ran() bool {
	return g.SuccessCount+g.IntrinsicFailureCount+g.AdaptiveFailureCount+g.ExtrinsicFailureCount+
		g.AuthoredErrorCount > 0
}

// RestoredBy returns the generation that the operation with that audit id restored below a newer program, or nil.
func (a *Artifact) RestoredBy(auditID string) *Generation {
	for _, g := range a.Generations {
		if g.Restored != nil && g.Restored.By == auditID {
			return g
		}
	}
	return nil
}

// restore inserts the generation behind the newer ones. It holds the generations that it pushes out for the undo, as a
// person's program does.
func (a *Artifact) restore(g *Generation, was *Artifact) {
	all := slices.Clone(a.Generations)
	const newer = 2 // so it is among the latest, which prune keeps
	a.Generations = slices.Insert(slices.Clone(all), min(newer, len(all)), g)
	a.number(g)
	a.prune("")
	a.sortGenerations()
	a.hold(Displaced{By: g.ID, Generations: append([]*Generation{}, a.missing(all)...), Revision: a.Revision,
		Adoptions: was.Adoptions})
}

// unrestore removes the generation that the operation with that audit id restored, unless it is current by now, and
// puts back the generations that it pushed out. If nothing happened since, the artifact equals the previous one to the
// byte.
func (a *Artifact) unrestore(auditID string) {
	g := a.RestoredBy(auditID)
	if g == nil || g.ID == a.CurrentID {
		return
	}
	a.Generations = slices.DeleteFunc(slices.Clone(a.Generations), func(x *Generation) bool { return x == g })
	at := slices.IndexFunc(a.Displaced, func(d Displaced) bool { return d.By == g.ID })
	if at < 0 {
		return // calls were counted in between
	}
	held := a.Displaced[at]
	a.bringBack(func(_ *Generation, by string) bool { return by == g.ID })
	a.Displaced = slices.DeleteFunc(slices.Clone(a.Displaced), func(d Displaced) bool { return d.By == g.ID })
	if a.Revision == held.Revision+1 { // Apply has already counted the copy
		a.Revision, a.Adoptions, a.Sequence = held.Revision-1, held.Adoptions, g.number()-1
	}
}
