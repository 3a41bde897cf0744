package agent

import "slices"

// A Reader identifies who is shown methods: an owner's agents, or the models that write programs for an owner's calls.
type Reader struct {
	// LocalOwner if the daemon has no access tokens.
	Owner    string
	Operates bool // the reader has the scope operate
}

// SeesAll reports whether the reader owns everything: the daemon requires no access tokens, and the reader is in the
// default namespace or visits another from there.
func (r Reader) SeesAll() bool {
	return r.Owner == LocalOwner || r.Owner == string(DefaultNamespace)+"/"+LocalOwner
}

// An Audience describes who may read a text that a model wrote or that a call contained.
type Audience struct {
	All   bool
	Owner string // if All is false; "" if an earlier version did not keep it
}

// Has reports whether the reader belongs to the audience. Readers with the scope operate also see texts of unknown
// owners, because they could approve them.
func (t Audience) Has(r Reader) bool {
	if t.Owner == "" {
		return t.All || r.SeesAll() || r.Operates
	}
	return t.All || r.SeesAll() || r.Owner == t.Owner
}

// Audience returns who may read the role's contract: everybody if a person registered it.
func (t *Tool) Audience() Audience { return Audience{All: t.ByPerson, Owner: t.Owner} }

// mostCallers is the number of callers that a generation records: as many as audience needs.
const mostCallers = 2

// KnowsCaller reports whether a further ok call of the owner would add nothing to Callers.
func (g *Generation) KnowsCaller(owner string) bool {
	return len(g.Callers) >= mostCallers || slices.Contains(g.Callers, owner)
}

// calledBy records the owner of a client's call that ended ok.
func (g *Generation) calledBy(owner string) {
	if owner != "" && !g.KnowsCaller(owner) {
		g.Callers = append(slices.Clip(g.Callers), owner)
	}
}

// StateOf returns the generation's state. Generations of older files have none, and take the artifact's.
func (a *Artifact) StateOf(g *Generation) string {
	if g.State == "" {
		return a.LifecycleState
	}
	return g.State
}

// audience returns who may read the texts that the generation's author wrote.
func (a *Artifact) audience(g *Generation, byPerson bool) Audience {
	return Audience{All: byPerson || g.Approved || a.StateOf(g) == StateDurable && len(g.Callers) >= mostCallers,
		Owner: g.Owner}
}

// A Description pairs the generation whose interface describes a method with the audience that is shown it.
type Description struct {
	Generation *Generation // nil: only the method's name is shown
	To         Audience
}

// Descriptions returns the descriptions of the method that the serving generation answers. The first one whose audience
// includes a reader applies to that reader; if none does, the method is hidden. byPerson reports whether a person
// registered the role. A generation written for one owner's call does not hide the method from others: they are shown
// its newest ancestor that they may read, all of whose parameters it keeps.
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

// ShownTo returns the description that applies to the reader.
func (a *Artifact) ShownTo(r Reader, serving *Generation, byPerson bool) (d Description, shown bool) {
	for _, d := range a.Descriptions(serving, byPerson) {
		if d.To.Has(r) {
			return d, true
		}
	}
	return Description{}, false
}

// ShownToAll reports whether the agents of every owner are shown the method.
func (a *Artifact) ShownToAll(byPerson bool) bool {
	return slices.ContainsFunc(a.Descriptions(a.Current(), byPerson), func(d Description) bool { return d.To.All })
}
