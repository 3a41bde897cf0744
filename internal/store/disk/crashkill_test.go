package disk

import (
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// TestPowerCutAfterKill kills a store at each operation of a checkpoint, opens it again, and cuts the power after the
// next checkpoint. What the first process wrote without a sync is on disk before the journal is cut.
func TestPowerCutAfterKill(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Options, *vfstest.FS){
		"syncs all at once": func(*Options, *vfstest.FS) {},
		"cannot":            func(o *Options, f *vfstest.FS) { o.FS = noSyncAll{f} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := 1
			for killAndCut(t, at, change) {
				at++
			}
			if at < 20 {
				t.Errorf("the checkpoint has %d operations", at)
			}
		})
	}
}

// killAndCut kills the store at that operation of the checkpoint. It returns false if there are fewer operations.
func killAndCut(t *testing.T, at int, change func(*Options, *vfstest.FS)) bool {
	t.Helper()
	f := vfstest.New()
	o := simOptions(t, f, func() time.Time { return simStart })
	change(&o, f)
	s, err := openStore(t, "sim", o)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"sess_1", "sess_2"} {
		if err := s.CreateSession(t.Context(), agent.Session{ID: id, CreatedAt: simStart}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CommitCall(t.Context(), storetest.NewCommit("sess_1", "call_1", simStart)); err != nil {
		t.Fatal(err)
	}
	want, killed := both(t, s), false
	f.Fail = func(n int, _ vfstest.Op) (error, bool) {
		if n < at {
			return nil, false
		}
		killed = true
		return vfstest.ErrInjected, false
	}
	_ = s.checkpoint()
	s.kill()
	f.Fail = nil
	if !killed {
		return false
	}
	if s, err = openStore(t, "sim", o); err != nil {
		t.Fatal(err)
	}
	if err := s.checkpoint(); err != nil {
		t.Fatal(err)
	}
	s.kill()
	if got, _, err := dumpOf(t, f.Crash(len(f.Ops()), vfstest.LoseAll, nil)); err != nil || got != want {
		t.Errorf("killed at operation %d: %v, %s", at, err, storetest.Difference(got, want))
	}
	return true
}
