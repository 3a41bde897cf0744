package postgres

import (
	"strconv"
	"strings"
	"time"
)

// A filter builds the conditions of a query and collects their arguments.
type filter struct {
	where strings.Builder
	args  []any
}

// and adds a condition, in which ? stands for arg.
func (f *filter) and(condition string, arg any) {
	if f.where.Len() > 0 {
		f.where.WriteString(" AND ")
	}
	f.where.WriteString(strings.ReplaceAll(condition, "?", f.arg(arg)))
}

// arg adds an argument and returns its placeholder.
func (f *filter) arg(arg any) string {
	f.args = append(f.args, arg)
	return place(len(f.args))
}

// place returns the placeholder of the nth argument.
func place(n int) string { return "$" + strconv.Itoa(n) }

// flag adds the condition that the column equals *value. A nil value matches any.
func (f *filter) flag(column string, value *bool) {
	if value == nil {
		return
	}
	if f.where.WriteString(" AND "); !*value {
		f.where.WriteString("NOT ")
	}
	f.where.WriteString(column)
}

// equal adds the condition that the column, which holds a result of key, is the text. "" matches any.
func (f *filter) equal(column, text string) {
	if text != "" {
		f.and(column+" = ?", key(text))
	}
}

// between adds the condition that the time lies in [since, until). A zero time means no bound.
func (f *filter) between(column string, since, until time.Time) {
	if !since.IsZero() {
		f.and(column+" >= ?", since)
	}
	if !until.IsZero() {
		f.and(column+" < ?", until)
	}
}

// limit returns a LIMIT clause. Conditions must be added before.
func (f *filter) limit(n int) string { return " LIMIT " + f.arg(n) }
