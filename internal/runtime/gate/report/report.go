// Package report defines the result of the gate for a program: facts if it may run, a refusal if it may not. It holds
// plain data and parses nothing, so the daemon, which must never parse what a model wrote, can read the findings of a
// runner's gate.
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
	Unsupported      = "unsupported_capability" // the program is fine, but this installation lacks what it needs
)

// A Refusal explains why a program may not run, in terms that the model that wrote it can act on.
type Refusal struct {
	// Type is invalid_code, tool_registry_violation, dependency_policy_violation or unsupported_capability.
	Type    string `json:"type"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"` // of the first fault, from 1; 0 if the fault has no position
	Column  int    `json:"column,omitempty"`
	Hint    string `json:"hint,omitempty"` // the correction to make
	// Errors has one line per fault as the compiler prints it: "program.go:12:3: undefined: x".
	Errors []string `json:"errors,omitempty"`
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Facts describes a program by its syntax tree. It comes over the pipe from a confined process, so a reader must treat
// it as hostile; the gate bounds every list in it.
type Facts struct {
	Imports []string `json:"imports"`
	// Engine is the name and version of the engine that runs the program, at most 64 bytes. The runner sets it.
	Engine             string   `json:"engine,omitempty"`
	HistoryAccess      bool     `json:"history_access,omitempty"`
	HistoryPatterns    []string `json:"history_patterns,omitempty"`    // filter map slice count group; sorted, unique
	CapabilityPatterns []string `json:"capability_patterns,omitempty"` // http_fetch, json_shape ...; sorted, unique
	// Literals are the string and number literals of the code, as JSON: at most 256 of at most 200 bytes each.
	Literals       []string `json:"literals,omitempty"`
	UsesArgs       bool     `json:"uses_args,omitempty"`     // any of Args, Kwargs, Arg, Bind
	ContextReads   []string `json:"context_reads,omitempty"` // keys; "*" for a key that is not constant
	ContextWrites  []string `json:"context_writes,omitempty"`
	UsesTools      bool     `json:"uses_tools,omitempty"`
	UsesFetch      bool     `json:"uses_fetch,omitempty"`
	UsesDelegate   bool     `json:"uses_delegate,omitempty"`
	UsesClock      bool     `json:"uses_clock,omitempty"`
	UsesRandomness bool     `json:"uses_chance,omitempty"`
	UsesContent    bool     `json:"uses_content,omitempty"`
	Prints         bool     `json:"prints,omitempty"` // prints to an output that does not exist
	// Nondeterministic is set where a library may yield something else in a run with the same time and randomness.
	Nondeterministic bool `json:"nondeterministic,omitempty"`

	// Fixes lists the repairs made before the check, with lines of the stored text. The daemon sets it.
	Fixes []string `json:"fixes,omitempty"`

	// Hosts, Writes and Tools are named by the text, at most 64 each; "*" stands for a computed name. See package
	// outside.
	Hosts  []string `json:"hosts,omitempty"`  // with the scheme: https://api.example.org
	Writes []string `json:"writes,omitempty"` // HTTP methods other than GET and HEAD
	Tools  []string `json:"tools,omitempty"`  // role.method

	// Interface is the JSON of what the program reads and returns, as inferred. It is a string because facts may nest
	// only a few levels.
	Interface string `json:"interface,omitempty"`
}

// ContextHistory is the context key for the records of the session.
const ContextHistory = "conversation_history"

// FindsRecords reports whether the program may read the session's records from its context: it uses the context as a
// whole, or with the key of the records or one that is not constant.
func (f *Facts) FindsRecords() bool {
	return slices.Contains(f.ContextReads, ContextHistory) || slices.Contains(f.ContextReads, "*")
}

// NamesHistory reports whether the program's text refers to the session's records.
func (f *Facts) NamesHistory() bool {
	return f.HistoryAccess || slices.Contains(f.ContextReads, ContextHistory) ||
		slices.Contains(f.ContextReads, "*") && slices.Contains(f.Literals, `"`+ContextHistory+`"`)
}

// Terms is what is known about a program apart from its text when it is fixed. The zero value means nothing is known.
type Terms struct {
	Parameters []Parameter `json:"parameters,omitempty"` // as declared, in positional order
	Method     string      `json:"method,omitempty"`
	Null       bool        `json:"null,omitempty"` // the contract or the declaration mentions null
	// Returns is the JSON type of the value according to the declaration or the contract. It is "" if the type is
	// unknown or may be null.
	Returns  string   `json:"returns,omitempty"`
	Required []string `json:"required,omitempty"` // members that the deliverable requires of the object
	Keys     []string `json:"keys,omitempty"`     // words that the purpose lists in braces
}

// A Parameter is a parameter that a program's author has declared.
type Parameter struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"` // declared as not required
}

// A Fix is one repair of a program's text, or one fault in it.
type Fix struct {
	Line int    `json:"line"` // from 1, in the fixed text
	Text string `json:"text"` // what was repaired, or is wrong
}

// String returns the fix with its line, for people.
func (m Fix) String() string { return fmt.Sprintf("line %d: %s", m.Line, m.Text) }

// Fixed is the result of fixing a program's text.
type Fixed struct {
	Text   string `json:"text"` // the text after the repairs
	Fixes  []Fix  `json:"fixes,omitempty"`
	Faults []Fix  `json:"faults,omitempty"` // reasons to refuse the text although it compiles
}

// Refusal returns a refusal that lists the faults, or nil if there are none.
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

// These are the engines and the settings that choose one.
const (
	EngineAuto  = "auto"  // go if there is a compiler, otherwise yaegi
	EngineGo    = "go"    // the Go compiler builds an executable for each program
	EngineYaegi = "yaegi" // an interpreter runs plain programs and refuses all others
	EngineSSA   = "ssa"   // an earlier name of go; in old entries, an interpreter
)

// Engines returns the valid settings.
func Engines() []string { return []string{EngineAuto, EngineGo, EngineSSA, EngineYaegi} }
