package tools

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The first program of a method whose source fails is held, and not written anew by each call: it runs in the calls of
// the delay, and is stored as soon as it answers one with a value. Nothing counts against it, and who is asked after
// the delay learns of no failure.
func TestFirstProgramOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	f := rig.NewSource(t, rig.ItemsBody)
	m := rig.NewModel(t, rig.Script{"news.read": {rig.ProgFetches}})
	d, ahead := rig.StartAhead(t, m, "--fetch-allow", f.Host())
	d = d.One()
	s := d.Session("news")
	fails := func(requests int) {
		t.Helper()
		got := d.Call(s, "read", f.URL)
		d.WantError(got, "fetch_failed")
		if e := d.LogOf(got); e["failure_class"] != "extrinsic" || !got.Outcome.Retriable ||
			got.Usage.ModelRequests != requests {
			t.Errorf("class %v, retriable %v, %d requests, want %d", e["failure_class"], got.Outcome.Retriable,
				got.Usage.ModelRequests, requests)
		}
	}
	f.Status(503)
	fails(1)
	for range 4 {
		fails(0)
	}
	_, page := explained(d, d.Call(s, "read", f.URL).CallID)
	says(t, page, "A program that the model had written for another call", "A new program was needed because",
		"Ask again once that works again.")
	if strings.Contains(page, "The model was asked") || strings.Contains(page, "recurgentd right") {
		t.Errorf("the held program's call: %s", page)
	}
	ahead("10m") // the delay is over
	fails(1)
	if asked := m.LastQuestion().User; strings.Contains(asked, "<evidence>") ||
		strings.Contains(asked, "<earlier_attempts>") {
		t.Errorf("the request reports an outage as a failure:\n%s", asked)
	}
	fails(0)
	f.Body(rig.ItemsBody)
	got := d.Call(s, "read", f.URL)
	d.WantValue(got, []any{"a", "b"}, "generated")
	if got.Usage.ModelRequests != 0 {
		t.Errorf("%d requests", got.Usage.ModelRequests)
	}
	d.WantValue(d.Call(s, "read", f.URL), []any{"a", "b"}, "persisted")
	if a := d.Artifact("news", "read"); a["extrinsic_failure_count"] != 0.0 || a["failure_count"] != 0.0 ||
		a["success_count"] != 2.0 || a["rejections"] != nil {
		t.Errorf("the artifact counts %v outages, %v failures, %v successes; rejections: %v",
			a["extrinsic_failure_count"], a["failure_count"], a["success_count"], a["rejections"])
	}
	if n := len(m.Questions()); n != 2 {
		t.Errorf("%d model requests, want 2", n)
	}
}

// While another program was asked for, the source of the new one fails: it is held, and the one that serves answers.
func TestSuccessorOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	f := rig.NewSource(t, rig.ItemsBody)
	m := rig.NewModel(t, rig.Script{"news.read": {rig.Program("\tcall.Arg(0, \"url\")\n\treturn \"no news\", nil"),
		rig.ProgFetches}})
	d := rig.Start(t, m, "--fetch-allow", f.Host())
	d.Policy(object{"new_reach": "allow"})
	d = d.One()
	s := d.Session("news")
	d.WantValue(d.Call(s, "read", f.URL), "no news", "generated")
	operate(d, "news", "read", "regenerate", object{"reason": "fetch it"})
	f.Status(503)
	for range 3 {
		d.WantValue(d.Call(s, "read", f.URL), "no news", "persisted")
	}
	f.Body(rig.ItemsBody)
	d.WantValue(d.Call(s, "read", f.URL), []any{"a", "b"}, "generated")
	if n := len(m.Questions()); n != 2 {
		t.Errorf("%d model requests, want 2", n)
	}
}
