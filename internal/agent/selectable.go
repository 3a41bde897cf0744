package agent

// Selectable returns a small copy of the artifact, for callers that keep many. It holds only the data that selecting a
// program for a call without arguments needs: no sources, records, fixtures or prose.
func (a *Artifact) Selectable() *Artifact {
	s := &Artifact{SchemaVersion: a.SchemaVersion, Role: a.Role, MethodName: a.MethodName,
		RepairCountSinceRegen: a.RepairCountSinceRegen, Quarantined: a.Quarantined, Pinned: a.Pinned,
		ForceRegenerate: a.ForceRegenerate, CurrentID: a.CurrentID, Correction: a.Correction, Manifest: a.Manifest,
		Generations: make([]*Generation, len(a.Generations))}
	for i, g := range a.Generations {
		s.Generations[i] = g.selectable()
	}
	for i := range a.Examples {
		s.Examples = append(s.Examples, Example{ID: a.Examples[i].ID, State: a.Examples[i].State})
	}
	return s
}

// selectable returns a copy with an empty source. Its checksum is valid if and only if the original's was.
func (g *Generation) selectable() *Generation {
	s := &Generation{ID: g.ID, ParentID: g.ParentID, State: g.State, CodeChecksum: g.CodeChecksum,
		Dependencies: g.Dependencies, CheckedFingerprint: g.CheckedFingerprint, CallersContract: g.CallersContract,
		RuntimeVersion: g.RuntimeVersion, Cacheable: g.Cacheable, Approved: g.Approved, Aside: g.Aside,
		SuccessCount: g.SuccessCount, Window: g.Window, AuthoredStreak: g.AuthoredStreak,
		Beyond: g.Beyond, Confirmed: g.Confirmed, Breaks: g.Breaks, Restored: g.Restored}
	if Checksum(g.Code) == g.CodeChecksum {
		s.CodeChecksum = Checksum("")
	}
	if g.MadeFor != nil {
		s.MadeFor = &MadeFor{Digest: g.MadeFor.Digest, ByPerson: g.MadeFor.ByPerson, Before: g.MadeFor.Before}
	}
	return s
}
