// Package local runs ejected programs in this process, without a daemon, a model or a sandbox. It keeps no state
// between calls.
//
// A program is ordinary Go code here. Three things differ from recurgentd: package variables keep their values between
// runs in one process, maps are iterated in random order, and the clock is the machine's. Contracts are not checked,
// and there is no history of calls.
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
	Dir          string // directory of its source and cases, below that of the tools
	// Parameters is a JSON list of Parameter; "" if the parameters are not known.
	Parameters string
	Open       bool // the program may read keywords that are not listed
	Run        func(*recurgent.Call) (any, error)
}

// Host holds the programs that can be called and the resources that they can reach. It is safe for concurrent use if
// its functions and programs are.
type Host struct {
	Programs []Program

	// Fetch performs requests of programs; Get is a plain implementation. If it is nil, fetches are denied.
	Fetch func(recurgent.Request) (*recurgent.Response, error)
	// Download performs call.FetchFile and returns the name given by the remote host; Download of this package is a
	// plain implementation. If it is nil, call.FetchFile is denied.
	Download func(url string) (name string, body io.ReadCloser, err error)
	// Predict answers call.Ask and call.Predict. Set it to use your own model. If it is nil, these fail with an error
	// of type provider.
	Predict func(recurgent.Signature, map[string]any) (map[string]any, error)
	// Files is the directory for call.Open and call.Create. A reference is {"$file": "name in it"}. If it is nil, there
	// are no files.
	Files *os.Root
}

// Request is one call.
type Request struct {
	Role    string                     `json:"role,omitempty"` // may be empty if only one program has the method
	Method  string                     `json:"method"`
	Args    []json.RawMessage          `json:"args,omitempty"`
	Kwargs  map[string]json.RawMessage `json:"kwargs,omitempty"`
	Context map[string]any             `json:"context,omitempty"` // the session's memory
}

// Outcome is the result of a call. Context is the memory after a call that ended ok, to be passed to the next call.
// After an error the memory is unchanged and Context is nil.
type Outcome struct {
	Status       string          `json:"status"` // ok or error
	OK           bool            `json:"ok"`
	Value        json.RawMessage `json:"value,omitempty"`
	ErrorType    string          `json:"error_type,omitempty"`
	ErrorMessage string          `json:"error_message,omitempty"`
	// Retriable means that, according to the program, the same call may succeed later.
	Retriable bool           `json:"retriable,omitempty"`
	Context   map[string]any `json:"context,omitempty"`
}

// Bounds of nested calls, equal to recurgentd's defaults.
const (
	maxDepth  = 8
	maxNested = 64
)

// A run is one call with all its nested calls.
type run struct {
	host   *Host
	nested int
	tape   *tape  // recorded answers; nil means live
	check  bool   // of a case, without a directory for files
	lacks  string // a request of the program that nothing answers here

	held map[string]HeldFile // files of the case
	dir  string              // directory of their bytes

	streams map[int]stream
	last    int // number of the last stream
}

// Call runs a program and its nested calls. Files that the programs leave open are closed.
func (h *Host) Call(q Request) Outcome {
	r := &run{host: h}
	defer r.closeAll()
	return r.call(q, 0)
}

// find returns the program that the role and method identify. An empty role matches any.
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

// call runs a program at that depth of nesting.
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

// guarded runs the program and converts a panic to an error.
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

// encode returns v as JSON. A panic of the value's own JSON method becomes an error.
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

// copied returns a deep copy of the memory by way of JSON, so that nothing is shared with a program.
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
