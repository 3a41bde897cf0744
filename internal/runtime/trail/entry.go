package trail

import (
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
)

// Entry returns a new audit entry for an operation.
func Entry(at time.Time, actor, action, target string) agent.AuditEntry {
	return agent.AuditEntry{ID: ids.New("aud"), Timestamp: agent.FormatTime(at), Actor: actor, Action: action,
		Target: target}
}

// Brief returns the value if it has at most most bytes, otherwise an object with its size. It returns nil for nil.
func Brief(value json.RawMessage, most int) json.RawMessage {
	if len(value) <= most {
		return value
	}
	return agent.Encoded(struct {
		Bytes int `json:"bytes"`
	}{len(value)})
}
