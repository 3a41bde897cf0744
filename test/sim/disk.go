package sim

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
)

// A disk is the simulated file system of one daemon. It can lose its power after a number of further operations, and be
// full for a while.
type disk struct {
	*vfstest.FS

	mu    sync.Mutex
	dead  bool // the power is off: nothing is written any more; guarded by mu, as are the fields below
	left  int  // operations until the power goes; negative means no power cut
	syncs bool // left counts only syncs
	cut   func()
	at    int // operations that were recorded when the power went
	full  time.Time
	wrote int // operations recorded so far
}

// total is the size of the disk, and free is its free space while it is not full.
const (
	total = 1 << 40
	free  = 1 << 39
)

// newDisk returns a disk with the content of fs.
func newDisk(fs *vfstest.FS) *disk {
	d := &disk{FS: fs, left: -1, wrote: len(fs.Ops())}
	fs.Fail = d.fail
	return d
}

// fail is called before each operation.
func (d *disk) fail(_ int, op vfstest.Op) (error, bool) {
	d.mu.Lock()
	if counts := !d.syncs || strings.HasPrefix(op.Kind, "sync"); counts && d.left == 0 {
		d.left, d.dead, d.at = -1, true, d.wrote
		defer d.cut()
	} else if counts && d.left > 0 {
		d.left--
	}
	defer d.mu.Unlock()
	if d.dead {
		return vfstest.ErrInjected, false
	}
	if time.Now().Before(d.full) {
		switch op.Kind {
		case "write":
			if len(op.Data) > 1 {
				d.wrote++ // its first half
			}
			return syscall.ENOSPC, len(op.Data) > 1
		case "create", "mkdir":
			return syscall.ENOSPC, false
		}
	}
	d.wrote++
	return nil, false
}

// Free implements vfs.FS.
func (d *disk) Free() (left, all uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Now().Before(d.full) {
		return 0, total, nil
	}
	return free, total, nil
}

// fill makes the disk full until the given time.
func (d *disk) fill(until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = until
}

// isFull reports whether the disk is full now.
func (d *disk) isFull() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.full)
}

// powerOff cuts the power after n further operations, or, if syncs is set, after n further syncs and before the next
// one. It calls cut at that moment, before anything else happens. cut must not block.
func (d *disk) powerOff(n int, syncs bool, cut func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.syncs, d.cut = n, syncs, cut
}

// powerOffNow cuts the power, unless it is off.
func (d *disk) powerOffNow(cut func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.dead {
		d.left, d.dead, d.at = -1, true, d.wrote
		cut()
	}
}

// compact forgets the operations so far that are durable.
func (d *disk) compact() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Compact()
	d.wrote = len(d.Ops())
}

// after returns the disk in the state that a power cut left.
func (d *disk) after(random *rand.Rand) *disk {
	d.mu.Lock()
	at := d.at
	d.mu.Unlock()
	mode := []vfstest.Mode{vfstest.LoseAll, vfstest.KeepAll, vfstest.AnyOf, vfstest.AnyOf}[random.IntN(4)]
	return newDisk(d.Crash(at, mode, random))
}

// journal describes all operations, one per line.
func (d *disk) journal() (lines []string) {
	for _, op := range d.Ops() {
		lines = append(lines, fmt.Sprintf("disk %s %x", op, sha256.Sum256(op.Data)))
	}
	return lines
}
