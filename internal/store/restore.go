package store

import (
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// DeletedLife is how long removed tools and artifacts can be restored.
const DeletedLife = 24 * time.Hour

// NotArchived returns the ErrNotFound for a target that the archive does not hold.
func NotArchived(t Target) error { return fmt.Errorf("%w in the archive: %s", ErrNotFound, t) }

// Ended reports whether an archived version is gone for good. deleted means that it was removed, at the time at.
func Ended(deleted bool, at, now time.Time) bool { return deleted && now.Sub(at) >= DeletedLife }

// Restoring collects what a Restore brings back, target by target. The zero value is ready for use.
type Restoring struct {
	Below []agent.ArtifactChange // artifacts whose program comes back below a newer one

	brought bool  // the current target brings something back
	hinders error // why a part of the current target stays in the archive
}

// Whole records that a part of the target comes back as it was.
func (r *Restoring) Whole() { r.brought = true }

// Beneath records that an archived artifact comes back below the one in use, or why it cannot. now is the artifact in
// use, old the archived one, from the operation that archived it.
func (r *Restoring) Beneath(now, old *agent.Artifact, audit *agent.AuditEntry, from string, at time.Time) {
	for _, c := range r.Below {
		if c.Role == now.Role && c.MethodName == now.MethodName {
			r.brought = true // recorded for an earlier target
			return
		}
	}
	c, err := now.RestoreBelow(old, audit.ID, from, at)
	if err != nil {
		r.Stays(Target{Role: now.Role, Method: now.MethodName}, err)
		return
	}
	r.Below, r.brought = append(r.Below, c), true
}

// Stays records that a part of the target stays in the archive, and why. A nil reason means that another version has
// its place. The first reason wins.
func (r *Restoring) Stays(part Target, why error) {
	switch {
	case r.hinders != nil:
	case why == nil:
		r.hinders = fmt.Errorf("%w: %s", ErrExists, part)
	default:
		r.hinders = fmt.Errorf("%w: %s: %w", ErrExists, part, why)
	}
}

// End finishes a target. It returns ErrNotFound if no part of it was found, and ErrExists if no part of it comes back.
func (r *Restoring) End(t Target) error {
	brought, hinders := r.brought, r.hinders
	r.brought, r.hinders = false, nil
	switch {
	case brought:
		return nil
	case hinders != nil:
		return hinders
	}
	return NotArchived(t)
}

// TakeRestored returns the change that takes away the program that operation t.Restored brought back below the
// artifact. ErrNotFound if there is no such program; ErrConflict if it answers calls now.
func TakeRestored(a *agent.Artifact, t Target, at time.Time) (agent.ArtifactChange, error) {
	if a == nil || a.RestoredBy(t.Restored) == nil {
		return agent.ArtifactChange{}, fmt.Errorf("%w: what was restored of %s", ErrNotFound, t)
	}
	if g := a.RestoredBy(t.Restored); a.Answers(g) {
		return agent.ArtifactChange{}, fmt.Errorf("%w: %s of %s answers now", ErrConflict, g.ID, t)
	}
	return agent.ArtifactChange{Role: t.Role, MethodName: t.Method, At: at, Unrestore: t.Restored}, nil
}
