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

// Bounds of limit in lists.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// query reads query parameters and collects what is wrong with them. Its methods return the zero value for a parameter
// that is not there.
type query struct {
	values url.Values
	known  []string
	errs   []FieldError
}

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

func (q *query) text(name string) string {
	q.known = append(q.known, name)
	given := q.values[name]
	if len(given) > 1 {
		q.bad(name, "is there more than once")
	}
	if len(given) == 0 {
		return ""
	}
	return given[0]
}

// name reads a role or a method in the form in which names are kept.
func (q *query) name(name string) string { return agent.NormalForm(q.text(name)) }

func (q *query) oneOf(name string, allowed ...string) string {
	v := q.text(name)
	if v != "" && !slices.Contains(allowed, v) {
		q.bad(name, "must be one of "+strings.Join(allowed, ", "))
		return ""
	}
	return v
}

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

// cursor is the after of a list of things whose ids begin with the prefix: a text that no page can have given out would
// pass for the end of the list.
func (q *query) cursor(prefix string) string {
	v := q.text("after")
	if v != "" && (!strings.HasPrefix(v, prefix) || !goodID(v)) {
		q.bad("after", "is not a cursor of this list: take the next_cursor of the page before, or begin without it")
	}
	return v
}

func (q *query) boolean(name string) *bool {
	switch v := q.oneOf(name, "true", "false"); v {
	case "":
		return nil
	default:
		b := v == "true"
		return &b
	}
}

// flag is boolean, false where it is not given.
func (q *query) flag(name string) bool {
	b := q.boolean(name)
	return b != nil && *b
}

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

// err returns nil or the problem with all errors; parameters that nobody asked for are errors too.
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
