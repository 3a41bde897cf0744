package gate

import (
	"fmt"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// Limits of a refusal's error list.
const (
	maxErrors     = 20
	maxFaultBytes = 6 << 10 // all lines together
)

// A fault is one reason why a program may not run.
type fault struct {
	kind    string
	at      token.Position // Line is 0 if the fault has no position
	message string
	hint    string // what to write instead; may be ""
}

// fault records a reason to refuse the program.
func (c *check) fault(kind string, pos token.Pos, message, hint string) {
	c.faultAt(kind, c.fset.PositionFor(pos, false), message, hint)
}

// faultAt records a reason to refuse the program at a position of the file set.
func (c *check) faultAt(kind string, at token.Position, message, hint string) {
	c.faults = append(c.faults, fault{kind, at, strings.TrimSpace(message), hint})
}

// refuse returns a refusal with this fault alone. It discards the faults recorded so far.
func (c *check) refuse(kind string, pos token.Pos, message, hint string) *Refusal {
	c.faults = nil
	c.fault(kind, pos, message, hint)
	return c.refusal("")
}

// refusal returns a Refusal that lists all faults in source order without duplicates, each with its hint, or nil if
// there are none. what is a prefix for the message, which describes the first fault.
func (c *check) refusal(what string) *Refusal {
	if len(c.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(c.faults, func(a, b fault) int {
		switch {
		case (a.at.Line == 0) != (b.at.Line == 0):
			return b.at.Line - a.at.Line // faults without a position come last
		case a.at.Line != b.at.Line:
			return a.at.Line - b.at.Line
		}
		return a.at.Column - b.at.Column
	})
	first := c.faults[0]
	r := &Refusal{Type: first.kind, Line: first.at.Line, Column: first.at.Column}
	list := once(c.faults)
	hinted := map[string]bool{}
	left := maxFaultBytes
	for _, f := range list {
		line := f.String()
		// Each hint appears once, with the first fault that it helps with. A single fault has its hint in Refusal.Hint.
		if f.hint != "" && !hinted[f.hint] && len(list) > 1 {
			hinted[f.hint] = true
			line += ". " + f.hint
		}
		if line = clipLine(line); len(r.Errors) == maxErrors || len(line) > left {
			break
		}
		left -= len(line)
		r.Errors = append(r.Errors, line)
	}
	r.Message = what + r.Errors[0]
	if len(list) == 1 {
		r.Hint = first.hint
	}
	return r
}

// String returns the fault as the compiler would print it.
func (f *fault) String() string {
	if f.at.Line == 0 {
		return f.message
	}
	return fmt.Sprintf("%s:%d:%d: %s", fileName, f.at.Line, f.at.Column, f.message)
}

// once merges faults with the same kind and message: it keeps the first and adds the lines of up to 8 others to its
// message.
func once(faults []fault) []fault {
	var out []fault
	lines := map[string][]string{}
	for _, f := range faults {
		key := f.kind + f.message
		if _, seen := lines[key]; !seen {
			out = append(out, f)
			lines[key] = nil
		} else if line := strconv.Itoa(f.at.Line); f.at.Line > 0 && !slices.Contains(lines[key], line) &&
			len(lines[key]) < 8 {
			lines[key] = append(lines[key], line)
		}
	}
	for i := range out {
		if also := lines[out[i].kind+out[i].message]; len(also) > 0 {
			out[i].message += " (also in line " + strings.Join(also, ", ") + ")"
		}
	}
	return out
}

// clipLine shortens a line to 700 bytes.
func clipLine(s string) string {
	if len(s) > 700 {
		return strings.ToValidUTF8(s[:700], "") + "..."
	}
	return s
}
