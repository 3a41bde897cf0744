package agent

import "slices"

// A Reader is who is shown methods: an owner's agents, and the models that write programs for an owner's calls.
type Reader struct {
	Owner    string // LocalOwner without access tokens
	Operates bool   // it has the scope operate
}

// SeesAll reports whether everything is the reader's own: the daemon asks for no access tokens, in the namespace default or, as a visitor, in another.
func (r Reader) SeesAll() bool {
	return r.Owner == LocalOwner || r.Owner == string(DefaultNamespace)+"/"+LocalOwner
}

// An Audience is who may read a text that a model wrote, or that a call brought.
type Audience struct {
	All   bool
	Owner string // where All is false; "" where an earlier version did not keep it
}

// Has reports whether the reader belongs to the audience. Readers who may operate see a text whose owner is unknown: they could approve it.
func (t Audience) Has(r Reader) bool {
	if t.Owner == "" {
		return t.All || r.SeesAll() || r.Operates
	}
	return t.All || r.SeesAll() || r.Owner == t.Owner
}

// Audience is who may read the role's contract: everybody where a person registered it.
func (t *Tool) Audience() Audience { return Audience{All: t.ByPerson, Owner: t.Owner} }

// mostCallers is how many owners a generation knows to have called it: as many as its audience asks for.
const mostCallers = 2

// KnowsCaller reports whether another ok call of the owner would add nothing to what is known of who calls the generation.
func (g *Generation) KnowsCaller(owner string) bool {
	return len(g.Callers) >= mostCallers || slices.Contains(g.Callers, owner)
}

// calledBy notes that a call of the owner's own ended ok.
func (g *Generation) calledBy(owner string) {
	if owner != "" && !g.KnowsCaller(owner) {
		g.Callers = append(slices.Clip(g.Callers), owner)
	}
}

// StateOf is the generation's state; of generations of older files the artifact's.
func (a *Artifact) StateOf(g *Generation) string {
	if g.State == "" {
		return a.LifecycleState
	}
	return g.State
}

// audience is who may read what the generation's author wrote of it.
func (a *Artifact) audience(g *Generation, byPerson bool) Audience {
	return Audience{All: byPerson || g.Approved || a.StateOf(g) == StateDurable && len(g.Callers) >= mostCallers,
		Owner: g.Owner}
}

// A Description is a generation by whose interface a method is shown, and to whom.
type Description struct {
	Generation *Generation // nil: the method is shown by its name alone
	To         Audience
}

// Descriptions returns how the method is shown that the generation answers; the first one whose audience has a reader counts for it, and to who
// is in none the method is not shown. byPerson says that a person registered the role. A generation that a call of another owner had written
// takes no method out of anybody's list: they are shown the newest one they may read of those that it comes of, whose every parameter it keeps.
func (a *Artifact) Descriptions(serving *Generation, byPerson bool) (out []Description) {
	for g, left := serving, len(a.Generations); g != nil && left > 0; left-- {
		to := a.audience(g, byPerson)
		if !slices.ContainsFunc(out, func(d Description) bool { return d.To == to }) {
			out = append(out, Description{g, to})
		}
		if to.All || g.ParentID == nil {
			break
		}
		g = a.Find(*g.ParentID)
	}
	made := Audience{All: byPerson, Owner: a.Owner}
	if !slices.ContainsFunc(out, func(d Description) bool { return d.To.All || d.To == made }) {
		out = append(out, Description{To: made})
	}
	return out
}

// ShownTo returns the description that counts for the reader.
func (a *Artifact) ShownTo(r Reader, serving *Generation, byPerson bool) (d Description, shown bool) {
	for _, d := range a.Descriptions(serving, byPerson) {
		if d.To.Has(r) {
			return d, true
		}
	}
	return Description{}, false
}

// ShownToAll reports whether everybody's agents are shown the method.
func (a *Artifact) ShownToAll(byPerson bool) bool {
	return slices.ContainsFunc(a.Descriptions(a.Current(), byPerson), func(d Description) bool { return d.To.All })
}
