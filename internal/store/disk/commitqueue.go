package disk

import (
	"context"
	"slices"
)

// commit is an entry that waits for its place in the journal.
type commit struct {
	entry *entry
	tail  []byte // of a call: its encoded entry behind the assigned figures
	alone bool   // must not share its batch
	late  bool   // is applied before it is synced
	// check sees the state just before the entry, in its turn. It may refuse, and complete the entry.
	check func() error

	err    error
	signal chan bool  // true: lead a batch; false: done
	room   [4]*commit // for the batch that it leads
}

// enter puts the commit into the queue and waits until it leads or its outcome is known.
func (s *sequencer) enter(ctx context.Context, c *commit) (lead bool, err error) {
	s.waiting.Lock()
	s.queue = append(s.queue, c)
	if !s.leading {
		s.leading = true
		s.waiting.Unlock()
		return true, nil
	}
	c.signal = make(chan bool, 1)
	s.waiting.Unlock()
	select {
	case lead = <-c.signal:
		return lead, c.err
	case <-ctx.Done():
	}
	if s.withdraw(c) {
		return false, context.Cause(ctx)
	}
	lead = <-c.signal
	return lead, c.err
}

// withdraw takes a commit out of the queue, unless it is in a batch already or was chosen to lead.
func (s *sequencer) withdraw(c *commit) bool {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	i := slices.Index(s.queue, c)
	if i < 0 || len(c.signal) > 0 {
		return false
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	return true
}

// handOver ends the leadership of c: the next one in the queue leads, and those whose batch it was learn their result.
func (s *sequencer) handOver(c *commit, batch []*commit) {
	s.waiting.Lock()
	if len(s.queue) > 0 {
		s.queue[0].signal <- true
	} else {
		s.leading = false
	}
	s.waiting.Unlock()
	for _, other := range batch {
		if other != c {
			other.signal <- false
		}
	}
}

// take removes the next batch from the queue: all that wait, or up to one that must be alone.
func (s *sequencer) take() []*commit {
	n := 1
	if !s.queue[0].alone {
		for n < len(s.queue) && !s.queue[n].alone {
			n++
		}
	}
	batch := append(s.queue[0].room[:0], s.queue[:n]...)
	s.queue = slices.Delete(s.queue, 0, n)
	return batch
}
