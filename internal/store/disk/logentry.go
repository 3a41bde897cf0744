package disk

import (
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
)

var fullLog, shortLog = jsonenc.For[agent.LogEntry](), jsonenc.Sparse[agent.LogEntry]()

// appendLog appends a log entry as calls.jsonl has it.
func appendLog(b []byte, e *agent.LogEntry) ([]byte, error) {
	w := jsonenc.Writer{Buf: b, KeepHTML: true}
	fullLog.Append(&w, e)
	return w.Buf, w.Err
}

// encodeShortLog returns a log entry as the journal has it, without zero members.
func encodeShortLog(e *agent.LogEntry) ([]byte, error) {
	w := jsonenc.Writer{KeepHTML: true}
	shortLog.Append(&w, e)
	return w.Buf, w.Err
}

// setCounters sets the counters of the call's artifact.
func setCounters(e *agent.LogEntry, c [5]int64) {
	e.ArtifactSuccessCount, e.ArtifactFailureCount = c[0], c[1]
	e.ArtifactIntrinsicFailureCount, e.ArtifactAdaptiveFailureCount, e.ArtifactExtrinsicFailureCount = c[2], c[3], c[4]
}
