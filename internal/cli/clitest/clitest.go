// Package clitest provides calls as plain data for tests of the output for people, and texts with escape sequences that
// must not reach a terminal.
package clitest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Entry returns a log entry from a number, the parent's number (0 means none), "role.method", arguments, status, source
// and milliseconds.
func Entry(n, parent int, name, args, status, source string, ms float64) agent.LogEntry {
	role, method, _ := strings.Cut(name, ".")
	e := agent.LogEntry{Timestamp: fmt.Sprintf("2026-11-21T06:15:%02d.250Z", n), CallID: fmt.Sprintf("call_%026d", n),
		SessionID: "sess_1", TraceID: fmt.Sprintf("%032x", 7),
		Role: role, Method: method, OutcomeStatus: status, ProgramSource: source, DurationMs: ms,
		Kwargs: json.RawMessage("{}")}
	if parent > 0 {
		e.ParentCallID, e.Depth = fmt.Sprintf("call_%026d", parent), 1
	}
	if args != "" {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte("["+args+"]"), &list); err != nil {
			panic(err)
		}
		e.Args = list
	}
	return e
}

// Failing returns the entry with an error of that type and message.
func Failing(e agent.LogEntry, kind, message string) agent.LogEntry {
	e.OutcomeErrorType, e.OutcomeErrorMessage = kind, message
	return e
}

// SomeCalls returns the calls of a session: one with nested calls two levels deep, one that fails, and a weak success.
func SomeCalls() []agent.LogEntry {
	deep := Entry(6, 4, "calculator.add", "10, 3", "ok", "persisted", 0.31)
	inner := Entry(7, 6, "units.convert", `3, "kg"`, "ok", "persisted", 12.5)
	inner.Depth = 2
	weak := Entry(3, 0, "movie finder.find", `"noir", 1949`, "ok", "persisted", 812)
	weak.WeakSuccess, weak.WeakSuccessReasons, weak.TraceID = true, []string{"empty movies"}, fmt.Sprintf("%032x", 9)
	return []agent.LogEntry{
		Entry(1, 0, "calculator.add", "2, 3", "ok", "generated", 10812.4),
		Failing(Entry(2, 0, "calculator.divide", "1, 0", "error", "persisted", 0.42), "invalid_input",
			"nothing can be divided by zero"),
		weak,
		Entry(5, 4, "calculator.multiply", "4, 2.5", "ok", "persisted", 0.27),
		inner, deep,
		Entry(4, 0, "invoice.total", `[{"price": 4, "quantity": 2.5}, {"price": 3, "quantity": 1}]`, "ok", "generated",
			55.1),
	}
}

// HostileTexts are texts that a program, a model or a client might put into a name, an argument or a message.
var HostileTexts = []string{"\x1b]0;owned\x07", "\x1b[2J\x1b[H", "\x1b]52;c;b3duZWQ=\x07", "\u009b31m",
	"\u009d0;owned\u009c", "\x1bPq\x1b\\", "\r\nfake line", "\u202egnp.exe", "\x00\x08\x7f", "\xff\xfe\xc3", "漢字かな交じり文",
	"e\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301", "👩‍👩‍👧‍👦", "\u200b\u2028\ufeff"}
