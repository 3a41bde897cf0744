// Package reply reads the replies of model servers. Canonical converts a reply in any format to a chat completion, or
// finds the error in its place. Program and Text find the answer in the completion, apart from the model's thoughts.
//
// The package treats its input as untrusted. It does no I/O and does not know how a model is asked.
package reply

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Form is the place in a reply where the program was found. It is a label of metrics.
type Form string

// Values of Form.
const (
	FormTool     Form = "tool"      // the arguments of a tool call
	FormTextCall Form = "text_call" // a call written into the text, or a JSON object
	FormFence    Form = "fence"     // a fenced block, or bare source
	FormNone     Form = "none"      // no program
)

// SubmitName is the name of the tool whose arguments are the program.
const SubmitName = "submit_program"

// Found is the program of a reply. Code is not blank unless Unchanged is set, which means that the program is kept.
type Found struct {
	Unchanged   bool
	Form        Form
	Code        string
	Notes       string
	SolverShape json.RawMessage // an object or nil
	Declaration agent.Declaration
}

// An Unusable explains why a reply contains no answer.
type Unusable struct {
	Cut     bool   // a token limit cut the reply off; the same request would end the same way
	Message string // what was wrong
	Said    string // the text of the reply, without thoughts
}

func (e *Unusable) Error() string { return e.Message }

// A ServerError is an error that a server sent with a success status.
type ServerError struct {
	Status  int    // the corresponding HTTP status, 400 to 599
	Body    []byte // the error itself: JSON, a page or a text
	Partial bool   // part of a reply preceded it
}

func (e *ServerError) Error() string { return string(e.Body) }
