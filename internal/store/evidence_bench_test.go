package store

import (
	"fmt"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// BenchmarkEvidenceAdd measures what the evidence adds to a commit, under the store's lock.
func BenchmarkEvidenceAdd(b *testing.B) {
	for _, weak := range []bool{false, true} {
		b.Run(fmt.Sprint("weak=", weak), func(b *testing.B) {
			v := NewEvidence(nil)
			e := &agent.LogEntry{CallID: "call_1", Role: "calculator", Method: "add",
				Timestamp: "2026-11-22T10:00:00.000Z", OutcomeStatus: agent.StatusOK,
				ProgramSource: agent.SourcePersisted}
			if weak {
				e.WeakSuccessReasons = []string{"empty"}
			}
			b.ReportAllocs()
			for b.Loop() {
				v.Add(e)
			}
		})
	}
}
