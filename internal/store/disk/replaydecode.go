package disk

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A decoder decodes entries, many at once, and has them applied in their order.
type decoder struct {
	apply func(*encoded) error
	chunk []encoded
}

// encoded is an entry of the journal and, when it was decoded, what it says.
type encoded struct {
	lsn   uint64
	text  []byte
	entry *entry
	err   error // of decoding
}

const decodeChunk = 2048 // entries

// add decodes the entry and applies it, now or with a later one. The text stays unchanged until then.
func (d *decoder) add(lsn uint64, text []byte) error {
	d.chunk = append(d.chunk, encoded{lsn: lsn, text: text})
	if len(d.chunk) < decodeChunk {
		return nil
	}
	return d.flush()
}

// flush applies the entries that were added and not applied yet.
func (d *decoder) flush() error {
	var work sync.WaitGroup
	var taken atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(d.chunk)) {
		work.Go(func() {
			for i := taken.Add(1); i <= int64(len(d.chunk)); i = taken.Add(1) {
				d.chunk[i-1].decode()
			}
		})
	}
	work.Wait()
	chunk := d.chunk
	d.chunk = d.chunk[:0]
	for i := range chunk {
		if err := d.apply(&chunk[i]); err != nil {
			return err
		}
		chunk[i] = encoded{}
	}
	return nil
}

// decode decodes one entry. Nothing is applied meanwhile.
func (c *encoded) decode() {
	if c.entry, c.err = decodeEntry(c.text); c.err == nil {
		c.entry.lsn = c.lsn
	}
}
