package postgres

import (
	"strconv"
	"strings"
	"time"
)

// A filter writes the conditions of a query with their arguments.
type filter struct {
	where strings.Builder
	args  []any
}

// and adds a condition; ? in it stands for the argument.
func (f *filter) and(condition string, arg any) {
	if f.where.Len() > 0 {
		f.where.WriteString(" AND ")
	}
	f.where.WriteString(strings.ReplaceAll(condition, "?", f.arg(arg)))
}

// arg adds an argument and returns its place.
func (f *filter) arg(arg any) string {
	f.args = append(f.args, arg)
	return place(len(f.args))
}

// place is the place of the nth argument.
func place(n int) string { return "$" + strconv.Itoa(n) }

// flag adds that the column has the value; nil is any.
func (f *filter) flag(column string, value *bool) {
	if value == nil {
		return
	}
	if f.where.WriteString(" AND "); !*value {
		f.where.WriteString("NOT ")
	}
	f.where.WriteString(column)
}

// equal adds that the column, which key made, is the text; "" is any.
func (f *filter) equal(column, text string) {
	if text != "" {
		f.and(column+" = ?", key(text))
	}
}

// between adds that the time lies in [since, until); zero is no bound.
func (f *filter) between(column string, since, until time.Time) {
	if !since.IsZero() {
		f.and(column+" >= ?", since)
	}
	if !until.IsZero() {
		f.and(column+" < ?", until)
	}
}

func (f *filter) limit(n int) string { return " LIMIT " + f.arg(n) }
