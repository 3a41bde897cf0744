package disk

import (
	"context"
	"slices"
)

// commit is an entry that waits for its place in the journal.
type commit struct {
	entry *entry
	tail  []byte // encoded entry of a call without the assigned figures; nil for other entries
	alone bool   // the batch holds this entry only
	late  bool   // applied before it is synced
	// check runs in the entry's turn and sees the state just before it. It may refuse the entry or complete it. It may
	// be nil.
	check func() error

	err    error
	signal chan bool  // true means that this commit leads the next batch, false that its outcome is known
	room   [4]*commit // for the batch that it leads, to save an allocation
}

// enter queues the commit and waits until it leads a batch or its outcome is known.
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

// withdraw removes a commit from the queue. It returns false if the commit is in a batch already or was chosen to lead.
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

// handOver ends the leadership of c: the next commit in the queue leads, and the others of the batch learn their
// results.
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

// take removes the next batch from the queue: the first commit and those after it, up to one that must be alone. The
// caller holds waiting.
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
