package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// StalePurpose is the value of LogEntry.ProgramStale if a person has changed the purpose, the acceptance or the failure
// policy of the method since the program was made or checked.
const StalePurpose = "purpose"

// A Wording is the prose of a contract, as opposed to its machine-checked parts.
type Wording struct {
	Purpose       string          `json:"purpose,omitempty"`
	Acceptance    json.RawMessage `json:"acceptance,omitempty"`
	FailurePolicy json.RawMessage `json:"failure_policy,omitempty"`
}

// A WordingDigest identifies a wording, ignoring white space. It has three parts separated by dots: purpose, acceptance
// and failure policy. The part of an empty text is empty. "" means that there is no digest.
type WordingDigest string

// NoWords is the digest of an empty wording.
const NoWords WordingDigest = ".."

// MadeFor records the wording that a program was written for or last checked for. A stored value is shared and
// immutable.
type MadeFor struct {
	// Wording holds only registered wording. Other wording belongs to the call that brought it and is not kept.
	Wording
	// Digest combines the registered wording with, where that is empty, the wording of the request for the program.
	Digest   WordingDigest `json:"digest"`
	ByPerson WordingDigest `json:"by_person"` // of the wording that people had registered
	// Before holds earlier values of ByPerson, for which it was made or checked: newest first, at most 8.
	Before  []WordingDigest `json:"before,omitempty"`
	Checked *time.Time      `json:"checked_at,omitempty"` // time of the last check; nil if never checked
}

// maxWordings bounds MadeFor.Before.
const maxWordings = 8

// Reworded reports whether a person has changed the wording since the program was made. now is the digest of the
// wording that people have registered by now, or "" if it does not count. Reworded returns false for a wording for
// which the program was made, checked or confirmed before, and for one that only repeats the words of the request. A
// program without MadeFor is not reworded.
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

// Outdated reports whether the program must be checked because it was made for another wording than the registered one.
// It returns false if people have withdrawn all wording: there is nothing left to check.
func (g *Generation) Outdated(now WordingDigest) bool { return now != NoWords && g.Reworded(now) }

// parts returns the digests of purpose, acceptance and failure policy.
func (d WordingDigest) parts() (parts [3]string) {
	copy(parts[:], strings.SplitN(string(d), ".", len(parts)))
	return parts
}

// after returns m with the digests of old, for which the program was made or checked earlier, in Before.
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

// A Rewording sets MadeFor of one program that was checked for another wording, or of all programs that lack it.
type Rewording struct {
	Of  string  `json:"of,omitempty"` // the generation; "" means all without MadeFor
	For MadeFor `json:"for"`
}

// reword sets MadeFor of the generation that r names, or of all generations without one.
func (a *Artifact) reword(r *Rewording) {
	for _, g := range slices.Clone(a.Generations) {
		if r.Of == "" && g.MadeFor == nil || r.Of == g.ID {
			next := a.change(g.ID)
			next.MadeFor = r.For.after(g.MadeFor)
		}
	}
}

// AwaitsExamples reports whether the generation waits for a person because it breaks examples. It waits until a person
// approves it or none of these examples is active.
func (a *Artifact) AwaitsExamples(g *Generation) bool {
	return g != nil && !g.Approved && len(a.Breaks(g)) > 0
}

// Breaks returns the ids of the active examples that the generation broke when it was written for another wording.
func (a *Artifact) Breaks(g *Generation) []string { return a.active(g.Breaks) }

// active returns the ids that belong to active examples.
func (a *Artifact) active(ids []string) (active []string) {
	for _, id := range ids {
		if x := a.Example(id); x != nil && x.State == ExampleActive {
			active = append(active, id)
		}
	}
	return active
}

// followExamples updates Breaks after a change of the examples: an example that asks the same question under a new id
// replaces the old one, because a new id decides nothing. was is the previous list.
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

// Awaits reports whether the generation waits for a person, irrespective of the policy approval_required.
func (a *Artifact) Awaits(g *Generation) bool { return a.AwaitsReach(g) || a.AwaitsExamples(g) }
