package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// live takes the steps. Each client and person takes its own steps in order, concurrently with the others.
func (w *World) live(steps []Step) {
	everyone := append([]*client{w.person}, w.clients...)
	var living sync.WaitGroup
	for _, c := range everyone {
		living.Go(func() {
			for s := range c.steps {
				if !w.failed() {
					w.take(c, s)
				}
				w.busy.Done()
			}
		})
	}
	for _, s := range steps {
		time.Sleep(s.After)
		if w.failed() {
			break
		}
		w.line("step %s", s)
		if w.strike(s) {
			continue
		}
		w.give(s)
	}
	if !w.failed() {
		w.quiet(true)
	}
	for _, c := range everyone {
		close(c.steps)
	}
	living.Wait()
}

// byClient holds the kinds of steps that clients take. People take the others, except for faults.
var byClient = map[Kind]bool{Open: true, Call: true, Keyed: true, HangUp: true, Patch: true, Drop: true, Upload: true,
	Discard: true}

// strike takes the step if it is a fault or a check, and reports whether it is.
func (w *World) strike(s Step) bool {
	until := time.Now().Add(time.Duration(1+s.N[0]) * 2 * time.Second)
	switch s.Kind {
	case Cut:
		if s.N[1]%2 == 0 {
			w.cutPower(s.N[0]%80, false, func() { w.hurry(s) })
		} else {
			w.cutPower(s.N[0]%20, true, func() { w.hurry(s) })
		}
		w.quiet(true)
	case Restart:
		w.restart()
		w.quiet(true)
	case Full:
		w.disk.fill(until)
	case Away:
		w.set(&w.away, until)
	case Dying:
		w.set(&w.dying, until)
	case Slow:
		w.set(&w.slow, until)
	case Night:
		time.Sleep(time.Duration(1+s.N[0]%12) * time.Hour)
	case Check:
		w.quiet(false)
		return true
	default:
		return false
	}
	w.count(func(t *Tally) { t.Faults++ })
	return true
}

// hurry has everyone do something within a few milliseconds.
func (w *World) hurry(s Step) {
	for i, kind := range []Kind{Call, Policy, Keyed, Patch, Call, Expect, Upload, Open, Call, Make, Patch, Discard} {
		time.Sleep(time.Duration(1+s.N[2]+i) * 3 * time.Microsecond)
		w.give(Step{Kind: kind, Who: s.Who + i, N: [3]int{s.N[0] + i, s.N[1] + 7*i, s.N[2] + 11*i}})
	}
}

// give gives a step to the client or the person that takes it.
func (w *World) give(s Step) {
	who := w.person
	if byClient[s.Kind] {
		who = w.clients[s.Who%len(w.clients)]
	}
	w.busy.Add(1)
	who.steps <- s
}

// take takes a step of a client or a person.
func (w *World) take(c *client, s Step) {
	switch s.Kind {
	case Open:
		w.open(c)
	case Call, Keyed, HangUp:
		w.call(c, s)
	case Patch:
		w.patch(c, s)
	case Drop:
		w.drop(c, s)
	case Upload:
		w.upload(c, s)
	case Discard:
		w.discard(c, s)
	case Judge:
		w.judge(c)
	case Expect:
		w.expect(c, s)
	case Put:
		w.put(c, s)
	case Renew:
		w.renew(c)
	case Policy:
		w.change(c, s)
	case Undo:
		w.undo(c)
	case Make, Erase:
		w.name(c, s)
	}
}

// odd fails the life because of a reply that no fault explains. Replies in doubt are explained.
func (w *World) odd(what string, r reply) {
	if !r.doubtful() {
		w.fail("%s was answered with %d %s", what, r.status, r.body)
	}
}

// audited notes the entry of the audit trail that a reply names.
func (c *client) audited(r reply) string {
	id := r.header.Get("Recurgent-Audit-Id")
	if id != "" {
		c.space.mu.Lock()
		c.space.audits[id] = true
		c.space.mu.Unlock()
	}
	return id
}

// audit is audited for an operation that must have an entry.
func (w *World) audit(c *client, what string, r reply) {
	if c.audited(r) == "" {
		w.fail("%s was acknowledged, and names no entry of the audit trail", what)
	}
}

func (w *World) open(c *client) {
	r := w.send(c, request{method: "POST", path: "/v1/sessions", body: map[string]any{"role": role}})
	if r.status != http.StatusCreated {
		w.odd("a new session", r)
		return
	}
	var made struct{ ID string }
	if err := r.into(&made); err != nil {
		w.fail("a session: %v", err)
		return
	}
	c.sessions = append(c.sessions, &session{id: made.ID, there: fact{want: "there"}, patched: fact{want: "null"},
		recalls: map[string]int{}})
}

// session returns one of the client's sessions of which nothing is in doubt, or nil.
func (w *World) session(c *client, n int) *session {
	if len(c.sessions) == 0 {
		if w.open(c); len(c.sessions) == 0 {
			return nil
		}
	}
	s := c.sessions[n%len(c.sessions)]
	if len(s.doubts) == 0 && s.there.sure() {
		return s
	}
	if !w.ready(c) {
		return nil
	}
	w.ended(c, s)
	w.examine(c, s, false)
	if s.there.want == gone {
		return nil
	}
	return s
}

// ready waits until the daemon is ready, and reports whether it is. It must be within two hours.
func (w *World) ready(c *client) bool {
	for range 720 {
		if w.failed() {
			return false
		}
		if r := w.send(c, request{method: "GET", path: "/readyz"}); r.status == http.StatusOK {
			return true
		}
		time.Sleep(10 * time.Second)
	}
	w.fail("the daemon was not ready for two hours")
	return false
}

// drawCall returns a call by a step's numbers.
func drawCall(s Step) called {
	a, b := s.N[2]%5, s.N[2]/5%5
	switch n := s.N[1] % 100; {
	case n < 40:
		return called{method: add, args: []any{a, b}}
	case n < 60:
		return called{method: count, args: []any{1 + s.N[2]}}
	case n < 75:
		return called{method: note, args: []any{fmt.Sprint("note ", s.N[2])}}
	case n < 87:
		return called{method: relay, args: []any{a, b}}
	case n < 95:
		return called{method: recall, args: []any{}}
	default:
		return called{method: refuse, args: []any{}}
	}
}

// call makes a call, as the step says: with a key, which is sent again, or for a while.
func (w *World) call(c *client, step Step) {
	s := w.session(c, step.N[0])
	if s == nil {
		return
	}
	x := drawCall(step)
	q := request{method: "POST", path: "/v1/sessions/" + s.id + "/calls",
		body: map[string]any{"method": x.method, "args": x.args}}
	switch step.Kind {
	case Keyed:
		c.keys++
		q.key = fmt.Sprint("key-", c.keys)
	case HangUp:
		q.leave = time.Duration(1+step.N[2]) * 4 * time.Millisecond
	}
	w.count(func(t *Tally) { t.Calls++ })
	first := w.send(c, q)
	w.answer(c, s, x, first)
	switch {
	case step.Kind == HangUp && first.status == 0:
		time.Sleep(time.Minute)
	case step.Kind == Keyed:
		w.again(c, s, x, q, first)
	}
}

// answer takes the reply to a call.
func (w *World) answer(c *client, s *session, x called, r reply) {
	if r.status != http.StatusOK {
		if w.odd("a call of "+x.method, r); r.doubtful() {
			s.doubts = append(s.doubts, x)
		}
		return
	}
	var got struct {
		ID      string `json:"call_id"`
		Program struct{ Generation string }
		Outcome struct {
			OK    bool
			Value json.RawMessage
			Type  string `json:"error_type"`
		}
	}
	if err := r.into(&got); err != nil {
		w.fail("a reply: %v", err)
		return
	}
	x.id, x.ok = got.ID, got.Outcome.OK
	s.answered(x)
	if !x.ok {
		w.explain(x, got.Outcome.Type)
		return
	}
	v := 0
	_ = json.Unmarshal(got.Outcome.Value, &v) // compared below
	w.weigh(c, s, x, answered{v, got.Program.Generation})
}

// answered is the value of a call, and the generation whose program returned it.
type answered struct {
	value      int
	generation string
}

// explained are the errors that faults and programs explain.
var explained = map[string]bool{"provider": true, "runner_crash": true, "timeout": true, "canceled": true,
	"invalid_code": true, "refused": true, "budget_exceeded": true, "backoff": true, "example_failed": true}

// explain fails the life because of an error that nothing explains.
func (w *World) explain(x called, errorType string) {
	if x.method == refuse != (errorType == "refused") && !explained[errorType] {
		w.fail("the call %s of %s ended in %s", x.id, x.method, errorType)
	}
}

// weigh compares the value of a call with what it must be.
func (w *World) weigh(c *client, s *session, x called, got answered) {
	want := got.value
	switch x.method {
	case count:
		want = s.memory.count
	case note:
		want = len(s.memory.notes)
	case recall:
		s.recalls[x.id] = got.value
	case add, relay:
		want = x.args[0].(int) + x.args[1].(int)
		if got.value == want+1 && (x.method == relay || !c.space.proven(x.args, got.generation)) {
			want++ // of a liar that nothing refutes
		}
	}
	if got.value != want {
		w.fail("the call %s of %s %v returned %d by %s, want %d", x.id, x.method, x.args, got.value,
			got.generation, want)
	}
	if x.method == add {
		c.space.mu.Lock()
		c.space.sum = &sum{x.id, s.id, x.args, got.value}
		c.space.mu.Unlock()
	}
}

// proven reports whether a program of that generation has been proven to be right for the arguments.
func (s *space) proven(args []any, generation string) bool {
	n := 0
	if _, err := fmt.Sscanf(generation, "gen-%d", &n); err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.examples {
		if !s.unsure && n > e.from && fmt.Sprint(e.args) == fmt.Sprint(args) {
			return true
		}
	}
	return false
}

// again sends a keyed request again. It is the same call, and the same reply if the first one arrived.
func (w *World) again(c *client, s *session, x called, q request, first reply) {
	if first.status == 0 || first.status >= 500 {
		if !w.ready(c) {
			return
		}
		if w.examine(c, s, false); s.there.want == gone || len(s.doubts) > 0 {
			return
		}
	}
	before := len(s.calls)
	second := w.send(c, q)
	if second.status != http.StatusOK {
		w.answer(c, s, x, second)
		return
	}
	if first.status == http.StatusOK {
		if string(first.body) != string(second.body) || second.header.Get("Idempotent-Replayed") != "true" {
			w.fail("the key %s was answered with %s, and then with %s", q.key, first.body, second.body)
		}
		return
	}
	var got struct {
		ID string `json:"call_id"`
	}
	if err := second.into(&got); err != nil {
		w.fail("a reply: %v", err)
		return
	}
	for _, known := range s.calls[:before] {
		if known.id == got.ID {
			return
		}
	}
	w.answer(c, s, x, second)
}

func (w *World) patch(c *client, step Step) {
	s := w.session(c, step.N[0])
	if s == nil {
		return
	}
	v := fmt.Sprint(step.N[1])
	r := w.send(c, request{method: "PATCH", path: "/v1/sessions/" + s.id + "/context",
		body: map[string]any{"patched": step.N[1]}})
	switch {
	case r.status == http.StatusOK:
		s.patched.set(v)
		c.audited(r)
	case r.doubtful():
		s.patched.doubt(v)
	default:
		w.odd("a patch of a context", r)
	}
}

func (w *World) drop(c *client, step Step) {
	s := w.session(c, step.N[0])
	if s == nil || len(c.sessions) < 2 {
		return
	}
	w.examine(c, s, false) // its calls count
	c.space.without(s.id)
	r := w.send(c, request{method: "DELETE", path: "/v1/sessions/" + s.id})
	switch {
	case r.status == http.StatusNoContent:
		s.there.set(gone)
		w.audit(c, "the deletion of "+s.id, r)
	case r.doubtful():
		s.there.doubt(gone)
	default:
		w.odd("the deletion of a session", r)
	}
	c.forget()
}

// forget drops the sessions that are gone.
func (c *client) forget() {
	var left []*session
	for _, s := range c.sessions {
		if s.there.want != gone {
			left = append(left, s)
		}
	}
	c.sessions = left
}

func (w *World) upload(c *client, step Step) {
	text := fmt.Sprint("file ", step.N)
	r := w.send(c, request{method: "POST", path: "/v1/files?name=a.txt", body: text})
	if r.status != http.StatusCreated {
		w.odd("an upload", r)
		return
	}
	var made struct {
		ID      string
		Expires time.Time `json:"expires_at"`
	}
	if err := r.into(&made); err != nil {
		w.fail("a file: %v", err)
		return
	}
	c.files = append(c.files, &kept{id: made.ID, text: text, there: fact{want: text}, expires: made.Expires})
}

func (w *World) discard(c *client, step Step) {
	if len(c.files) == 0 {
		return
	}
	f := c.files[step.N[0]%len(c.files)]
	r := w.send(c, request{method: "DELETE", path: "/v1/files/" + f.id})
	switch {
	case r.status == http.StatusNoContent:
		f.there.set(gone)
		w.audit(c, "the deletion of "+f.id, r)
	case r.status == http.StatusNotFound && (f.there.want == gone || !f.there.sure() || f.expired()):
	case r.doubtful():
		f.there.doubt(gone)
	default:
		w.odd("the deletion of a file", r)
	}
}
