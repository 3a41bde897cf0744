// Package prompt writes the prompts for a model: the messages of a request for a program. The texts are templates
// (system.tmpl, user.tmpl) with golden renderings in testdata.
//
// The size of a prompt is bounded whatever the input, except for the dialect, which is our own text, and a history input,
// which has limits of its own. The same input
// gives the same bytes. The last message ends with the elements role, method, args and kwargs, so the last elements of
// these names in a request are always ours. Text from models, programs and clients comes before them, or cannot form a
// tag: JSON is escaped as encoding/json does, role and method have &, < and > as entities, and other text has each <
// escaped that could open a tag. Only failed code is verbatim. Writing takes a time linear in the input: a long value is decoded once, and each of
// the few rounds that shorten it copies a bounded part.
//
// A request shows the content of texts only to whose they are: see Quote.
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

// Version is the prompt's version, noted with each artifact. It is metadata: an artifact forged with another version is
// as good as before.
const Version = "2026-11-30.v7"

// KindRegenerate is a forge after programs that failed. Requests of it count as provider.KindForge.
const KindRegenerate = "regenerate"

// Bounds of what goes into a prompt, in bytes where nothing else is said.
const (
	MaxArgs       = 16 << 10 // of args, and of kwargs
	MaxFailedCode = 64 << 10
	MaxTools      = 100 // known tools, where the input holds more
	maxPurpose    = 4 << 10
	maxContract   = 16 << 10 // of each JSON part
	maxMessage    = 4 << 10
	maxPatterns   = 4
	maxConnected  = 24 // connections
	maxFeedback   = 8
	maxKeys       = 40
	maxShape      = 300 // of a context key
	maxLines      = 5   // of failed code that are shown again
	maxEvidence   = 12 << 10
	maxListing    = 4 << 10
	maxTurn       = 500 // characters of a turn's arguments, and of its value
)

// Input is the data of a request to a model. Secrets in it are masked already. What is no Quote came with the call itself, or is public.
type Input struct {
	Owner        string // of the call, who pays for the request: other owners' quotes are shown without their content
	Kind         string // provider.KindForge, provider.KindRepair or KindRegenerate
	Role, Method string
	Args         []json.RawMessage
	Kwargs       json.RawMessage // an object; nil is {}
	Depth        int
	Contract     *agent.Contract // nil for none
	KnownTools   []Tool          // best first
	Connections  []Connection    // that programs of the role may use
	Patterns     []string        // capabilities that keep coming back
	Dialect      string          // what the Go of programs may be: allow.Dialect()
	// the largest body of a fetch, such as "16 MiB"; empty where fetches need not be spoken of
	FetchMax     string
	Fetches      int               // that a call may make
	Files        []File            // that the arguments refer to
	ContextKeys  map[string]string // by key, what Shape says of its value
	HistoryInput bool              // the call brought a history input

	ModelContext int // tokens that the model can read and write together; 0 where that is not known

	HistoryTurns []provider.Message // turns of the history input; they follow the system message
	OneOff       bool               // the method takes free text (ask, chat ...): its programs are not kept
	Wish         string             // an operator's reason to ask for a new program; empty when nobody asked

	HistoryCount  int             // of the records that History gives to a program; negative where it is not known
	HistoryLatest []HistoryRecord // at most 3 are shown, the last ones
	Turns         []Turn          // of a method that takes free text: what was said before, oldest first

	Evidence []Part    // what is known apart from the failed code, at most 12 KiB
	Examples []Example // what people expect, at most 3

	Recheck *Recheck // a person has changed what the method is for since its program was written; nil else

	Earlier string // of a forge, the program whose answers the new one must give again; empty where there is none

	FailedCode      string // of a repair, verbatim
	FailureClass    string
	FailureMessage  []Quote        // joined by line breaks
	FailureMetadata map[string]any // details, such as those of a contract violation
	Broke           string         // of a program that failed its proof: BrokeExample, BrokeFixture
	Feedback        []Quote        // of earlier attempts of this call, oldest first
}

// Recheck is the program that a model is asked about because a person has changed what its method is for: it may say that the program is kept.
type Recheck struct {
	Code string
	// the prose that was registered when it was written, or checked; the deliverable and the signature are not looked at
	Before agent.Contract
}

// Values of Input.Broke.
const (
	BrokeExample = "example" // it does not give the answer that a person fixed
	BrokeFixture = "fixture" // it answers an earlier call otherwise than its predecessor did
)

// Example is an expected answer that a person fixed; Args and Expect are JSON.
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
	Weak        string // how many of its newest answers were weak, and why; "" for none
}

// Connection is an external API for which the daemon holds a credential.
type Connection struct {
	Name, Description string
	Addresses         []string // how addresses begin, such as https://api.example.org
	Methods           []string
	Whole             bool // Addresses has the one address that there is, connection:NAME
}

// File is a file that an argument refers to.
type File struct {
	ID, Name, MediaType string

	Bytes     int64
	Packed    bool     // by gzip: what follows is said of what is inside
	Encoding  string   // of a text, "" for no text
	LineEnd   string   // of its first line
	Beginning string   // of a text
	Cut       bool     // it is longer
	End       string   // of a longer one
	Listing   []string // what an archive holds, or the sheets of a spreadsheet
}

// HistoryRecord is the summary of a record: never its arguments or value.
type HistoryRecord struct {
	CallID        string `json:"call_id"`
	Speaker       string `json:"speaker"`
	MethodName    string `json:"method_name"`
	OutcomeStatus string `json:"outcome_status"`
	ErrorType     string `json:"error_type,omitempty"`
	Signature     string `json:"signature,omitempty"` // of the method, where it is known
}

// Turn is an earlier call of the session with what it gave, secrets masked. Each part is shown up to 500 characters.
type Turn struct {
	Method       string
	Args, Kwargs json.RawMessage // a list, an object
	Value        json.RawMessage // nil when the call failed, or when its value is not kept any more
	Failure      string          // type and message of a call that failed
}

//go:embed system.tmpl
var systemText string

//go:embed short.tmpl
var shortText string

//go:embed user.tmpl
var userText string

// Program renders the request for a program: a system message, the turns of a history input, and a user message that is the
// same with and without them. For a model with a small context it is short.
func Program(in Input) []provider.Message {
	out, _ := ProgramAndTools(in)
	return out
}

// ProgramAndTools is Program, with the roles of the known tools that the request shows.
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

// render panics only on a fault of our own templates, which the golden tests render with every part filled and empty.
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
