package api

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Bounds of the parameter limit.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// query reads query parameters and collects their errors. Its methods return the zero value, or the fallback, for an
// absent parameter. Each method marks its parameter as known: err reports all others.
type query struct {
	values url.Values
	known  []string // parameters that a method has read
	errs   []FieldError
}

// readQuery parses the query. A syntax error is reported by err.
func readQuery(r *http.Request) *query {
	q := &query{}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		q.bad("", "cannot be read: percent-encode it")
	}
	q.values = values
	return q
}

func (q *query) bad(name, detail string) {
	q.errs = append(q.errs, FieldError{Pointer: "query:" + name, Detail: detail})
}

// text returns the value of a parameter. Giving it twice is an error.
func (q *query) text(name string) string {
	q.known = append(q.known, name)
	given := q.values[name]
	if len(given) > 1 {
		q.bad(name, "appears more than once")
	}
	if len(given) == 0 {
		return ""
	}
	return given[0]
}

// name reads a role or a method in normal form, in which names are stored.
func (q *query) name(name string) string { return agent.NormalForm(q.text(name)) }

// oneOf returns the value if it is allowed. Absent and invalid values are "".
func (q *query) oneOf(name string, allowed ...string) string {
	v := q.text(name)
	if v != "" && !slices.Contains(allowed, v) {
		q.bad(name, "must be one of "+strings.Join(allowed, ", "))
		return ""
	}
	return v
}

// integer returns a whole number from lo to hi. For absent and invalid values it returns fallback.
func (q *query) integer(name string, fallback, lo, hi int) int {
	v := q.text(name)
	if v == "" {
		return fallback
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < lo || n > hi {
		q.bad(name, "must be a number from "+strconv.Itoa(lo)+" to "+strconv.Itoa(hi))
		return fallback
	}
	return n
}

func (q *query) limit() int { return q.integer("limit", defaultLimit, 1, maxLimit) }

// cursor reads after for a list of ids with that prefix. It reports a text that cannot be an id: comparing with it
// would return an empty page, which looks like the end of the list.
func (q *query) cursor(prefix string) string {
	v := q.text("after")
	if v != "" && (!strings.HasPrefix(v, prefix) || !goodID(v)) {
		q.bad("after", "is not a cursor of this list: send the next_cursor of the previous page, or leave it out")
	}
	return v
}

// boolean returns nil for an absent parameter.
func (q *query) boolean(name string) *bool {
	switch v := q.oneOf(name, "true", "false"); v {
	case "":
		return nil
	default:
		b := v == "true"
		return &b
	}
}

// flag is boolean with false as the default.
func (q *query) flag(name string) bool {
	b := q.boolean(name)
	return b != nil && *b
}

// time returns an RFC 3339 time, or the zero time.
func (q *query) time(name string) time.Time {
	v := q.text(name)
	if v == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, v)
	if err != nil {
		q.bad(name, "must be a time such as 2026-11-21T02:10:00Z")
	}
	return t
}

// err returns nil, or a problem with all errors. Unknown parameters are errors, so it must be called after all others.
func (q *query) err() error {
	var unknown []string
	for name := range q.values {
		if !slices.Contains(q.known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		q.bad(name, "is not a known parameter")
	}
	if len(q.errs) == 0 {
		return nil
	}
	hint := "this path takes no parameters"
	if len(q.known) > 0 {
		hint = "known parameters: " + strings.Join(q.known, ", ")
	}
	p := fault(codeParameter, strings.TrimPrefix(q.errs[0].Pointer, "query:")+" "+q.errs[0].Detail, hint)
	p.Errors = q.errs
	return p
}
