package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// StalePurpose says of a program that a person has changed the purpose, the acceptance or the failure policy of its method since it was made or checked.
const StalePurpose = "purpose"

// A Wording is the prose of a contract: what a method is for, beside what is machine-checked.
type Wording struct {
	Purpose       string          `json:"purpose,omitempty"`
	Acceptance    json.RawMessage `json:"acceptance,omitempty"`
	FailurePolicy json.RawMessage `json:"failure_policy,omitempty"`
}

// A WordingDigest identifies a wording, but for white space: a part for the purpose, one for the acceptance and one for the failure policy, with points between
// them. A part that says nothing is empty. "" stands for no digest.
type WordingDigest string

// NoWords is the digest of a wording that says nothing.
const NoWords WordingDigest = ".."

// MadeFor records the wording that a program was written for or last checked for. A stored value is shared and immutable.
type MadeFor struct {
	Wording // as far as it was registered: what else a call brought is its caller's, and is not kept
	// of what people had registered, and where that said nothing of what the program was asked with
	Digest   WordingDigest `json:"digest"`
	ByPerson WordingDigest `json:"by_person"` // of what people had registered
	// what people had registered when it was made, or checked before: the newest first, at most 8
	Before  []WordingDigest `json:"before,omitempty"`
	Checked *time.Time      `json:"checked_at,omitempty"` // when it was last checked; nil: it was not
}

const maxWordings = 8

// Reworded reports whether a person has changed the wording since the program was made: now is the digest of what people have registered by now, "" where
// that does not count. It returns false for a wording that the program was made or checked for before, that a person confirmed it for, or that only repeats
// the words of the request. A program without MadeFor is not reworded.
func (g *Generation) Reworded(now WordingDigest) bool {
	m := g.MadeFor
	if m == nil || now == "" || now == m.ByPerson || now == g.Confirmed || slices.Contains(m.Before, now) {
		return false
	}
	said, was, byPerson := now.parts(), m.Digest.parts(), m.ByPerson.parts()
	for i := range said {
		if said[i] != was[i] && (said[i] != "" || byPerson[i] != "") {
			return true
		}
	}
	return false
}

// Outdated reports whether the program has to be looked at because of the registered wording of now: it was made for another one, and there is one. Where people
// have taken back all that they had said, nothing is left that the program may not do.
func (g *Generation) Outdated(now WordingDigest) bool { return now != NoWords && g.Reworded(now) }

func (d WordingDigest) parts() (parts [3]string) {
	copy(parts[:], strings.SplitN(string(d), ".", len(parts)))
	return parts
}

// after returns m for a program that was made or checked for old before.
func (m MadeFor) after(old *MadeFor) *MadeFor {
	if old == nil {
		return &m
	}
	m.Before = nil
	for _, d := range append([]WordingDigest{old.ByPerson}, old.Before...) {
		if d != m.ByPerson && len(m.Before) < maxWordings {
			m.Before = append(m.Before, d)
		}
	}
	return &m
}

// A Rewording sets MadeFor of programs that lack it, or of a program that was checked for another wording.
type Rewording struct {
	Of  string  `json:"of,omitempty"` // the generation; "" for all that do not say what they were made for
	For MadeFor `json:"for"`
}

func (a *Artifact) reword(r *Rewording) {
	for _, g := range slices.Clone(a.Generations) {
		if r.Of == "" && g.MadeFor == nil || r.Of == g.ID {
			next := a.change(g.ID)
			next.MadeFor = r.For.after(g.MadeFor)
		}
	}
}

// AwaitsExamples reports whether the generation waits for a person because it does not hold examples: until one approves it, or none of them is left.
func (a *Artifact) AwaitsExamples(g *Generation) bool {
	return g != nil && !g.Approved && len(a.Breaks(g)) > 0
}

// Breaks returns the ids of the active examples that the generation did not hold when it was written for another wording.
func (a *Artifact) Breaks(g *Generation) []string { return a.active(g.Breaks) }

// active returns those of the ids that are active examples'.
func (a *Artifact) active(ids []string) (active []string) {
	for _, id := range ids {
		if x := a.Example(id); x != nil && x.State == ExampleActive {
			active = append(active, id)
		}
	}
	return active
}

// followExamples updates Breaks after a change of the examples: an example that asks the same question under a new id replaces the old one, because a new id
// decides nothing. was is the previous list.
func (a *Artifact) followExamples(was []Example) {
	for _, g := range slices.Clone(a.Generations) {
		if next := a.followed(g.Breaks, was); !slices.Equal(next, g.Breaks) {
			a.change(g.ID).Breaks = next
		}
	}
	if r := a.Returned; r != nil {
		if next := a.followed(r.Breaks, was); !slices.Equal(next, r.Breaks) {
			a.Returned = &Returned{Generation: r.Generation, Breaks: next, At: r.At}
		}
	}
}

// followed returns the ids of examples. An example that asks the same question under a new id replaces the old id.
func (a *Artifact) followed(ids []string, was []Example) []string {
	if len(ids) == 0 {
		return ids
	}
	next := slices.Clone(ids)
	for _, x := range was {
		i := slices.Index(next, x.ID)
		if i < 0 || x.State != ExampleActive || a.Example(x.ID) != nil {
			continue
		}
		if y := a.Asking(&x); y != nil && !slices.Contains(next, y.ID) {
			next[i] = y.ID
		}
	}
	return next
}

// Awaits reports whether the generation waits for a person, whatever the policy approval_required says.
func (a *Artifact) Awaits(g *Generation) bool { return a.AwaitsReach(g) || a.AwaitsExamples(g) }
