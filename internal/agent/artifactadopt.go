package agent

import (
	"slices"
	"strconv"
	"strings"
)

// adopt makes the change's generation the newest one, and also the current one unless the change puts it aside.
func (a *Artifact) adopt(c ArtifactChange) {
	g := *c.Generation
	g.State, g.Approved = StateCandidate, c.Approve != nil && *c.Approve
	if c.Aside && a.Current() != nil {
		a.putAside(&g)
		return
	}
	if cur := a.CurrentID; cur != "" && g.ParentID == nil {
		g.ParentID = &cur
	}
	if len(a.Generations) == 0 {
		a.Owner = g.Owner
	}
	a.Generations = append([]*Generation{&g}, a.Generations...)
	a.CurrentID = g.ID
	a.number(&g)
	a.ForceRegenerate = ""
	a.Scorecard = Scorecard{}
	a.noteDrift(c.Drifted, c.At)
	switch {
	case strings.HasPrefix(g.Trigger, "repair:"):
		a.RepairCountSinceRegen++
		at := c.At
		a.LastRepairedAt = &at
	default:
		a.RepairCountSinceRegen = 0
	}
	a.displace(g, c.Words)
}

// putAside keeps the generation without making it current. It replaces any earlier generation that was put aside.
func (a *Artifact) putAside(g *Generation) {
	g.Aside = true
	a.Generations = slices.DeleteFunc(a.Generations, func(old *Generation) bool {
		return old.Aside &&
			old.ID != a.CurrentID
	})
	a.Generations = append([]*Generation{g}, a.Generations...)
	a.number(g)
}

// number raises Sequence to the generation's number.
func (a *Artifact) number(g *Generation) {
	if n, err := strconv.Atoi(strings.TrimPrefix(g.ID, "gen-")); err == nil && n > a.Sequence {
		a.Sequence = n
	}
}
