package main

import (
	"container/heap"
	"math/rand/v2"
	"slices"
)

// Parameters are the figures of a machine. Times are means in milliseconds; the simulation draws times around them.
type Parameters struct {
	Run, Forward      float64 // processor time of a replica: per warm call, and of both replicas per forwarded call
	Begin, Each, Wait float64 // per transaction; per call in it; of waiting
	Cores             int     // processors of a replica
	DatabaseCores     int     // processors of a database
	Clients           int     // per replica
}

// A Case is one arrangement of replicas and databases.
type Case struct {
	Replicas, Databases int
	Forwarded           float64 // share of calls that arrive at a replica other than the session's owner
	OneTool             bool    // all calls of a database count on one tool, so transactions wait for its row
}

// A Result is the outcome of a case.
type Result struct {
	Rate   float64 // calls per second
	Commit float64 // median time between the end of a program and the end of its commit, ms
	Busy   float64 // share of the databases' processor time
}

// simulated is the length of each case in simulated milliseconds. The first fifth is not counted.
const simulated = 2_000.0

// An event is a function to call at a simulated time. events is a heap of them, earliest first.
type event struct {
	at float64
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// A simulation is a clock and the pending events.
type simulation struct {
	now    float64
	next   events
	random *rand.Rand
}

func (s *simulation) after(d float64, do func()) { heap.Push(&s.next, event{s.now + d, do}) }

// around draws a time with that mean: a fixed half plus an exponentially distributed part.
func (s *simulation) around(mean float64) float64 { return mean/2 + s.random.ExpFloat64()*mean/2 }

// A pool is a number of processors or locks that serve in order of arrival.
type pool struct {
	free    int
	waiting []func()
	// busy is the total time for which use has taken one of the pool.
	busy float64
}

// take calls do as soon as one of the pool is free.
func (p *pool) take(do func()) {
	if p.free > 0 {
		p.free--
		do()
		return
	}
	p.waiting = append(p.waiting, do)
}

// give returns one to the pool, or passes it to the first that waits.
func (p *pool) give() {
	if len(p.waiting) == 0 {
		p.free++
		return
	}
	first := p.waiting[0]
	p.waiting = p.waiting[1:]
	first()
}

// use takes one of the pool for time d, and then calls then.
func (s *simulation) use(p *pool, d float64, then func()) {
	p.take(func() {
		s.after(d, func() {
			p.busy += d
			p.give()
			then()
		})
	})
}

// A committer collects the calls of one replica for one database.
type committer struct {
	waiting []func() // called for each call once it is committed
	running bool
}

// A world is the state of one simulated case.
type world struct {
	*simulation
	p         Parameters
	c         Case
	replicas  []*pool
	databases []*pool
	rows      []*pool        // locks of the one tool's row, by database
	committer [][]*committer // by replica and database
	// done and waits count only calls committed after the first fifth.
	done  int
	waits []float64
}

// simulate runs a case. The result is deterministic.
func simulate(p Parameters, c Case) Result {
	w := &world{simulation: &simulation{random: rand.New(rand.NewPCG(1, 2))}, p: p, c: c}
	for range c.Databases {
		w.databases = append(w.databases, &pool{free: p.DatabaseCores})
		w.rows = append(w.rows, &pool{free: 1})
	}
	for r := range c.Replicas {
		w.replicas = append(w.replicas, &pool{free: p.Cores})
		w.committer = append(w.committer, make([]*committer, c.Databases))
		for d := range c.Databases {
			w.committer[r][d] = &committer{}
		}
	}
	for r := range c.Replicas {
		for range p.Clients {
			w.call(r, w.random.IntN(c.Databases))
		}
	}
	for len(w.next) > 0 {
		e := heap.Pop(&w.next).(event)
		if w.now = e.at; w.now > simulated {
			break
		}
		e.do()
	}
	busy := 0.0
	for _, d := range w.databases {
		busy += d.busy
	}
	slices.Sort(w.waits)
	return Result{Rate: float64(w.done) / (0.8 * simulated) * 1000, Commit: w.waits[len(w.waits)/2],
		Busy: busy / (simulated * float64(c.Databases*p.DatabaseCores))}
}

// call simulates one call of a client whose namespace is in that database. The next call follows when it is committed.
func (w *world) call(replica, database int) {
	run := func() {
		w.use(w.replicas[replica], w.around(w.p.Run), func() {
			began := w.now
			w.commit(replica, database, func() {
				if w.now > simulated/5 {
					w.done++
					w.waits = append(w.waits, w.now-began)
				}
				w.call(replica, database)
			})
		})
	}
	if w.random.Float64() >= w.c.Forwarded {
		run()
		return
	}
	other := w.random.IntN(w.c.Replicas)
	w.use(w.replicas[other], w.around(w.p.Forward/2),
		func() { w.use(w.replicas[replica], w.around(w.p.Forward/2), run) })
}

// commit adds the call to the replica's next transaction on the database.
func (w *world) commit(replica, database int, then func()) {
	c := w.committer[replica][database]
	c.waiting = append(c.waiting, then)
	if !c.running {
		w.transact(c, database)
	}
}

// transact commits the waiting calls in one transaction, and repeats until none is waiting.
func (w *world) transact(c *committer, database int) {
	calls := c.waiting
	c.waiting, c.running = nil, len(calls) > 0
	if !c.running {
		return
	}
	finished := func() {
		for _, then := range calls {
			then()
		}
		w.transact(c, database)
	}
	work := func(then func()) {
		w.after(w.around(w.p.Wait), func() {
			w.use(w.databases[database], w.around(w.p.Begin+w.p.Each*float64(len(calls))), then)
		})
	}
	if !w.c.OneTool {
		work(finished)
		return
	}
	row := w.rows[database]
	row.take(func() { work(func() { row.give(); finished() }) })
}
