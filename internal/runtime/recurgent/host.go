package recurgent

import (
	"encoding/json"
	"errors"
	"fmt"
)

// This file is the runner's side. The gate hides it from programs.

// Host carries a program's requests to the daemon. Ask sends the operation with its parameters as JSON and decodes the
// answer into result; a nil result discards it. Ask returns only errors of type *Failure: the daemon refused the
// request, or the call is over. Only the goroutine that runs the program calls Ask.
//
// Operations: history, tools, call, delegate, fetch, fetch_file, content, predict, file and log. A Host that implements
// Streams also has open, create and decode, which answer with a stream.
type Host interface {
	Ask(op string, params, result any) error
}

// Streams is the part of a Host that carries the contents of files. A Host without it has no files.
type Streams interface {
	// ReadStream reads the next bytes of an open file into p, as io.Reader does. An error, io.EOF included, closes the
	// stream.
	ReadStream(stream int, p []byte) (int, error)
	WriteStream(stream int, p []byte) error
	CloseStream(stream int)
}

// Finish closes the files that the program has created, which sends their buffered bytes to the host. It returns the
// first error, or one for a file that was written to after it was closed. The program has not seen that error, so its
// result must not count as a success.
func Finish(c *Call) error {
	for _, f := range c.made {
		if err := f.Close(); err != nil {
			return err
		}
		if f.late {
			return fmt.Errorf("the file %q was written to after it was closed: close or flush what writes to it first",
				f.name)
		}
	}
	return nil
}

// Input is the input of a call, as the runner received it.
type Input struct {
	Role, Method, CallID, TraceID string

	Depth        int
	Args         []json.RawMessage
	Kwargs       map[string]json.RawMessage
	Context      map[string]any
	InputHistory json.RawMessage // {"messages": [...]}, or empty

	// Decode decodes one argument. nil means Unmarshal.
	Decode func([]byte) (any, error)
}

// New returns the Call for a program's Run. It returns an error if an argument is not valid JSON.
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
	var err error
	for i, raw := range in.Args {
		if c.Args[i], err = decode(raw); err != nil {
			return nil, err
		}
	}
	for k, raw := range in.Kwargs {
		if c.Kwargs[k], err = decode(raw); err != nil {
			return nil, err
		}
	}
	if c.Context == nil {
		c.Context = map[string]any{}
	}
	return c, nil
}

// A Failure is an error with an error type. Fail returns one, and every error of a Host is one.
type Failure struct {
	Type      string
	Message   string
	Retriable bool // set by FailRetriable
}

// Error returns the message without the type.
func (f *Failure) Error() string { return f.Message }

// A Mismatch is the panic value of Must. It ends the call with invalid_input.
type Mismatch struct{ Message string }

// Error returns the message.
func (m *Mismatch) Error() string { return m.Message }

// AsFailure returns the Failure in err's chain with the message of err itself. Any other error becomes a tool_error
// with its message.
func AsFailure(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return &Failure{Type: f.Type, Message: err.Error(), Retriable: f.Retriable}
	}
	return &Failure{Type: "tool_error", Message: err.Error()}
}
