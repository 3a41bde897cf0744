package disk

import (
	"reflect"

	"github.com/recurgentd/recurgentd/internal/agent"
)

var logEntryCode = codeOf(reflect.TypeFor[agent.LogEntry]())

// appendLog appends a log entry: full, as calls.jsonl has it, or short, as the journal does. Every call pays for it.
func appendLog(b []byte, e *agent.LogEntry, full bool) ([]byte, error) {
	w := jsonWriter{buf: b}
	logEntryCode.append(&w, reflect.ValueOf(e).Elem(), full)
	return w.buf, w.err
}
