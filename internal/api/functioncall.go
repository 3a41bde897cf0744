package api

import (
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
	"github.com/recurgentd/recurgentd/internal/strict"
)

// A functionCall is the body of a function call, as a model requested it.
type functionCall struct {
	arguments json.RawMessage // nil if the body has none
	form      catalog.Form
	session   string // "" for a new one
}

// decodeFunction reads a body. The arguments may be an object, or its text as models send it; strict reports how they
// were encoded.
func decodeFunction(data []byte) (*functionCall, error) {
	c := &functionCall{form: catalog.Unknown}
	var f fields
	err := strict.Members(data, func(name, v []byte) error {
		switch string(name) {
		case "arguments":
			c.arguments = f.argumentsOf(v)
		case "strict":
			if held := false; !isNull(v) {
				if f.boolean("/strict", v, &held); held {
					c.form = catalog.Strict
				} else {
					c.form = catalog.Sparse
				}
			}
		case "session_id":
			f.short("/session_id", v, &c.session, 64)
			if c.session != "" && !goodID(c.session) {
				f.bad("/session_id", "is not the id of a session", "leave it out for a session of its own")
			}
		default:
			f.unknown("", name, "arguments, strict, session_id")
		}
		return nil
	})
	if err != nil {
		return nil, shapeProblem(err)
	}
	return c, f.err()
}

// read reads the arguments of a built-in tool by member, and then calls check. It returns all errors together.
func (c *functionCall) read(t *catalog.Tool, member func(f *fields, name, v []byte), check func(f *fields)) error {
	object, err := t.Object(c.arguments, c.form)
	if err != nil {
		return inArguments(err)
	}
	var f fields
	if object != nil {
		_ = strict.Members(object, func(name, v []byte) error { // cannot fail: the whole body has passed
			member(&f, name, v)
			return nil
		})
	}
	check(&f)
	return f.err()
}

// inArguments moves the error's JSON pointer below /arguments.
func inArguments(err error) error {
	var bad *agent.InputError
	if errors.As(err, &bad) {
		bad.Pointer = "/arguments" + bad.Pointer
		bad.Detail = bad.Pointer + " " + bad.Detail // some clients show models only the detail
	}
	return err
}

// argumentsOf returns the arguments, parsed from a string if they are one. It does not check other values:
// Tool.Arguments and Tool.Object do.
func (f *fields) argumentsOf(v []byte) json.RawMessage {
	text, ok := strict.String(v)
	if !ok {
		return v
	}
	if text == "" { // some models send "" for no arguments
		return nil
	}
	object := []byte(text)
	if err := strict.Members(object, func(_, _ []byte) error { return nil }); err != nil {
		f.bad("/arguments", "as text must be a JSON object: "+err.Error(),
			`such as {"arguments": "{\"a\": 2, \"b\": 3}"}`)
	}
	return object
}
