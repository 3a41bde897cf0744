package store

import "github.com/recurgentd/recurgentd/internal/agent"

// AnyRevision matches any revision in operations that compare one.
const AnyRevision int64 = -1

// Matches reports whether the wanted revision equals the current one. Something that does not exist has revision 0.
func Matches(wanted, have int64) bool { return wanted == AnyRevision || wanted == have }

// CheckChange returns ErrNotFound or ErrConflict if an operator's change does not apply to the artifact old, otherwise
// nil. A nil old means that there is no artifact.
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
