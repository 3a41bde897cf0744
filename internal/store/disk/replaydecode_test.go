package disk

import (
	"errors"
	"fmt"
	"testing"
)

func TestDecoderAppliesInOrder(t *testing.T) {
	t.Parallel()
	const entries = 2*decodeChunk + 100
	for _, failing := range []uint64{0, 1, decodeChunk + 7, entries} {
		stop := errors.New("stop")
		applied := uint64(0)
		d := decoder{apply: func(c *encoded) error {
			if bad := c.lsn%1000 == 0; bad != (c.err != nil) || !bad && c.entry.At != int64(c.lsn) || !bad &&
				c.entry.lsn != c.lsn {
				t.Fatalf("entry %d: got %+v, %v", c.lsn, c.entry, c.err)
			}
			if applied++; c.lsn != applied {
				t.Fatalf("got entry %d, want %d", c.lsn, applied)
			}
			if c.lsn == failing {
				return stop
			}
			return nil
		}}
		var err error
		for lsn := uint64(1); lsn <= entries && err == nil; lsn++ {
			text := fmt.Sprintf(`{"t":%d}`, lsn)
			if lsn%1000 == 0 {
				text = "{"
			}
			err = d.add(lsn, []byte(text))
		}
		if err == nil {
			err = d.flush()
		}
		if want := uint64(entries); failing == 0 && (err != nil || applied != want) || failing > 0 &&
			(!errors.Is(err, stop) || applied != failing) {
			t.Errorf("failing at %d: got %d applied, %v", failing, applied, err)
		}
	}
}
