// Package report is the gate's result for a program: facts when it may run, a refusal when it may not. It holds plain
// data and parses nothing. So the daemon, which must never parse what a model wrote, can read the findings of a runner's
// gate.
package report

import (
	"fmt"
	"slices"
)

// Types of refusals.
const (
	InvalidCode      = "invalid_code"
	ToolRegistry     = "tool_registry_violation"
	DependencyPolicy = "dependency_policy_violation"
	Unsupported      = "unsupported_capability" // nothing is wrong with the program: what it needs is not there
)

// A Refusal says why a program may not run, in words that the model which wrote it can follow.
type Refusal struct {
	// invalid_code, tool_registry_violation, dependency_policy_violation or unsupported_capability
	Type    string `json:"type"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"` // of the first fault, 1-based; 0 where there is no one place
	Column  int    `json:"column,omitempty"`
	Hint    string `json:"hint,omitempty"` // the correction to make
	// up to 10 lines as the compiler prints them: "program.go:12:3: undefined: x"
	Errors []string `json:"errors,omitempty"`
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Facts is what the syntax tree shows about a program. It comes over the pipe from a confined process: a reader
// must treat it as hostile, though everything in it is bounded here.
type Facts struct {
	Imports []string `json:"imports"`
	// name and version of what runs the program, at most 64 bytes; the runner sets it
	Engine             string   `json:"engine,omitempty"`
	HistoryAccess      bool     `json:"history_access,omitempty"`
	HistoryPatterns    []string `json:"history_patterns,omitempty"`    // filter map slice count group; sorted, unique
	CapabilityPatterns []string `json:"capability_patterns,omitempty"` // http_fetch, json_shape ...; sorted, unique
	// string and number literals baked into the code, as JSON text; at most 256 of at most 200 bytes
	Literals       []string `json:"literals,omitempty"`
	UsesArgs       bool     `json:"uses_args,omitempty"`     // any of Args, Kwargs, Arg, Bind
	ContextReads   []string `json:"context_reads,omitempty"` // keys; "*" for a key that is not a literal
	ContextWrites  []string `json:"context_writes,omitempty"`
	UsesTools      bool     `json:"uses_tools,omitempty"`
	UsesFetch      bool     `json:"uses_fetch,omitempty"`
	UsesDelegate   bool     `json:"uses_delegate,omitempty"`
	UsesClock      bool     `json:"uses_clock,omitempty"`
	UsesRandomness bool     `json:"uses_chance,omitempty"`
	UsesContent    bool     `json:"uses_content,omitempty"`
	Prints         bool     `json:"prints,omitempty"` // to an output that there is not
	// it looks whether numbers are float64, and has Bind to read their digits
	DigitsByBind bool `json:"digits_by_bind,omitempty"`
	// it asserts float64 and does not look whether it is one: a json.Number counts as 0
	TakesForZero bool `json:"takes_for_zero,omitempty"`

	// what was repaired before the check, with lines of the kept text; the daemon sets it
	Fixes []string `json:"fixes,omitempty"`

	// Hosts, writes and tools that the text names, each at most 64; "*" for what is computed: see package outside.
	Hosts  []string `json:"hosts,omitempty"`  // with their scheme: https://api.example.org
	Writes []string `json:"writes,omitempty"` // HTTP methods but GET and HEAD
	Tools  []string `json:"tools,omitempty"`  // role.method

	// JSON of what the program reads and returns, inferred; as text, since facts nest a few levels only
	Interface string `json:"interface,omitempty"`
}

// ContextHistory is the context key under which a program finds the records of its session.
const ContextHistory = "conversation_history"

// FindsRecords reports whether the program may come upon the session's records in its context: it uses the context as a whole, or by a key that is
// theirs or not a constant.
func (f *Facts) FindsRecords() bool {
	return slices.Contains(f.ContextReads, ContextHistory) || slices.Contains(f.ContextReads, "*")
}

// NamesHistory reports whether the program's text names the session's records.
func (f *Facts) NamesHistory() bool {
	return f.HistoryAccess || slices.Contains(f.ContextReads, ContextHistory) ||
		slices.Contains(f.ContextReads, "*") && slices.Contains(f.Literals, `"`+ContextHistory+`"`)
}

// Terms is what is known of a program beside its text when it is fixed. The zero value is nothing.
type Terms struct {
	Parameters []Parameter `json:"parameters,omitempty"` // as declared, in positional order
	Method     string      `json:"method,omitempty"`
	Null       bool        `json:"null,omitempty"` // the contract or the declaration speaks of null
	// JSON type of the value, as declared or as the contract has it; "" where that is not known, or may be null
	Returns  string   `json:"returns,omitempty"`
	Required []string `json:"required,omitempty"` // members of the object that the deliverable requires
}

// A Parameter is one that a program's author has declared.
type Parameter struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"` // declared not to be required
}

// A Fix is one repair that the gate made in a program's text.
type Fix struct {
	Line int    `json:"line"` // of the text that is kept, from 1
	Text string `json:"text"` // what was repaired
}

func (m Fix) String() string { return fmt.Sprintf("line %d: %s", m.Line, m.Text) }

// Fixed is what the gate made of a text.
type Fixed struct {
	Text   string `json:"text"` // with the fixes
	Fixes  []Fix  `json:"fixes,omitempty"`
	Faults []Fix  `json:"faults,omitempty"` // why it is not to be kept though it compiles
}

// Refusal names the faults; nil where there are none.
func (f *Fixed) Refusal() *Refusal {
	if len(f.Faults) == 0 {
		return nil
	}
	r := &Refusal{Type: InvalidCode, Line: f.Faults[0].Line}
	for _, one := range f.Faults {
		r.Errors = append(r.Errors, fmt.Sprintf("program.go:%d: %s", one.Line, one.Text))
	}
	r.Message = r.Errors[0]
	return r
}

// Engines, and the settings that choose one.
const (
	EngineAuto  = "auto"  // go where there is a compiler, else yaegi
	EngineGo    = "go"    // the Go compiler makes an executable of each program
	EngineYaegi = "yaegi" // an interpreter runs plain programs, and others are refused
	EngineSSA   = "ssa"   // an earlier name of go; in entries of before, an interpreter
)

// Engines returns the settings.
func Engines() []string { return []string{EngineAuto, EngineGo, EngineSSA, EngineYaegi} }
