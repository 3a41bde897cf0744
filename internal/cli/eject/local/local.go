// Package local runs ejected programs in this process: without a daemon, a model or a sandbox.
//
// A program is ordinary Go here. Three things differ from recurgentd: package variables keep their values between the runs of a process, maps are
// ranged over in random order, and the clock is the machine's. Contracts are not checked, and there is no history of calls.
package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// A Program answers the calls of one method.
type Program struct {
	Role, Method string
	Purpose      string // of the role
	Dir          string // with its source and its cases, below the directory of the tools
	Parameters   string // JSON of what it reads: a list of Parameter; "" where that is not known
	Run          func(*recurgent.Call) (any, error)
}

// Host has the programs that can be called, and what they can reach. A Host is safe for concurrent use as far as its functions and its programs are.
type Host struct {
	Programs []Program

	// Fetch performs requests of programs; Get is the plain one. Where it is nil, fetches are denied.
	Fetch func(recurgent.Request) (*recurgent.Response, error)
	// Download gets what call.FetchFile asks for, under the name that the host gives it; Download of this package is the plain one. Where it is nil, this is denied.
	Download func(url string) (name string, body io.ReadCloser, err error)
	// Predict answers call.Ask and call.Predict. Fill it in with a model of your own; where it is nil, these end in an error of the type provider.
	Predict func(recurgent.Signature, map[string]any) (map[string]any, error)
	// Files is the directory of call.Open and call.Create: a reference is {"$file": "name in it"}. Where it is nil, there are no files.
	Files *os.Root
}

// Request is one call.
type Request struct {
	Role    string                     `json:"role,omitempty"` // may be empty where only one program has the method
	Method  string                     `json:"method"`
	Args    []json.RawMessage          `json:"args,omitempty"`
	Kwargs  map[string]json.RawMessage `json:"kwargs,omitempty"`
	Context map[string]any             `json:"context,omitempty"` // the memory of the session
}

// Outcome is how a call ended. Context is the memory after a call that ended ok, to be given to the next one; otherwise nothing of it has changed.
type Outcome struct {
	Status       string          `json:"status"` // ok or error
	OK           bool            `json:"ok"`
	Value        json.RawMessage `json:"value,omitempty"`
	ErrorType    string          `json:"error_type,omitempty"`
	ErrorMessage string          `json:"error_message,omitempty"`
	Retriable    bool            `json:"retriable,omitempty"` // the program says that the same call may succeed later
	Context      map[string]any  `json:"context,omitempty"`
}

// Bounds of nested calls, as recurgentd has them by default.
const (
	maxDepth  = 8
	maxNested = 64
)

// A run is one call with all that its programs call in turn.
type run struct {
	host   *Host
	nested int
	tape   *tape  // recorded answers; nil: live
	lacks  string // what a test asked for that nothing recorded answers

	held map[string]HeldFile // files of the case
	dir  string              // that has their bytes

	streams map[int]stream
	last    int // number of a stream
}

// Call runs a program.
func (h *Host) Call(q Request) Outcome {
	r := &run{host: h}
	defer r.closeAll()
	return r.call(q, 0)
}

// find returns the program that the request names.
func (h *Host) find(role, method string) (*Program, error) {
	var found *Program
	for i := range h.Programs {
		p := &h.Programs[i]
		if p.Method != method || role != "" && p.Role != role {
			continue
		}
		if found != nil {
			return nil, &recurgent.Failure{Type: "invalid_input",
				Message: fmt.Sprintf("more than one role has the method %q; name the role", method)}
		}
		found = p
	}
	if found == nil {
		return nil, &recurgent.Failure{Type: "not_ejected",
			Message: fmt.Sprintf("there is no program of role %q and method %q here", role, method)}
	}
	return found, nil
}

func (r *run) call(q Request, depth int) Outcome {
	p, err := r.host.find(q.Role, q.Method)
	if err != nil {
		return failed(err)
	}
	args, kwargs, err := p.arrange(q.Args, q.Kwargs)
	if err != nil {
		return failed(err)
	}
	memory, err := copied(q.Context)
	if err != nil {
		return failed(err)
	}
	call, err := recurgent.New(recurgent.Input{Role: p.Role, Method: p.Method, Depth: depth, Args: args, Kwargs: kwargs,
		Context: memory}, &asker{r, depth})
	if err != nil {
		return failed(&recurgent.Failure{Type: "invalid_input", Message: err.Error()})
	}
	value, err := guarded(p.Run, call)
	if unwritten := recurgent.Finish(call); err == nil {
		err = unwritten
	}
	if err != nil {
		return failed(err)
	}
	raw, err := encode(value)
	if err == nil {
		memory, err = copied(call.Context)
	}
	if err != nil {
		return failed(&recurgent.Failure{Type: "non_serializable_result", Message: err.Error()})
	}
	return Outcome{Status: "ok", OK: true, Value: raw, Context: memory}
}

// guarded turns a panic into an error.
func guarded(program func(*recurgent.Call) (any, error), call *recurgent.Call) (value any, err error) {
	defer func() {
		if r := recover(); r != nil {
			value, err = nil, &recurgent.Failure{Type: "execution", Message: fmt.Sprintf("panic: %v", r)}
		}
	}()
	return program(call)
}

func failed(err error) Outcome {
	f := recurgent.AsFailure(err)
	return Outcome{Status: "error", ErrorType: f.Type, ErrorMessage: f.Message, Retriable: f.Retriable}
}

func encode(v any) (out json.RawMessage, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("the value's own JSON method panicked: %v", r)
		}
	}()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// copied returns the memory as JSON has it: nothing that a program holds on to is shared.
func copied(memory map[string]any) (map[string]any, error) {
	if len(memory) == 0 {
		return map[string]any{}, nil
	}
	raw, err := encode(maps.Clone(memory))
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, json.Unmarshal(raw, &out)
}

var errNoModel = errors.New("there is no model here: fill in local.Host.Predict")
