package disk

import (
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
)

// fullLog and shortLog encode log entries. shortLog leaves out zero members.
var fullLog, shortLog = jsonenc.For[agent.LogEntry](), jsonenc.Sparse[agent.LogEntry]()

// appendLog appends the line of a log entry for calls.jsonl, without a newline.
func appendLog(b []byte, e *agent.LogEntry) ([]byte, error) {
	w := jsonenc.Writer{Buf: b, KeepHTML: true}
	fullLog.Append(&w, e)
	return w.Buf, w.Err
}

// encodeShortLog returns a log entry as it is written to the journal, without zero members.
func encodeShortLog(e *agent.LogEntry) ([]byte, error) {
	w := jsonenc.Writer{KeepHTML: true}
	shortLog.Append(&w, e)
	return w.Buf, w.Err
}

// setCounters sets the counters of the call's artifact in the log entry; see entry.Counters.
func setCounters(e *agent.LogEntry, c [5]int64) {
	e.ArtifactSuccessCount, e.ArtifactFailureCount = c[0], c[1]
	e.ArtifactIntrinsicFailureCount, e.ArtifactAdaptiveFailureCount, e.ArtifactExtrinsicFailureCount = c[2], c[3], c[4]
}
