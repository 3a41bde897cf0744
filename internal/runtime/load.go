package runtime

// Load counts the calls that are under way, nested ones included, and those that wait for their session's turn.
func (r *Runtime) Load() (running, waiting int) {
	waiting = r.sessions.waiting()
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(len(r.running)-waiting, 0), waiting
}

func (q *queues) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, s := range q.queues {
		n += len(s.waiting)
	}
	return n
}
