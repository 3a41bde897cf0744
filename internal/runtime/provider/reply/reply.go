// Package reply reads what servers of models send. Canonical makes a chat completion of it, whatever form it came in, or
// finds the error that stands in its place; Program and Text find the answer in the completion, apart from the model's
// thoughts.
//
// All of it is untrusted. The package does no I/O, and knows nothing of how a model is asked.
package reply

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Form is the place in a reply where the program was found; it is a label of metrics.
type Form string

// Forms.
const (
	FormTool     Form = "tool"      // the arguments of a tool call
	FormTextCall Form = "text_call" // a call that the model wrote into the text, or a JSON object
	FormFence    Form = "fence"     // a fenced block, or bare source
	FormNone     Form = "none"      // there is no program
)

// SubmitName is the name of the tool whose arguments are the program.
const SubmitName = "submit_program"

// Found is the program of a reply. Code is never blank, but where Unchanged says that the program is kept.
type Found struct {
	Unchanged   bool
	Form        Form
	Code        string
	Notes       string
	SolverShape json.RawMessage // an object or nil
	Declaration agent.Declaration
}

// An Unusable says why a reply that came holds no answer.
type Unusable struct {
	Cut     bool   // a limit of tokens cut it off: the same request would end the same way
	Message string // what was wrong
	Said    string // the text of the reply, without thoughts
}

func (e *Unusable) Error() string { return e.Message }

// A ServerError is an error that a server sent with a status of success.
type ServerError struct {
	Status  int    // as the error says, in the terms of HTTP: 400 to 599
	Body    []byte // the error itself: JSON, a page or a text
	Partial bool   // part of a reply came before it
}

func (e *ServerError) Error() string { return string(e.Body) }
