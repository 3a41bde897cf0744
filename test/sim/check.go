package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// quiet waits until nobody waits for anything and the daemon is ready, and compares everything. Of histories and audit
// trails it compares what is new, or the whole.
func (w *World) quiet(whole bool) {
	w.busy.Wait()
	if !w.ready(w.person) {
		return
	}
	time.Sleep(time.Minute) // what goes on in the background ends
	for _, c := range w.clients {
		for _, s := range c.sessions {
			w.ended(c, s)
		}
	}
	w.count(func(t *Tally) { t.Checks++ })
	for _, c := range w.clients {
		for _, s := range c.sessions {
			w.examine(c, s, whole)
		}
		c.forget()
		w.checkFiles(c)
	}
	for _, s := range w.spaces {
		p := personOf(s)
		w.checkPolicy(p)
		w.checkExamples(p)
		w.checkArtifacts(p)
		w.checkAudit(p, whole)
		w.checkUsage(p)
	}
	w.checkNamespaces()
	w.write(w.disk)
	w.disk.compact()
}

// ended waits until no call of the session runs any more: one that its client has left may go on. It must have ended
// within two hours.
func (w *World) ended(c *client, s *session) {
	for range 720 {
		var got struct{ Data []json.RawMessage }
		r := w.send(c, request{method: "GET", path: "/v1/calls?status=running&limit=1&session_id=" + s.id})
		if r.status != http.StatusOK { // the daemon stops, or the session is gone
			return
		}
		if err := r.into(&got); err != nil {
			w.fail("the running calls: %v", err)
		}
		if len(got.Data) == 0 {
			return
		}
		time.Sleep(10 * time.Second)
	}
	w.fail("a call of %s has run for two hours", s.id)
}

// get reads a path. A failure fails the life, as all is quiet.
func (w *World) get(c *client, path string, v any) bool {
	r := w.send(c, request{method: "GET", path: path})
	if r.status != http.StatusOK {
		if !w.disk.isFull() {
			w.fail("%s was answered with %d %s", path, r.status, r.body)
		}
		return false
	}
	if err := r.into(v); err != nil {
		w.fail("%s: %v", path, err)
		return false
	}
	return true
}

// examine compares a session with what its client knows. What was in doubt is certain from then on. If the daemon does
// not answer, nothing changes. Of the history it compares what is new, or the whole.
func (w *World) examine(c *client, s *session, whole bool) {
	path := "/v1/sessions/" + s.id
	r := w.send(c, request{method: "GET", path: path})
	switch {
	case r.status == http.StatusNotFound || r.status == http.StatusGone:
		w.compare(path, s.there.read(gone))
		return
	case r.status != http.StatusOK:
		w.odd(path, r)
		return
	}
	w.compare(path, s.there.read("there"))
	after := s.known
	if whole {
		after = 0
	}
	records, ok := w.history(c, path, after)
	if !ok {
		return
	}
	r = w.send(c, request{method: "GET", path: path + "/context"})
	if r.status != http.StatusOK {
		w.odd(path, r)
		return
	}
	var got struct {
		Count   int
		Note    []string
		Patched json.RawMessage
	}
	if err := r.into(&got); err != nil {
		w.fail("%s: %v", path, err)
		return
	}
	w.compare(path, s.settle(records, after))
	has := session{memory: memory{got.Count, got.Note}}
	if has.contextText() != s.contextText() {
		w.fail("%s: the context has %s, want %s", path, has.contextText(), s.contextText())
	}
	if got.Patched == nil {
		got.Patched = json.RawMessage("null")
	}
	w.compare(path+", patched", s.patched.read(string(got.Patched)))
	for _, r := range records {
		if n, ok := s.recalls[r.ID]; ok && r.Seq != n+1 {
			w.fail("the call %s saw %d records, and is record %d", r.ID, n, r.Seq)
		}
	}
	c.space.see(records)
}

// history reads the history of a session after that many records.
func (w *World) history(c *client, path string, after int) (all []record, ok bool) {
	for {
		var page struct {
			Data []record
			Next *string `json:"next_cursor"`
		}
		r := w.send(c, request{method: "GET", path: path + fmt.Sprint("/history?limit=1000&after=", after)})
		if r.status != http.StatusOK {
			w.odd(path, r)
			return nil, false
		}
		if err := r.into(&page); err != nil {
			w.fail("%s: %v", path, err)
			return nil, false
		}
		all = append(all, page.Data...)
		if page.Next == nil || len(page.Data) == 0 {
			return all, true
		}
		after = page.Data[len(page.Data)-1].Seq
	}
}

// see counts the calls that ended well.
func (s *space) see(records []record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range records {
		if !s.seen[r.ID] {
			s.seen[r.ID] = true
			if r.Outcome.OK {
				s.answers[r.Method]++
			}
		}
	}
}

func (w *World) compare(what string, err error) {
	if err != nil {
		w.fail("%s: %v", what, err)
	}
}

func (w *World) checkFiles(c *client) {
	for _, f := range c.files {
		if f.expired() {
			continue
		}
		r := w.send(c, request{method: "GET", path: "/v1/files/" + f.id + "/content"})
		got := string(r.body)
		switch r.status {
		case http.StatusNotFound, http.StatusGone:
			got = gone
		case http.StatusOK:
		default:
			w.fail("the file %s was answered with %d %s", f.id, r.status, r.body)
		}
		w.compare("the file "+f.id, f.there.read(got))
	}
}

func (w *World) checkPolicy(p *client) {
	got := map[string]json.RawMessage{}
	if !w.get(p, "/v1/policy", &got) {
		return
	}
	for _, f := range fields {
		w.compare(p.space.name+": "+f.name, p.space.policy[f.name].read(string(got[f.name])))
	}
}

// checkExamples compares the examples, and learns those that are in doubt.
func (w *World) checkExamples(p *client) {
	var got struct {
		Examples []struct {
			ID, State string
			Session   string `json:"session_id"`
			Args      []int
			Expect    struct{ Value int }
		}
	}
	if !w.get(p, methodPath(add)+"/examples", &got) {
		return
	}
	there, all := map[string]string{}, []example{}
	for _, e := range got.Examples {
		if e.State == "active" {
			there[fmt.Sprint(e.Args)] = e.ID
			all = append(all, example{args: []any{e.Args[0], e.Args[1]}, want: e.Expect.Value, session: e.Session})
		}
	}
	if p.space.unsure {
		w.prove(p, all)
		return
	}
	for _, e := range p.space.examples {
		if there[fmt.Sprint(e.args)] == "" {
			w.fail("the example %v is gone: %v", e.args, got.Examples)
		}
	}
	w.checkProgram(p, there)
}

// checkProgram runs the program of add with its examples, whose ids are by their arguments. One that was adopted after
// an example has to hold it.
func (w *World) checkProgram(p *client, examples map[string]string) {
	a, ok := w.artifact(p, add)
	if !ok || a.Sequence == 0 || len(examples) == 0 {
		return
	}
	r := w.send(p, request{method: "POST", path: methodPath(add) + "/examples/run", body: map[string]any{}})
	if r.status != http.StatusOK {
		w.odd("a run of examples", r)
		return
	}
	var got struct {
		Results []struct {
			ID, Result string
			Type       string `json:"error_type"`
		}
	}
	if err := r.into(&got); err != nil {
		w.fail("a run of examples: %v", err)
		return
	}
	failed := map[string]bool{}
	for _, x := range got.Results {
		failed[x.ID] = x.Result == "failed" && x.Type == ""
	}
	for _, e := range p.space.examples {
		if failed[examples[fmt.Sprint(e.args)]] && p.space.proven(e.args, a.Current) {
			w.fail("%s: %s serves, and does not hold the example %v: %s", p.space.name, a.Current, e.args, r.body)
		}
	}
}

// checkArtifacts compares generations and counters.
func (w *World) checkArtifacts(p *client) {
	for _, m := range methods {
		a, ok := w.artifact(p, m)
		if !ok {
			continue
		}
		if a.Sequence < p.space.sequences[m] {
			w.fail("%s %s has %d generations, and %d were acknowledged", p.space.name, m, a.Sequence,
				p.space.sequences[m])
		}
		p.space.sequences[m] = a.Sequence
		if got, want := a.Successes, p.space.answers[m]; got != want {
			w.fail("%s %s counts %d answers, and the histories have %d", p.space.name, m, got, want)
		}
	}
}

// checkAudit compares the audit trail: acknowledged entries are there, and the chain has no gap.
func (w *World) checkAudit(p *client, whole bool) {
	since := p.space.head
	if whole {
		since = entry{}
	}
	all, head, ok := w.trail(p, since.Seq)
	if !ok {
		return
	}
	there := map[string]bool{}
	for i, e := range all { // newest first
		there[e.ID] = true
		if e.Seq != head.Seq-int64(i) || i == 0 && e.Hash != head.Hash || i > 0 && all[i-1].Prev != e.Hash {
			w.fail("%s: the chain breaks at entry %d of the trail, %s", p.space.name, e.Seq, e.ID)
		}
		if known := p.space.head; e.Seq == known.Seq && e.Hash != known.Hash {
			w.fail("%s: entry %d of the trail is another one than before: %s", p.space.name, e.Seq, e.ID)
		}
	}
	if len(there) != len(all) || int64(len(all)) != head.Seq-since.Seq {
		w.fail("%s: the trail has %d entries after %d, %d of them different, and its head is %d", p.space.name,
			len(all), since.Seq, len(there), head.Seq)
	}
	if n := len(all); n > 0 && since.Seq > 0 && all[n-1].Prev != since.Hash {
		w.fail("%s: the chain breaks after entry %d of the trail, %s", p.space.name, since.Seq, since.ID)
	}
	for id := range p.space.audits {
		if !there[id] {
			w.fail("%s: the trail lacks %s", p.space.name, id)
		}
	}
	p.space.head, p.space.audits = head, map[string]bool{}
}

// trail reads the entries of the audit trail after that number, newest first, and its head.
func (w *World) trail(p *client, since int64) (all []entry, head entry, ok bool) {
	for after := ""; ; {
		var page struct {
			Data []entry
			Next *string `json:"next_cursor"`
			Head entry
		}
		if !w.get(p, "/v1/maintenance/audit?limit=100&after="+url.QueryEscape(after), &page) {
			return nil, head, false
		}
		if after == "" {
			head = page.Head
		}
		for _, e := range page.Data {
			if e.Seq <= since {
				return all, head, true
			}
			all = append(all, e)
		}
		if page.Next == nil {
			return all, head, true
		}
		after = *page.Next
	}
}

// checkUsage compares what the models were asked with what is reported.
func (w *World) checkUsage(p *client) {
	if p.space != w.spaces[0] {
		return // the other one is part of the sum
	}
	today, reported := time.Now().UTC().Format(time.DateOnly), 0
	for _, s := range w.spaces {
		var got struct {
			Data []struct {
				Key        string
				Prompt     int `json:"prompt_tokens"`
				Completion int `json:"completion_tokens"`
				Estimated  int `json:"estimated_tokens"`
			}
		}
		if !w.get(personOf(s), "/v1/usage?by=day", &got) {
			return
		}
		for _, row := range got.Data {
			if row.Key == today {
				reported += row.Prompt + row.Completion + row.Estimated
			}
		}
	}
	w.weather.mu.Lock()
	asked := w.tokens[today]
	w.weather.mu.Unlock()
	if reported < asked {
		w.fail("the models were asked for %d tokens today, and %d are reported", asked, reported)
	}
}

func (w *World) checkNamespaces() {
	var got struct{ Data []struct{ Name string } }
	if !w.get(w.person, "/v1/namespaces", &got) {
		return
	}
	there := map[string]bool{}
	for _, n := range got.Data {
		there[n.Name] = true
	}
	for i, f := range w.made {
		has := gone
		if there[fmt.Sprint("space-", i)] {
			has = "there"
		}
		w.compare(fmt.Sprint("namespace space-", i), f.read(has))
	}
}
