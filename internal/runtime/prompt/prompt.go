// Package prompt writes the prompts for a model: the messages of a request for a program. The texts are templates
// (system.tmpl, short.tmpl, user.tmpl) with golden renderings in testdata.
//
// The size of a prompt is bounded whatever the input, with two exceptions: the dialect, which is the daemon's own text,
// and a history input, which has limits of its own. The same input gives the same bytes. Writing takes time linear in
// the input: a long value is decoded once, and each of the few rounds that shorten it copies a bounded part.
//
// The last message ends with the elements role, method, args and kwargs, so the last elements with these names in a
// request are always the daemon's. Text from models, programs and clients comes before them, or cannot form a tag: JSON
// is escaped as encoding/json does, role and method have &, < and > as entities, and other text has each < escaped that
// could open a tag. Only failed code is verbatim.
//
// A request shows the content of a text only to its owner; see Quote.
package prompt

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// Version is the version of the prompt, recorded in each artifact. It is informational: an artifact that was forged
// with another version stays valid.
const Version = "2026-11-30.v8"

// kindRegenerate is a forge after failed programs. Its requests count as provider.KindForge.
const kindRegenerate = "regenerate"

// Bounds of the parts of a prompt, in bytes unless noted.
const (
	maxArgs       = 16 << 10 // of args, and of kwargs
	maxFailedCode = 64 << 10
	maxTools      = 100 // known tools that are shown
	maxPurpose    = 4 << 10
	maxContract   = 16 << 10 // per JSON part
	maxMessage    = 4 << 10
	maxPatterns   = 4
	maxConnected  = 24 // connections
	maxFeedback   = 8
	maxKeys       = 40
	maxShape      = 300 // per context key
	maxLines      = 5   // quoted lines of failed code
	maxEvidence   = 12 << 10
	maxListing    = 4 << 10
	maxTurn       = 500 // characters of a turn's arguments, and of its value
)

// Input is the data of a request to a model. Secrets in it must be masked. Everything that is not a Quote came with the
// call itself or is public.
type Input struct {
	// owner of the call, who pays for the request; quotes of other owners are shown without their content
	Owner        string
	Kind         string // provider.KindForge, provider.KindRepair or kindRegenerate
	Role, Method string
	Args         []json.RawMessage
	Kwargs       json.RawMessage // an object; nil means {}
	Depth        int
	Contract     *agent.Contract // nil if there is none
	KnownTools   []Tool          // best first
	Connections  []Connection    // those that programs of the role may use
	Patterns     []string        // capabilities that programs needed repeatedly
	Dialect      string          // the subset of Go that programs may use, as from allow.Dialect
	// largest body of a fetch, such as "16 MiB"; "" leaves fetches out of the prompt
	FetchMax     string
	Fetches      int               // fetches that a call may make
	Files        []File            // files that the arguments refer to, as far as they are shown
	TakesFiles   bool              // the arguments refer to files
	ContextKeys  map[string]string // Shape of each value, by key
	HistoryInput bool              // the call has a history input

	ModelContext int // tokens that the model can read and write together; 0 if unknown

	HistoryTurns []provider.Message // turns of the history input; they follow the system message
	OneOff       bool               // the method takes free text (ask, chat and so on), and its programs are not kept
	Wish         string             // an operator's reason for requesting a new program; "" if there is none

	HistoryCount  int             // records that History gives to a program; negative if unknown
	HistoryLatest []HistoryRecord // at most the last 3 are shown
	Turns         []Turn          // for a method that takes free text: earlier turns, oldest first

	Evidence []Part    // what is known apart from the failed code, at most 12 KiB
	Examples []Example // answers that people expect, at most 3

	Recheck *Recheck // set if a person changed the method's purpose since its program was written

	Earlier string // for a forge: the program whose answers the new one must reproduce; "" if there is none

	FailedCode      string // for a repair; verbatim
	FailureClass    string
	FailureMessage  []Quote        // joined by line breaks
	FailureMetadata map[string]any // details, such as those of a contract violation
	Broke           string         // for a program that failed its proof: BrokeExample or BrokeFixture
	Feedback        []Quote        // failures of earlier attempts in this call, oldest first
}

// Recheck is a program to review because a person changed its method's purpose. The model may reply that the program is
// kept.
type Recheck struct {
	Code string
	// prose of the contract when the program was written or last confirmed; the deliverable and the signature are
	// ignored
	Before agent.Contract
}

// Values of Input.Broke.
const (
	BrokeExample = "example" // it does not give the answer that a person fixed
	BrokeFixture = "fixture" // it answers an earlier call differently from its predecessor
)

// Example is an expected answer that a person fixed. Args and Expect are JSON.
type Example struct {
	Args, Kwargs, Context, Expect json.RawMessage
	Note                          string
}

// Tool is a known tool.
type Tool struct {
	Role        string
	Purpose     string
	Methods     []string // names, or signatures with a summary
	Deliverable json.RawMessage
	Weak        string // how many of its newest answers were weak, and why; "" if none
}

// Connection is an external API for which the daemon holds a credential.
type Connection struct {
	Name, Description string
	Addresses         []string // prefixes of URLs, such as https://api.example.org
	Methods           []string
	Whole             bool // Addresses holds the only address, connection:NAME
}

// File is a file that an argument refers to.
type File struct {
	ID, Name, MediaType string

	Bytes     int64
	Packed    bool     // with gzip; the fields below then describe the content
	Encoding  string   // character set of a text; "" if it is not text
	LineEnd   string   // line end of the first line
	Beginning string   // beginning of a text
	Cut       bool     // the text is longer than Beginning
	End       string   // end of a text that was cut
	Listing   []string // entries of an archive, or sheets of a spreadsheet
}

// HistoryRecord summarizes a record, without its arguments and its value.
type HistoryRecord struct {
	CallID        string `json:"call_id"`
	Speaker       string `json:"speaker"`
	MethodName    string `json:"method_name"`
	OutcomeStatus string `json:"outcome_status"`
	ErrorType     string `json:"error_type,omitempty"`
	Signature     string `json:"signature,omitempty"` // of the method; "" if unknown
}

// Turn is an earlier call of the session with its result, secrets masked. Each part is shown up to 500 characters.
type Turn struct {
	Method       string
	Args, Kwargs json.RawMessage // a list and an object
	Value        json.RawMessage // nil if the call failed, or if the value is not kept any more
	Failure      string          // type and message of the error, if the call failed
}

//go:embed system.tmpl
var systemText string

//go:embed short.tmpl
var shortText string

//go:embed user.tmpl
var userText string

// Program renders the request for a program: a system message, the turns of a history input, and a user message that
// does not depend on those turns. For a model with a small context, the request is short.
func Program(in Input) []provider.Message {
	out, _ := ProgramAndTools(in)
	return out
}

// ProgramAndTools is Program. It also returns the roles of the known tools that the request shows.
func ProgramAndTools(in Input) (request []provider.Message, tools []string) {
	if in.ModelContext > 0 && in.ModelContext <= smallContext {
		request = short(&in)
	} else {
		request = messages(in, systemText, ordinary)
	}
	for _, t := range in.shownTools() {
		tools = append(tools, t.Role)
	}
	return request, tools
}

// messages renders a request with the given system template and bounds.
func messages(in Input, system string, b bounds) []provider.Message {
	out := []provider.Message{{Role: "system", Content: render("system", system, struct {
		Depth        int
		Dialect      string
		HistoryInput bool
		Tools        bool
		FetchMax     string
		Fetches      int
	}{min(max(in.Depth, 0), 2), strings.TrimSpace(in.Dialect), in.HistoryInput, len(in.KnownTools) > 0, in.FetchMax,
		in.Fetches})}}
	out = append(out, in.HistoryTurns...)
	return append(out, provider.Message{Role: "user", Content: render("user", userText, fill(in, b))})
}

// render panics only if a template is faulty. The golden tests render the templates with every part filled and with
// every part empty.
func render(name, text string, data any) string {
	t, err := template.New(name).Parse(text)
	if err != nil {
		panic(fmt.Sprintf("prompt: %v", err))
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		panic(fmt.Sprintf("prompt: %v", err))
	}
	return strings.TrimSpace(b.String())
}
