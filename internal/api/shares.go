package api

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/fair"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// maxDrains is how many bodies of refused requests one owner may have drained at once. A third more is reserved for
// others.
const maxDrains = 16

// shares are the resources that all requests share, divided among owners, and the limits of single principals. Owners
// are those of the token, not of the namespace that the request acts in.
type shares struct {
	calls   *fair.Share[agent.Owner] // calls running or waiting
	streams *fair.Share[agent.Owner] // open streams
	uploads *fair.Share[agent.Owner] // uploads in progress
	bodies  *fair.Share[agent.Owner] // bytes of request bodies
	drains  *fair.Share[agent.Owner] // bodies of refused requests being drained

	turns fair.Lines[agent.Owner]  // of principals with a limit of concurrent calls
	rates *fair.Rates[agent.Owner] // of principals with a rate limit

	throttled map[string]prometheus.Counter // by reason
	waiting   map[string]prometheus.Gauge   // by cause
}

// Reasons for which requests are refused: the owner, or all owners together, hold too much. They are labels of metrics.
const (
	reasonRate    = "rate"
	reasonCalls   = "calls"
	reasonStreams = "streams"
	reasonUploads = "uploads"
	reasonBodies  = "bodies"
	reasonReplies = "replies"
)

// newShares returns shares within the limits of o, with the metrics of each reason and cause.
func newShares(o Options) *shares {
	s := &shares{calls: fair.NewShare[agent.Owner](int64(o.MaxCalls)),
		streams: fair.NewShare[agent.Owner](int64(o.MaxStreams)), uploads: fair.NewShare[agent.Owner](maxUploads),
		bodies: fair.NewShare[agent.Owner](o.MaxBodies), drains: fair.NewShare[agent.Owner](maxDrains),
		rates: fair.NewRates[agent.Owner](o.Now), throttled: map[string]prometheus.Counter{},
		waiting: map[string]prometheus.Gauge{}}
	for _, reason := range telemetry.ThrottleReasons() {
		s.throttled[reason] = o.Metrics.Throttled(reason)
	}
	for _, cause := range telemetry.WaitCauses() {
		s.waiting[cause] = o.Metrics.Waiting(cause)
	}
	return s
}

// Causes for which requests wait. They are labels of metrics.
const (
	causeConcurrency = "concurrency"
	causeReplies     = "replies"
)

// full counts a refusal and returns its problem.
func (s *shares) full(reason string) *Problem {
	s.throttled[reason].Inc()
	switch reason {
	case reasonCalls:
		return fault(codeQueueFull, "", "")
	case reasonStreams:
		return fault(codeStreamsFull, "", "")
	case reasonReplies:
		return fault(codeRepliesFull, "", "")
	}
	return fault(codeBodiesFull, "", "")
}

// admitFairly applies the principal's rate limit and its owner's limits of calls and streams. It runs before any of the
// body is read. What it takes is in w.held.
func (s *server) admitFairly(w *reply, calls, streams bool) error {
	// the token's own namespace, whichever the request acts in
	w.held.owner = agent.Owner{Namespace: w.who.Namespace, Name: w.owner}
	if err := s.throttle(w); err != nil {
		return err
	}
	if calls {
		if !s.shares.calls.Try(w.held.owner, 1) {
			return s.shares.full(reasonCalls)
		}
		w.held.call = true
	}
	if streams {
		return w.beginStream()
	}
	return nil
}

// beginStream counts the request as a stream until w.held is released.
func (w *reply) beginStream() error {
	if !w.held.shares.streams.Try(w.held.owner, 1) {
		return w.held.shares.full(reasonStreams)
	}
	w.held.stream = true
	return nil
}

// throttle applies the principal's rate limit, if it has one. The header fields are those of
// draft-ietf-httpapi-ratelimit-headers-10. When it refuses, their reset and Retry-After name the same moment.
func (s *server) throttle(w *reply) error {
	if w.who.Rate <= 0 {
		return nil
	}
	q := s.shares.rates.Take(w.held.owner, w.who.Rate)
	reset := wholeSeconds(q.Reset)
	h := w.Header()
	h["Ratelimit-Policy"] = []string{`"requests";q=` + strconv.Itoa(q.Burst) + ";w=" + wholeSeconds(q.Window)}
	h["Ratelimit"] = []string{`"requests";r=` + strconv.Itoa(q.Left) + ";t=" + reset}
	if q.OK {
		return nil
	}
	s.shares.throttled[reasonRate].Inc()
	p := fault(codeRateLimited, "the token may send "+strconv.FormatFloat(w.who.Rate, 'f', -1, 64)+" requests a second",
		"")
	p.retry = reset
	return p
}

// wholeSeconds rounds up, so that a client which waits that long is not too early.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64(math.Ceil(d.Seconds())), 10)
}

// drainTurn takes a place for draining a body. It does not wait: ok is false if there is none.
func (s *shares) drainTurn(owner agent.Owner) (leave func(), ok bool) {
	if !s.drains.Try(owner, 1) {
		return nil, false
	}
	return func() { s.drains.Leave(owner, 1) }, true
}

// replies limits the bytes of large replies held in memory while clients read them slowly or not at all. limit bytes
// per owner are written at once, and as many wait for their turn.
type replies struct {
	limit   int64
	turn    time.Duration // the longest wait for a turn
	writing *fair.Share[agent.Owner]
	waiting *fair.Share[agent.Owner]
}

func newReplies(limit int64, turn time.Duration) *replies {
	return &replies{limit: limit, turn: turn, writing: fair.NewShare[agent.Owner](limit),
		waiting: fair.NewShare[agent.Owner](limit)}
}

// enter waits until a reply of n bytes may be written; the caller must call done afterwards. ok is false if as many
// bytes of the owner are waiting already, or if there is no space within turn.
func (q *replies) enter(owner agent.Owner, n int64) (done func(), ok bool) {
	if n < largeReply {
		return func() {}, true
	}
	// a reply over the limit still gets its turn
	n = min(n, q.limit)
	done = func() { q.writing.Leave(owner, n) }
	if q.writing.Try(owner, n) {
		return done, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), q.turn)
	defer cancel()
	if !q.waiting.Try(owner, n) {
		return nil, false
	}
	defer q.waiting.Leave(owner, n)
	if q.writing.Enter(ctx, owner, n) != nil {
		return nil, false
	}
	return done, true
}

// enterReplies is enter for the request's owner. It returns a problem if there is no space.
func (s *server) enterReplies(w *reply, n int64) (done func(), err error) {
	s.shares.waiting[causeReplies].Inc()
	done, ok := s.replies.enter(w.held.owner, n)
	s.shares.waiting[causeReplies].Dec()
	if !ok {
		return nil, s.shares.full(reasonReplies)
	}
	return done, nil
}
