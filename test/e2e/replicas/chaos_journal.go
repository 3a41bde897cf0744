package replicas

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A Journal keeps the requests, answers and faults of a run, one JSON object a line, and what the daemons wrote, in a
// directory that outlives a run that failed. Its methods may be called concurrently; those of nil do nothing.
type Journal struct {
	mu   sync.Mutex
	file *os.File
}

// NewJournal has the directory removed after a run that passed, and named in the log of one that failed.
func NewJournal(t *testing.T) *Journal {
	t.Helper()
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, "exchanges.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = file.Close() // nothing is written any more
		if t.Failed() {
			t.Logf("requests, answers, faults and the daemons' logs are in %s", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return &Journal{file: file}
}

// Keep writes what the daemon wrote, under that name, when the test ends.
func (j *Journal) Keep(t *testing.T, name string, d *rig.Daemon) {
	t.Helper()
	t.Cleanup(func() {
		if err := os.WriteFile(filepath.Join(filepath.Dir(j.file.Name()), name+".log"), []byte(d.Output.String()),
			0o600); err != nil {
			t.Error(err)
		}
	})
}

func (j *Journal) write(entry map[string]any) {
	if j == nil {
		return
	}
	line, _ := json.Marshal(entry) // numbers and texts
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = j.file.Write(append(line, '\n')) // a full disk fails the test elsewhere
}

func (j *Journal) fault(name string) {
	j.write(map[string]any{"at": time.Now(), "fault": name})
}

func (j *Journal) exchange(began time.Time, address string, call *Call, body []byte, a answer, err error) {
	entry := map[string]any{"at": began, "ms": time.Since(began).Milliseconds(), "to": address, "session": call.Session,
		"key": call.Key, "body": string(body),
		"status": a.status, "replica": a.header.Get("Recurgent-Replica"), "retry_after": a.header.Get("Retry-After"),
		"answer": string(a.body)}
	if err != nil {
		entry["error"] = err.Error()
	}
	j.write(entry)
}
