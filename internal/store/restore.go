package store

import (
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// DeletedLife is for how long what was removed can be restored.
const DeletedLife = 24 * time.Hour

// NotArchived is the ErrNotFound of a target that the archive does not hold.
func NotArchived(t Target) error { return fmt.Errorf("%w in the archive: %s", ErrNotFound, t) }

// Ended reports whether what was taken away at that time is gone for good by now.
func Ended(deleted bool, at, now time.Time) bool { return deleted && now.Sub(at) >= DeletedLife }

// Restoring is what a Restore brings back, target by target. The zero value brings back nothing yet.
type Restoring struct {
	Below []agent.ArtifactChange // artifacts whose program comes back below a newer one

	brought bool  // by the target in turn
	hinders error // why something of it stays in the archive
}

// Whole notes that something of the target comes back as it was.
func (r *Restoring) Whole() { r.brought = true }

// Beneath notes that an archived artifact comes back below the one in use, or why it does not. from is the operation that took it away.
func (r *Restoring) Beneath(now, old *agent.Artifact, audit *agent.AuditEntry, from string, at time.Time) {
	for _, c := range r.Below {
		if c.Role == now.Role && c.MethodName == now.MethodName {
			r.brought = true // of an earlier target
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

// Stays notes that a part of the target stays in the archive, and why; nil: another one is in its place.
func (r *Restoring) Stays(part Target, why error) {
	switch {
	case r.hinders != nil:
	case why == nil:
		r.hinders = fmt.Errorf("%w: %s", ErrExists, part)
	default:
		r.hinders = fmt.Errorf("%w: %s: %w", ErrExists, part, why)
	}
}

// End ends a target. The error is ErrNotFound where nothing of it was found, ErrExists where nothing of it comes back.
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

// TakeRestored returns the change that takes away again what an operation restored below the artifact. ErrNotFound, ErrConflict.
func TakeRestored(a *agent.Artifact, t Target, at time.Time) (agent.ArtifactChange, error) {
	if a == nil || a.RestoredBy(t.Restored) == nil {
		return agent.ArtifactChange{}, fmt.Errorf("%w: what was restored of %s", ErrNotFound, t)
	}
	if g := a.RestoredBy(t.Restored); a.Answers(g) {
		return agent.ArtifactChange{}, fmt.Errorf("%w: %s of %s answers now", ErrConflict, g.ID, t)
	}
	return agent.ArtifactChange{Role: t.Role, MethodName: t.Method, At: at, Unrestore: t.Restored}, nil
}
