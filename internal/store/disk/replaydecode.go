package disk

import (
	"sync"
	"sync/atomic"
)

// A decoder decodes entries, many at once, and has them applied in their order.
type decoder struct {
	r     *replay
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

const (
	decodeChunk   = 2048 // entries
	decodeWorkers = 8    // they wait for the disk, too
)

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
	for range min(decodeWorkers, len(d.chunk)) {
		work.Go(func() {
			for i := taken.Add(1); i <= int64(len(d.chunk)); i = taken.Add(1) {
				d.decode(&d.chunk[i-1])
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

// decode decodes one entry, and looks for the document of a session that it creates. Nothing is applied meanwhile.
func (d *decoder) decode(c *encoded) {
	if c.entry, c.err = decodeEntry(c.text); c.err != nil {
		return
	}
	c.entry.lsn = c.lsn
	n := d.r.s.namespaces[c.entry.name()]
	if c.entry.Create == nil || n == nil {
		return
	}
	data, err := n.files.ReadFile(sessionFile(c.entry.Session))
	c.entry.stored = err == nil && holdsSession(data, c.entry.Session)
}
