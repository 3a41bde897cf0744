package rt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/recurgentd/recurgentd/internal/runtime/plain"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// A Panic is a run that ended in a panic.
type Panic struct {
	Class   string // "runtime error", "error", ClassFailure, ClassInput, or the type of the panic's value
	Message string // as Go prints it after "panic: ", at most 4 KiB
	Line    int    // of the program, 0 when unknown
}

// ClassFailure is the class of a run that an internal fault of the engine has ended. Its message is the engine's.
const ClassFailure = "engine failure"

// ClassInput is the class of a run that recurgent.Must has ended: the program could not work with an argument.
const ClassInput = "invalid input"

// A Failure is an internal fault of the engine, as an error and as a panic's value. It says nothing about the program, which cannot recover from
// it, and what was being made or run must not be used again.
type Failure struct {
	Why string // in the engine's own words
}

func (f *Failure) Error() string { return "the engine failed: " + f.Why }

// PanicOf returns what a panic with the value r says, without trusting its methods. It has no line.
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

func clip(s string) string {
	if len(s) > 4096 {
		return s[:4096] + "..."
	}
	return s
}

// Encode returns the JSON form of a program's value as encoding/json gives it natively. A value without one
// (a channel, a function, a cycle, NaN, a method that fails or panics) is an error, a *Failure when the engine is at fault.
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
