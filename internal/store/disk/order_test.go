package disk

import (
	"fmt"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
)

// The same changes lead to the same operations on the disk, in the same order, so that a power cut after one of them can
// be repeated.
func TestSameOperations(t *testing.T) {
	t.Parallel()
	script := func(now func() time.Time) []step {
		w := &scripter{in: agent.DefaultNamespace, now: now}
		for i := range 8 {
			session := fmt.Sprint("sess_", i)
			w.create(session)
			w.call(session, fmt.Sprint("m", i), fmt.Sprint("gen-", i+1))
			w.call(session, fmt.Sprint("m", 7-i), "")
		}
		w.sync()
		for i := range 8 {
			w.call("sess_3", fmt.Sprint("m", i), fmt.Sprint("gen-", i+10))
		}
		w.checkpoint()
		w.remove("sess_3")
		w.remove("sess_4")
		w.sync()
		return w.steps
	}
	var want []vfstest.Op
	for range 4 {
		f := vfstest.New()
		play{script, both}.run(t, f)
		got := f.Ops()
		if want == nil {
			want = got
		}
		for i := range min(len(got), len(want)) {
			if got[i].String() != want[i].String() {
				t.Fatalf("operation %d is %s, and was %s the first time", i, got[i], want[i])
			}
		}
	}
}
