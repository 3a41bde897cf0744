package watch

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
)

// Line formats a call as one line: time, status, duration, source of the program, id, and the call with its arguments.
func Line(colours text.Palette, at string, w *Call) string {
	parts := []string{at, colours.Status(w.Status, text.Pad(w.Status, 5)), fmt.Sprintf("%9s", w.duration()),
		text.Pad(w.Source, 9), text.Clean(w.ID, 40), strings.Repeat("  ", w.Depth) + w.Text}
	if w.Detail != "" {
		parts = append(parts, "-> "+w.Detail)
	}
	return strings.Join(parts, "  ")
}

// Statuses of calls without an outcome.
const (
	Running = "running"
	Gone    = "gone" // it no longer runs, but its end has not been reported
)

// A Call is a log entry as shown by watch. Its displayed text is bounded and safe for a terminal, whatever a program or
// a model wrote.
type Call struct {
	ID, Parent           string
	Session, Trace       string
	Role, Method         string // unmodified, for filters; displayed only as part of Text
	Status               string
	Time                 string // HH:MM:SS of the start
	Text                 string // role.method(arguments)
	Source               string
	Detail               string // the error, or the reason why a success is weak
	DurationMs           float64
	Depth                int
	Repaired, ModelAsked bool
	Verdict              string // a person's judgement: right, wrong or ""
	Doubted              bool   // the program that answered is doubted
}

// A method identifies a program.
type method struct{ role, name string }

func (w *Call) method() method { return method{w.Role, w.Method} }

// CallFrom converts a log entry to a Call.
func CallFrom(e *agent.LogEntry) Call {
	w := Call{ID: e.CallID, Parent: e.ParentCallID, Session: e.SessionID, Trace: e.TraceID, Role: e.Role,
		Method: e.Method, Status: text.Clean(e.OutcomeStatus, 10),
		Source: text.Clean(e.ProgramSource, 10), DurationMs: e.DurationMs, Depth: max(0, min(e.Depth, 64)),
		Repaired: e.RepairAttempted, ModelAsked: e.Usage.ModelRequests > 0,
		Verdict: text.Clean(e.Verdict, 10), Doubted: e.ProgramDoubted}
	w.Time = "--:--:--"
	if len(e.Timestamp) >= len("2006-01-02T15:04:05") {
		w.Time = text.Clean(e.Timestamp[len("2006-01-02T"):len("2006-01-02T15:04:05")], 8)
	}
	w.Text = text.Clean(e.Method, 40) + "(" + preview(e.Args, e.Kwargs) + ")"
	if e.Role != "" { // a prediction without a session has no role
		w.Text = text.Clean(e.Role, 40) + "." + w.Text
	}
	switch {
	case e.OutcomeErrorType != "":
		w.Detail = text.Clean(e.OutcomeErrorType+": "+e.OutcomeErrorMessage, 200)
	case e.WeakSuccess:
		w.Detail = text.Clean("weak: "+strings.Join(e.WeakSuccessReasons, ", "), 200)
	}
	return w
}

// preview formats the arguments on one line.
func preview(args []json.RawMessage, kwargs json.RawMessage) string {
	var parts []string
	for _, a := range args {
		if parts = append(parts, text.Clean(text.JSON(a), 40)); len(parts) == 8 {
			break
		}
	}
	if len(kwargs) > len("{}") {
		parts = append(parts, text.Clean(text.JSON(kwargs), 40))
	}
	return text.Clean(strings.Join(parts, ", "), 80)
}

// duration formats the duration in milliseconds or seconds, with about three digits.
func (w *Call) duration() string {
	switch {
	case w.Status == Running:
		return "…"
	case w.DurationMs < 100:
		return fmt.Sprintf("%.1f ms", w.DurationMs)
	case w.DurationMs < 10_000:
		return fmt.Sprintf("%.0f ms", w.DurationMs)
	}
	return fmt.Sprintf("%.1f s", w.DurationMs/1000)
}

// A Filter selects calls. An empty field matches all.
type Filter struct{ Role, Method, Status, Trace, Session string }

// fields returns the filter's fields with their names, in display order.
func (f *Filter) fields() []struct {
	name string
	at   *string
} {
	return []struct {
		name string
		at   *string
	}{{"role", &f.Role}, {"method", &f.Method}, {"status", &f.Status}, {"trace", &f.Trace}, {"session", &f.Session}}
}

// Matches reports whether the call matches: role, method and status exactly, trace and session by prefix.
func (f Filter) Matches(w *Call) bool {
	whole := func(want, is string) bool { return want == "" || agent.NormalForm(want) == is }
	return whole(f.Role, w.Role) && whole(f.Method, w.Method) && whole(f.Status, w.Status) &&
		strings.HasPrefix(w.Trace, f.Trace) && strings.HasPrefix(w.Session, f.Session)
}

func (f Filter) String() string {
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

// Validate returns an error for an unknown status.
func (f Filter) Validate() error {
	if f.Status != "" && !slices.Contains([]string{agent.StatusOK, agent.StatusError, Running}, f.Status) {
		return fmt.Errorf("status must be one of ok, error, running, got %q", f.Status)
	}
	return nil
}

// parseFilter parses "role=calculator status=error". A word without = is a role. A value with spaces must be quoted.
func parseFilter(text string) (Filter, error) {
	var f Filter
	quoted := false
words:
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return unicode.IsSpace(r) && !quoted
	}) {
		plain := strings.ReplaceAll(word, `"`, "")
		name, value, ok := strings.Cut(plain, "=")
		if !ok {
			name, value = "role", plain
		}
		for _, x := range f.fields() {
			if x.name == name {
				*x.at = value
				continue words
			}
		}
		return f, fmt.Errorf("%q is not one of role=, method=, status=, trace=, session=", word)
	}
	return f, f.Validate()
}

// query returns the filter as parameters of GET /v1/calls. It omits prefixes of ids, because the route accepts only
// whole ids; Matches applies them.
func (f Filter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"role": f.Role, "method": f.Method, "status": f.Status} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}
