package recurgent

import (
	"encoding/json"
	"errors"
)

// This file is the runner's side. The gate does not export it to programs.

// Host carries a program's questions to the daemon. Ask sends the operation with its parameters as JSON and decodes
// the answer into result (nil discards it). An error that Ask returns is a *Failure: the daemon's refusal, or the
// word that the call is over. Ask is called from the one goroutine that runs the program.
//
// Operations: history, tools, call, delegate, fetch, content, predict, file, log and, of a Host that is Streams, open and create, which answer
// with a stream.
type Host interface {
	Ask(op string, params, result any) error
}

// Streams is the part of a Host that carries the bytes of files. Without it there are none.
type Streams interface {
	// ReadStream reads the next bytes of an open file into p, as io.Reader does. The stream is closed once it returns an error.
	ReadStream(stream int, p []byte) (int, error)
	WriteStream(stream int, p []byte) error
	CloseStream(stream int)
}

// Finish hands over what the program has written to its files. An error is one that it has not seen.
func Finish(c *Call) error {
	for _, f := range c.made {
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Input is what a call brings along, as it came over the pipe.
type Input struct {
	Role, Method, CallID, TraceID string

	Depth        int
	Args         []json.RawMessage
	Kwargs       map[string]json.RawMessage
	Context      map[string]any
	InputHistory json.RawMessage // {"messages": [...]} or nothing

	// an argument that is a number is a float64 in Args and Kwargs, however many digits it has; Bind has them all
	Floats bool

	Decode func([]byte) (any, error) // decodes an argument as Unmarshal does, which nil stands for
}

// New makes the Call that a program's Run receives. It fails when an argument is not JSON.
func New(in Input, h Host) (*Call, error) {
	c := &Call{
		Role: in.Role, Method: in.Method, CallID: in.CallID, TraceID: in.TraceID, Depth: in.Depth,
		Args: make([]any, len(in.Args)), Kwargs: make(map[string]any, len(in.Kwargs)), Context: in.Context,
		host: h, rawArgs: in.Args, rawKwargs: in.Kwargs, inputHistory: in.InputHistory,
	}
	decode := in.Decode
	if decode == nil {
		decode = func(raw []byte) (v any, err error) {
			err = Unmarshal(raw, &v)
			return v, err
		}
	}
	argument := func(raw []byte) (any, error) {
		v, err := decode(raw)
		if n, digits := v.(json.Number); digits && in.Floats {
			return n.Float64()
		}
		return v, err
	}
	var err error
	for i, raw := range in.Args {
		if c.Args[i], err = argument(raw); err != nil {
			return nil, err
		}
	}
	for k, raw := range in.Kwargs {
		if c.Kwargs[k], err = argument(raw); err != nil {
			return nil, err
		}
	}
	if c.Context == nil {
		c.Context = map[string]any{}
	}
	return c, nil
}

// A Failure is an error with a type: what Fail returns and what a Host answers.
type Failure struct {
	Type      string
	Message   string
	Retriable bool // a program says so
}

func (f *Failure) Error() string { return f.Message }

// A Mismatch is what Must panics with. It ends the call in invalid_input.
type Mismatch struct{ Message string }

func (m *Mismatch) Error() string { return m.Message }

// AsFailure finds the Failure in err; a plain error is a tool_error with its text.
func AsFailure(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return &Failure{Type: f.Type, Message: err.Error(), Retriable: f.Retriable}
	}
	return &Failure{Type: "tool_error", Message: err.Error()}
}
