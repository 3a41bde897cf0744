package cli

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// stderr holds the text written since it was last taken.
type stderr struct {
	mu   sync.Mutex
	text []byte
}

func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, p...)
	return len(p), nil
}

func (s *stderr) taken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := string(s.text)
	s.text = nil
	return text
}

// A stage that lasts 10 s is reported once with what the call waits for. A short or ended one is not.
func TestWhatACallWaitsForIsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out stderr
		s := newStages(Shell{Stderr: &out, Env: noEnvironment}, client.CallRequest{Role: "tax", Method: "net"})
		said := func(after time.Duration, want string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := out.taken(); got != want {
				t.Errorf("after %s: got %q, want %q", after, got, want)
			}
		}
		said(9*time.Second, "")
		said(2*time.Second, "tax.net: waiting: the daemon has not started the call\n")
		s.Started("call_1")
		said(9*time.Second, "tax.net: started as call_1\n")
		s.Event(client.Event{Type: progress.Queued, Data: []byte(`{"ahead": 2}`)})
		said(11*time.Second, "tax.net: queued behind 2 calls\ntax.net: waiting: the calls of a session run in order, and earlier ones have not ended\n")
		s.Event(client.Event{Type: progress.Forging, Data: []byte(`{"kind": "forge", "trigger": "initial_forge"}`)})
		said(time.Minute, "tax.net: forging (initial_forge)\ntax.net: waiting: the model has not sent the program\n")
		s.Event(client.Event{Type: progress.Running, Data: []byte(`{"trigger": "initial_forge"}`)})
		s.stop()
		said(time.Minute, "tax.net: running a new program (initial_forge)\n")
	})
}
