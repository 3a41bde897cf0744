package disk

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A decoder decodes entries in parallel, in chunks, and applies them in order.
type decoder struct {
	apply func(*encoded) error
	chunk []encoded
}

// encoded is an entry of the journal, with the result of decoding it.
type encoded struct {
	lsn   uint64
	text  []byte
	entry *entry
	err   error // of decoding
}

const decodeChunk = 2048 // entries decoded together

// add adds an entry. It is applied now or by a later add or flush; text must not change until then.
func (d *decoder) add(lsn uint64, text []byte) error {
	d.chunk = append(d.chunk, encoded{lsn: lsn, text: text})
	if len(d.chunk) < decodeChunk {
		return nil
	}
	return d.flush()
}

// flush applies the entries that were added but not applied.
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

// decode decodes one entry. It may run concurrently for several entries, because nothing is applied meanwhile.
func (c *encoded) decode() {
	if c.entry, c.err = decodeEntry(c.text); c.err == nil {
		c.entry.lsn = c.lsn
	}
}
