package store

import "github.com/recurgentd/recurgentd/internal/agent"

// AnyRevision stands for "whatever the revision is" in operations that compare it.
const AnyRevision int64 = -1

// Matches reports whether the wanted revision is the one that there is; 0 is that of what is not there.
func Matches(wanted, have int64) bool { return wanted == AnyRevision || wanted == have }

// CheckChange reports why a person's change of an artifact (nil: there is none) does not apply: ErrNotFound or ErrConflict.
func CheckChange(old *agent.Artifact, revision int64, c *agent.ArtifactChange) error {
	have := int64(0)
	if old != nil {
		have = old.Revision
	}
	switch {
	case old == nil && !c.Creates():
		return ErrNotFound
	case !Matches(revision, have) || c.Conflicts(old):
		return ErrConflict
	}
	return nil
}
