package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// The daemon answers the same question once while nothing has changed, and the program gets its own copy each time.
func TestRepeatedQuestionIsAnsweredOnce(t *testing.T) {
	p := nativePool(t, nil)
	h := &fakeHost{history: `[{"call_id":"c1","role":"r","kwargs":{"k":"v"},"args":["` + strings.Repeat("x", 20_000) +
		`"]}]`}
	got := p.Run(t.Context(), request("flood"), h)
	if said(got) != "value [900,0]" || len(h.calls) != 1 {
		t.Errorf("got %s after %d questions to the host, want 900 records, none changed, after 1", said(got),
			len(h.calls))
	}
	if got.Effects.Truncated {
		t.Error("900 times the same answer overflowed the journal")
	}
}

// After a change the question is answered again, and a replay repeats everything as it was.
func TestChangedAnswerIsGivenAnew(t *testing.T) {
	p := nativePool(t, nil)
	for _, large := range []bool{false, true} { // the journal holds a large answer by its digest
		record := `{"call_id":"c"}`
		if large {
			record = fmt.Sprintf(`{"call_id":%q}`, strings.Repeat("c", inlineAnswer))
		}
		h := &fakeHost{history: "[" + record + "]"}
		h.onCall = func(context.Context, string, string, []json.RawMessage, json.RawMessage) agent.Outcome {
			h.revision++
			h.history = "[" + record + "," + record + "]"
			return agent.Outcome{Status: agent.StatusOK, Value: json.RawMessage("1")}
		}
		got := p.Run(t.Context(), request("between"), h)
		if said(got) != "value [1,1,2,2,2]" || len(h.calls) != 4 {
			t.Fatalf("got %s after %q, want the newer history after the call, from 3 answers", said(got), h.calls)
		}
		rec := Recording{Request: request("between"), Journal: got.Effects.Journal, Value: got.Value}
		if c, err := Replay(t.Context(), p, rec, h); err != nil || !c.Equal {
			t.Errorf("large %v: replayed %q (%s), recorded %q, %v", large, c.Replayed, c.Diverged, c.Recorded, err)
		}
	}
}

// An old journal, which holds the same question twice with its answer, is served as it is.
func TestJournalWithRepeatedAnswersIsServed(t *testing.T) {
	p := nativePool(t, nil)
	ask := `{"op":"history","params":{},"result":[{"call_id":"c"}]}`
	both := `{"op":"history","params":{},"result":[{"call_id":"c"},{"call_id":"d"}]}`
	all := `{"op":"history","params":{"all":true},"result":[]}`
	call := `{"op":"call","params":{"role":"other","method":"do","args":[],"kwargs":{}},"result":{"status":"ok"}}`
	req := request("between")
	req.Recorded = json.RawMessage(`{"v":1,"asks":[` + strings.Join([]string{ask, ask, call, both, all, both}, ",") +
		`]}`)
	if got := p.Run(t.Context(), req, &fakeHost{}); said(got) != "value [1,1,2,0,2]" {
		t.Errorf("got %s", said(got))
	}
}

// A contentHost measures the daemon's memory when a program asks for content first and last.
type contentHost struct {
	fakeHost
	before, after uint64
}

func (h *contentHost) Content(_ context.Context, ref string) (json.RawMessage, error) {
	at := map[string]*uint64{"first": &h.before, "last": &h.after}[ref]
	if at != nil {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		*at = m.HeapAlloc
	}
	return nil, nil
}

// Long questions are not kept. Otherwise the daemon would hold up to 128 MiB, the limit of a program's host calls.
func TestLongQuestionsAreNotKept(t *testing.T) {
	p := compilePool(t, nil)
	h := &contentHost{}
	source := program("call.Content(\"first\")\n\tfor i := range 400 {\n\t\tcall.Content(strings.Repeat(\"x\", 100_000) + fmt.Sprint(i))\n\t}\n\treturn call.Content(\"last\"), nil", "fmt", "strings")
	req := request(source)
	req.Timeout = time.Minute
	if got := said(p.Run(t.Context(), req, h)); got != "value null" {
		t.Fatal(got)
	}
	if h.after > h.before+10<<20 {
		t.Errorf("after 40 MB of questions the daemon holds %d MiB more", (h.after-h.before)>>20)
	}
}

// The notes about fetches are bounded, also in a run that may not fetch.
func TestFetchNotesAreBounded(t *testing.T) {
	p := compilePool(t, func(o *Options) { o.Fetch = fetchClient(t) })
	source := program("for i := range 100 {\n\t\tcall.Fetch(\"https://127.0.0.1/\" + strings.Repeat(\"x\", 50_000) + fmt.Sprint(i))\n\t}\n\treturn nil, nil", "fmt", "strings")
	for _, no := range []bool{true, false} {
		req := request(source)
		req.NoFetch, req.Fetches = no, 32
		got := p.Run(t.Context(), req, &fakeHost{})
		if n := len(got.Effects.Fetches); said(got) != "value null" || n != req.Fetches {
			t.Errorf("no fetch %t: %s, %d fetches are noted, want %d", no, said(got), n, req.Fetches)
		}
		for _, f := range got.Effects.Fetches {
			if len(f.URL) > 8<<10+10 {
				t.Fatalf("no fetch %t: an address of %d bytes is noted", no, len(f.URL))
			}
		}
	}
}

// The bytes of host calls are bounded for each call, whatever they ask for.
func TestHostCallsHaveABudgetOfBytes(t *testing.T) {
	p := nativePool(t, func(o *Options) { o.MaxHostBytes = 1 << 20 })
	h := &fakeHost{history: `[{"role":"r","kwargs":{"k":"v"},"call_id":"` + strings.Repeat("c", 300_000) + `"}]`}
	h.onHistory = func(context.Context) { h.revision++ } // changes at every question
	got := p.Run(t.Context(), request("flood"), h)
	if said(got) != "failure resource_exhausted/host_bytes" || len(h.calls) > 4 {
		t.Errorf("got %s after %d answers of 300 kB, want an end after 1 MiB", said(got), len(h.calls))
	}
	if got := p.Run(t.Context(), request("history"), h); said(got) != "value 1" {
		t.Errorf("the next call: %s", said(got))
	}
}

// The daemon's work for a program counts as the program's time and ends with it. Waiting for another program does not
// count.
func TestDaemonsWorkCountsAsRunTime(t *testing.T) {
	p := nativePool(t, nil)
	h := &fakeHost{onHistory: func(ctx context.Context) {
		if _, bounded := ctx.Deadline(); bounded {
			<-ctx.Done()
		}
	}}
	req := request("history")
	req.Timeout = 300 * time.Millisecond
	if got := p.Run(t.Context(), req, h); said(got) != "failure timeout/deadline" || got.Failure.Ours ||
		got.Failure.Waiting {
		t.Errorf("a history that takes for ever: %s %+v, want the program's own timeout", said(got), got.Failure)
	}
	h.onCall = func(ctx context.Context, _, _ string, _ []json.RawMessage, _ json.RawMessage) agent.Outcome {
		if _, bounded := ctx.Deadline(); bounded {
			t.Error("a call of another program ends with this one's time")
		}
		return agent.Outcome{Status: agent.StatusOK, Value: json.RawMessage("1")}
	}
	if got := p.Run(t.Context(), request("nested"), h); got.Failure != nil {
		t.Error(said(got))
	}
}
