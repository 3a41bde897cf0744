package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// What stands where an ended call has its outcome.
const (
	statusRunning = "running"
	statusGone    = "gone" // it runs no more, and its end was not told
)

// A watched is what watch keeps of a call: made plain and cut, whatever a program or a model wrote into it.
type watched struct {
	ID, Parent           string
	Session, Trace       string
	Role, Method         string // as they are, for filters; shown only as Text
	Status               string
	Time                 string // HH:MM:SS of the start
	Text                 string // role.method(arguments)
	Source               string
	Detail               string // of an error, or why a success is weak
	DurationMs           float64
	Depth                int
	Repaired, ModelAsked bool
}

func watchedFrom(e *agent.LogEntry) watched {
	w := watched{ID: e.CallID, Parent: e.ParentCallID, Session: e.SessionID, Trace: e.TraceID, Role: e.Role, Method: e.Method, Status: clean(e.OutcomeStatus, 10),
		Source: clean(e.ProgramSource, 10), DurationMs: e.DurationMs, Depth: max(0, min(e.Depth, 64)), Repaired: e.RepairAttempted, ModelAsked: e.Usage.ModelRequests > 0}
	w.Time = "--:--:--"
	if len(e.Timestamp) >= len("2006-01-02T15:04:05") {
		w.Time = clean(e.Timestamp[len("2006-01-02T"):len("2006-01-02T15:04:05")], 8)
	}
	w.Text = clean(e.Role, 40) + "." + clean(e.Method, 40) + "(" + preview(e.Args, e.Kwargs) + ")"
	switch {
	case e.OutcomeErrorType != "":
		w.Detail = clean(e.OutcomeErrorType+": "+e.OutcomeErrorMessage, 200)
	case e.WeakSuccess:
		w.Detail = clean("weak: "+strings.Join(e.WeakSuccessReasons, ", "), 200)
	}
	return w
}

// preview is the arguments on one line.
func preview(args []json.RawMessage, kwargs json.RawMessage) string {
	var parts []string
	for _, a := range args {
		if parts = append(parts, clean(string(a), 40)); len(parts) == 8 {
			break
		}
	}
	if len(kwargs) > len("{}") {
		parts = append(parts, clean(string(kwargs), 40))
	}
	return clean(strings.Join(parts, ", "), 80)
}

// duration is milliseconds or seconds, with three digits or so.
func (w *watched) duration() string {
	switch {
	case w.Status == statusRunning:
		return "…"
	case w.DurationMs < 100:
		return fmt.Sprintf("%.1f ms", w.DurationMs)
	case w.DurationMs < 10_000:
		return fmt.Sprintf("%.0f ms", w.DurationMs)
	}
	return fmt.Sprintf("%.1f s", w.DurationMs/1000)
}

// A filter selects calls; an empty field selects all.
type filter struct{ Role, Method, Status, Trace, Session string }

// fields are the filter's names and places, in the order in which they are shown.
func (f *filter) fields() []struct {
	name string
	at   *string
} {
	return []struct {
		name string
		at   *string
	}{{"role", &f.Role}, {"method", &f.Method}, {"status", &f.Status}, {"trace", &f.Trace}, {"session", &f.Session}}
}

// matches compares role and method whole, ids by their beginning, so that a part of one can be pasted.
func (f filter) matches(w *watched) bool {
	whole := func(want, is string) bool { return want == "" || want == is }
	return whole(f.Role, w.Role) && whole(f.Method, w.Method) && whole(f.Status, w.Status) && strings.HasPrefix(w.Trace, f.Trace) && strings.HasPrefix(w.Session, f.Session)
}

func (f filter) String() string {
	var parts []string
	for _, x := range f.fields() {
		if *x.at != "" {
			value := *x.at
			if strings.ContainsFunc(value, unicode.IsSpace) {
				value = `"` + value + `"`
			}
			parts = append(parts, x.name+"="+value)
		}
	}
	return strings.Join(parts, " ")
}

func (f filter) validate() error {
	if f.Status != "" && !slices.Contains([]string{agent.StatusOK, agent.StatusError, statusRunning}, f.Status) {
		return fmt.Errorf("status must be one of ok, error, running, got %q", f.Status)
	}
	return nil
}

// parseFilter reads "role=calculator status=error". A word without = is a role; quotes hold a value with blanks together.
func parseFilter(text string) (filter, error) {
	var f filter
	quoted := false
words:
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return unicode.IsSpace(r) && !quoted
	}) {
		name, value, ok := strings.Cut(strings.ReplaceAll(word, `"`, ""), "=")
		if !ok {
			name, value = "role", word
		}
		for _, x := range f.fields() {
			if x.name == name {
				*x.at = value
				continue words
			}
		}
		return f, fmt.Errorf("%q is none of role=, method=, status=, trace=, session=", word)
	}
	return f, f.validate()
}

// query is the filter as GET /v1/calls takes it. Ids may be beginnings there, which it does not know: those are left out, and
// matches has the last word.
func (f filter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"role": f.Role, "method": f.Method, "status": f.Status} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}
