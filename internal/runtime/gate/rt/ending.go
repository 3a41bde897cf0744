package rt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/recurgentd/recurgentd/internal/runtime/plain"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// A Panic describes a run that ended in a panic.
type Panic struct {
	Class   string // "runtime error", "error", ClassFailure, ClassInput, or the type of the panic's value
	Message string // as Go prints it after "panic: ", at most 4 KiB
	Line    int    // line of the program, from 1; 0 if unknown
}

// ClassFailure is the class of a run that ended because of an internal fault of the engine. The message is the
// engine's.
const ClassFailure = "engine failure"

// ClassInput is the class of a run that recurgent.Must ended because an argument has the wrong type.
const ClassInput = "invalid input"

// A Failure is an internal fault of the engine, both as an error and as the value of a panic. It is not the program's
// fault, and the program cannot recover from it. Whatever was being compiled or run must not be used again.
type Failure struct {
	Why string // the engine's own message
}

// Error returns the message for logs. Why alone is the engine's own.
func (f *Failure) Error() string { return "the engine failed: " + f.Why }

// PanicOf describes a panic with the value r. The methods of r may panic themselves. The result has no line.
func PanicOf(r any) (p *Panic) {
	p = &Panic{}
	defer func() {
		if again := recover(); again != nil {
			p.Class, p.Message = "error", "a panic whose text panics"
		}
		p.Message = clip(p.Message)
	}()
	switch r := r.(type) {
	case *Failure:
		p.Class, p.Message = ClassFailure, r.Why
	case *recurgent.Mismatch:
		p.Class, p.Message = ClassInput, r.Message
	case runtime.Error:
		p.Class, p.Message = "runtime error", r.Error()
	case error:
		p.Class, p.Message = "error", r.Error()
	case nil:
		p.Class, p.Message = "exit", "Run did not return"
	case string:
		p.Class, p.Message = "string", r
	default:
		p.Class, p.Message = fmt.Sprintf("%T", r), fmt.Sprint(r)
	}
	return p
}

// clip shortens a message to 4 KiB.
func clip(s string) string {
	if len(s) > 4096 {
		return s[:4096] + "..."
	}
	return s
}

// Encode returns the JSON of a program's value, as encoding/json encodes it. It returns an error for a value that has
// none (a channel, a function, a cycle, NaN, a method that fails or panics), and a *Failure if the engine is at fault.
func Encode(v any) (out json.RawMessage, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Failure:
			out, err = nil, r
		default:
			out, err = nil, fmt.Errorf("the value's own JSON method panicked: %v", r)
		}
	}()
	if out, ok := plain.Encode(v); ok {
		return out, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return json.RawMessage(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}
