package env

import (
	"context"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Owners assigns each session to the replica that runs its calls, if several replicas share the store. An error means
// that no call took place; one kind of error names the replica that owns the session.
type Owners interface {
	// Enter returns the epoch under which this replica owns the session until Leave.
	Enter(ctx context.Context, sessionID string) (epoch int64, err error)
	// Leave ends what Enter or Create began.
	Leave(sessionID string)
	// Create stores a new session and owns it until Leave.
	Create(ctx context.Context, s agent.Session, sessionContext map[string]json.RawMessage) (epoch int64, err error)
	// Fenced reports that the store rejected a commit under the session's epoch.
	Fenced(sessionID string)
}
