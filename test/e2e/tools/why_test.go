package tools

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/why"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// explained returns the explanation of a call and its pages: the one of the command, which is the one for text/plain,
// and Markdown.
func explained(d *rig.Daemon, callID string) (x why.Explanation, page string) {
	d.T.Helper()
	path := "/v1/calls/" + callID + "/why"
	r := d.Do(http.StatusOK, http.MethodGet, path, nil) // held against the schema
	r.Into(d.T, &x)
	text := d.Send(http.MethodGet, path, nil, map[string]string{"Accept": "text/plain"})
	marks := d.Send(http.MethodGet, path, nil, map[string]string{"Accept": "text/html, text/markdown;q=0.9, */*;q=0.1"})
	for _, c := range []struct {
		r    rig.Response
		want string
	}{{text, "text/plain; charset=utf-8"}, {marks, "text/markdown; charset=utf-8"}} {
		if c.r.Status != http.StatusOK || c.r.Header.Get("Content-Type") != c.want {
			d.T.Errorf("got %d %q, want %s", c.r.Status, c.r.Header.Get("Content-Type"), c.want)
		}
	}
	if !strings.HasPrefix(string(marks.Body), "# Why call\\_") ||
		!strings.Contains(string(marks.Body), "\n\n## What ") {
		d.T.Errorf("not the page as Markdown:\n%s", marks.Body)
	}
	out, errs, code := d.Client("why", callID)
	if code != 0 || out != string(text.Body) && x.Status != "running" { // whose time goes on
		d.T.Errorf("recurgentd why: exit %d, %q and %q differ: %s", code, out, text.Body, errs)
	}
	return x, out
}

// says checks that a page says each of the texts.
func says(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
}

// flipped is what another value of that switch would have decided.
func flipped(t *testing.T, x *why.Explanation, name string) why.Counterfactual {
	t.Helper()
	for _, c := range x.Counterfactuals {
		if c.Switch == name {
			return c
		}
	}
	t.Fatalf("%s is not among the switches: %+v", name, x.Counterfactuals)
	return why.Counterfactual{}
}

// A program is written, answers, fails, is repaired and regenerated: each call says which program answered it and why,
// and why the others did not.
func TestLifeOfAMethod(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic, rig.ProgFixes, rig.ProgEcho}, "r.other": {rig.ProgEcho}})
	d := rig.Start(t, m)
	s := d.Session("r")
	d.Call(s, "other", 1)
	cold, warm := d.Call(s, "m", 1), d.Call(s, "m", 2)
	repaired := d.Call(s, "m", "bad")
	d.Policy(map[string]any{"force_generation": true})
	d.Policy(map[string]any{"force_generation": false})
	d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("r", "m")+"/regenerate", map[string]any{})
	regenerated := d.Call(s, "m", 1)

	x, page := explained(d, cold.CallID)
	says(t, page, "A program that was written for this call, gen-1, answered. The model was asked for a new program because the method had none.", "gate: ", "r.other: the call asked for m", "nobody has judged it")
	if !x.Selection.Same || x.Cost.Usage.ModelRequests != 1 || x.Cost.Attempts != 1 ||
		x.Selection.Trigger != "initial_forge" {
		t.Errorf("cold: %+v, %+v", x.Selection, x.Cost)
	}

	x, page = explained(d, warm.CallID)
	says(t, page, "The stored program gen-1 answered because it was healthy and fits the contract of the call.",
		"If the value is wrong, say so: ", "no model request", "recurgentd right "+warm.CallID,
		"gen-2: it was made during this call or after it",
		"force_generation=true: the model would have written a new program\n")
	if c := flipped(t, &x, "force_generation"); !x.Selection.Same || !c.Changes || c.Decision != "forge" {
		t.Errorf("warm: %+v, %+v", x.Selection, c)
	}
	if c := flipped(t, &x, "approval_required"); !c.Changes || c.Decision != "refuse" {
		t.Errorf("warm with approvals: %+v", c)
	}

	x, page = explained(d, repaired.CallID)
	says(t, page, "Before it, the stored program gen-1 was chosen because",
		"A program that was repaired for this call, gen-2, answered.", "it ran and failed (execution): \"", "boom")
	if len(x.Candidates) != 1 || x.Candidates[0].Stage != "execution" || x.Selection.Program != "repaired" {
		t.Errorf("repaired: %+v, %+v", x.Candidates, x.Selection)
	}

	x, page = explained(d, regenerated.CallID)
	says(t, page, "A program that was written for this call, gen-3, answered. A person had asked for a new program.",
		"gen-2: ")
	if !x.Selection.Same || x.Selection.Trigger == "" || len(x.Alternatives) != 2 {
		t.Errorf("regenerated: %+v, %+v", x.Selection, x.Alternatives)
	}
	follow(d, x.Next)
}

// follow sends the requests of an explanation, as they are, and runs its commands.
func follow(d *rig.Daemon, steps []why.Step) {
	d.T.Helper()
	for _, step := range steps {
		take(d, step)
		if args := strings.Fields(step.Command); len(args) > 0 {
			if out, errs, code := d.Client(args[1:]...); code != 0 {
				d.T.Errorf("%s: exit %d\n%s%s", step.Command, code, out, errs)
			}
		}
	}
}

// take sends the request of a step.
func take(d *rig.Daemon, step why.Step) {
	d.T.Helper()
	body := []byte(step.Body)
	if string(body) == "null" {
		body = nil
	}
	if r := d.Send(step.Method, step.Path, body, nil); r.Status >= 400 {
		d.T.Errorf("%s: %s %s %s: %d %s", step.Name, step.Method, step.Path, body, r.Status, r.Body)
	}
}
