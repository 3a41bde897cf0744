package sim

import (
	"fmt"
	"net/http"
	"slices"
)

// A field of the policy that the person changes, and its default.
type field struct{ name, value string }

var fields = []field{{"drift_after", "2"}, {"known_tools_prompt_limit", "12"}, {"history_preview_limit", "3"},
	{"predict_budget", "4"}}

// methodPath returns the path of a method of the sessions' role.
func methodPath(method string) string { return "/v1/tools/" + role + "/methods/" + method }

// judge says whether the newest answer of add is right. What it should be becomes an example.
func (w *World) judge(c *client) {
	c.space.mu.Lock()
	x := c.space.sum
	c.space.sum = nil
	c.space.mu.Unlock()
	if x == nil {
		return
	}
	want := x.args[0].(int) + x.args[1].(int)
	verdict := map[string]any{"verdict": "right"}
	if x.got != want {
		verdict = map[string]any{"verdict": "wrong", "expected": want}
	}
	r := w.send(c, request{method: "POST", path: "/v1/calls/" + x.call + "/verdict", body: verdict})
	switch {
	case r.status == http.StatusOK:
		c.audited(r)
		w.prove(c, append(w.known(c), example{args: x.args, want: want, session: x.session}))
	case r.status == http.StatusNotFound || r.status == http.StatusGone: // its session was deleted
	default:
		w.odd("a verdict", r)
		c.doubtExamples()
	}
}

// known returns the examples that are known.
func (w *World) known(c *client) []example {
	c.space.mu.Lock()
	defer c.space.mu.Unlock()
	return append([]example{}, c.space.examples...)
}

func (c *client) doubtExamples() {
	c.space.mu.Lock()
	defer c.space.mu.Unlock()
	c.space.unsure = true
}

// expect sets the examples of add.
func (w *World) expect(c *client, step Step) {
	var list []any
	var all []example
	for i := range 1 + step.N[0]%3 {
		a, b := (step.N[1]+i)%5, step.N[2]%5
		list = append(list, map[string]any{"args": []any{a, b}, "expect": map[string]any{"value": a + b}})
		all = append(all, example{args: []any{a, b}, want: a + b})
	}
	r := w.send(c, request{method: "PUT", path: methodPath(add) + "/examples", body: map[string]any{"examples": list}})
	switch {
	case r.status == http.StatusOK:
		c.audited(r)
		w.prove(c, all)
	case r.doubtful():
		c.doubtExamples()
	default:
		w.odd("examples", r)
	}
}

// prove notes the examples. Programs of generations that are newer than those of now have to hold them.
func (w *World) prove(c *client, all []example) {
	a, ok := w.artifact(c, add)
	c.space.mu.Lock()
	defer c.space.mu.Unlock()
	c.space.unsure = !ok
	was := c.space.examples
	c.space.examples = nil
	for _, e := range all {
		if c.space.dropped[e.session] {
			continue
		}
		e.from = a.Sequence
		for _, before := range was { // it was in force all the time
			if fmt.Sprint(before.args) == fmt.Sprint(e.args) {
				e.from = before.from
			}
		}
		c.space.put(e)
	}
}

// put adds an example. One of a later call replaces that of an earlier one, and neither replaces a person's.
func (s *space) put(e example) {
	for i, x := range s.examples {
		if fmt.Sprint(x.args) == fmt.Sprint(e.args) {
			if x.session != "" {
				s.examples[i] = e
			}
			return
		}
	}
	s.examples = append(s.examples, e)
}

// without drops the examples that go with a session.
func (s *space) without(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped[session] = true
	s.examples = slices.DeleteFunc(s.examples, func(e example) bool { return e.session == session })
}

// An artifact, as far as it is compared.
type artifact struct {
	Sequence  int
	Current   string `json:"current_generation"`
	Successes int    `json:"success_count"`
}

// artifact reads the artifact of a method. It reports false if no answer came. One that does not exist is empty.
func (w *World) artifact(c *client, method string) (a artifact, ok bool) {
	r := w.send(c, request{method: "GET", path: methodPath(method)})
	switch {
	case r.status == http.StatusOK:
		if err := r.into(&a); err != nil {
			w.fail("an artifact: %v", err)
		}
		return a, true
	case r.status == http.StatusNotFound:
		return a, true
	}
	w.odd("a look at an artifact", r)
	return a, false
}

// put gives a method a program of the person's own.
func (w *World) put(c *client, step Step) {
	m := methods[step.N[0]%len(methods)]
	r := w.send(c, request{method: "PUT", path: methodPath(m),
		body: map[string]any{"code": source(m, step.N[1]%variants), "reason": "by hand"}})
	if r.status != http.StatusOK {
		w.odd("a program", r)
		return
	}
	c.audited(r)
	var a artifact
	if err := r.into(&a); err != nil {
		w.fail("an artifact: %v", err)
		return
	}
	c.space.mu.Lock()
	defer c.space.mu.Unlock()
	c.space.sequences[m] = max(c.space.sequences[m], a.Sequence)
}

// change changes a field of the policy.
func (w *World) change(c *client, step Step) {
	f := fields[step.N[0]%len(fields)].name
	fact, v := c.space.policy[f], fmt.Sprint(1+step.N[1]%3)
	before, sure := fact.want, fact.sure()
	r := w.send(c, request{method: "PATCH", path: "/v1/policy", body: map[string]any{f: 1 + step.N[1]%3}})
	c.space.undo = undoable{}
	switch {
	case r.status == http.StatusOK:
		fact.set(v)
		if id := c.audited(r); sure && before != v {
			c.space.undo = undoable{id, f, before}
		}
	case r.doubtful():
		fact.doubt(v)
	default:
		w.odd("a patch of the policy", r)
	}
}

// undo takes back the last change of the policy.
func (w *World) undo(c *client) {
	u := c.space.undo
	if u.audit == "" {
		return
	}
	c.space.undo = undoable{}
	r := w.send(c, request{method: "POST", path: "/v1/maintenance/audit/" + u.audit + "/undo"})
	switch fact := c.space.policy[u.field]; {
	case r.status == http.StatusOK:
		fact.set(u.before)
		c.audited(r)
	case r.doubtful():
		fact.doubt(u.before)
	default:
		w.odd("an undo", r)
	}
}

// name makes or erases a namespace.
func (w *World) name(c *client, step Step) {
	i := step.N[0] % len(w.made)
	path, method, want := fmt.Sprint("/v1/namespaces/space-", i), "PUT", "there"
	if step.Kind == Erase {
		method, want = "DELETE", gone
	}
	f := w.made[i]
	r := w.send(c, request{method: method, path: path})
	switch {
	case r.status == http.StatusOK || r.status == http.StatusCreated || r.status == http.StatusNoContent:
		f.set(want)
		c.audited(r)
	case r.status == http.StatusNotFound && want == gone && (f.want == gone || !f.sure()):
		f.set(gone)
	case r.doubtful():
		f.doubt(want)
	default:
		w.odd("a namespace", r)
	}
}
