package disk

import (
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
)

// A round skips a namespace only if it would write nothing of it, and skips it after a round.
func TestWritten(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.FS, o.Flush = vfstest.New(), -1
	s := open(t, "", o)
	skipped := 0
	for _, step := range scriptOfTwo(o.Now) {
		if step.files != nil {
			if err := step.files(s.Store); err != nil {
				t.Fatal(err)
			}
		} else if err := step.to(t, s.Store); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		for _, name := range []agent.Namespace{agent.DefaultNamespace, other} {
			n := s.namespace(name)
			if n == nil || !n.exists.Load() {
				continue
			}
			ops := len(o.FS.(*vfstest.FS).Ops())
			written, err := n.writeAll()
			if err != nil {
				t.Fatal(err)
			}
			if wrote := len(o.FS.(*vfstest.FS).Ops()) - ops; written && wrote > 0 {
				t.Errorf("after %s a round skips %s, of which it would write %d operations", step.name, name, wrote)
			}
			if again, err := n.writeAll(); !again || err != nil {
				t.Errorf("after %s a round wrote %s, and the next one does not skip it: %v", step.name, name, err)
			}
			if written {
				skipped++
			}
		}
	}
	if skipped < 10 {
		t.Errorf("a round skipped %d namespaces", skipped)
	}
}

// writeAll reports whether a round skips the namespace, and then writes it as a round does that skips none.
func (n *namespace) writeAll() (written bool, err error) {
	n.flusher.mu.Lock()
	defer n.flusher.mu.Unlock()
	n.shared.mu.Lock()
	written = n.written()
	w := n.gather(false)
	n.shared.mu.Unlock()
	return written, w.write(&n.flusher.text, false, false)
}
