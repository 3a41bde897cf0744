package catalog

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Arguments returns the arguments of a call from the object that an agent sent in that form, or nil if it sent none.
// The error is an *agent.InputError whose pointer is relative to the object. The object must be valid JSON.
//
// The object holds the arguments by name. If its only members are args, an array, and kwargs, an object, they hold the
// arguments by position and by name, unless the method has parameters with these names. Required arguments must be
// present: a program that runs without one fails, and its health would suffer from the agent's mistake.
func (t *Tool) Arguments(object json.RawMessage,
	form Form) (args []json.RawMessage, kwargs json.RawMessage, err error) {
	if object, err = t.Object(object, form); err != nil {
		return nil, nil, err
	}
	members := map[string]json.RawMessage{}
	if len(object) > 0 && json.Unmarshal(object, &members) != nil {
		return nil, nil, wrongArguments("", "cannot be read")
	}
	if len(members) == 0 {
		object = nil // no keywords
	}
	if !t.splits(members) {
		return nil, object, t.complete(nil, members)
	}
	if list, given := members["args"]; given && json.Unmarshal(list, &args) != nil {
		return nil, nil, wrongArguments("/args", "must be an array, not "+agent.Kind(list))
	}
	named := map[string]json.RawMessage{}
	if list, given := members["kwargs"]; given && string(list) != "null" {
		if json.Unmarshal(list, &named) != nil {
			return nil, nil, wrongArguments("/kwargs", "must be an object, not "+agent.Kind(list))
		}
		kwargs = list
	}
	return args, kwargs, t.complete(args, named)
}

// Object returns the object that an agent sent in that form as Parameters describes it, nil if it sent none, or an
// *agent.InputError. It does not check that required arguments are present.
func (t *Tool) Object(object json.RawMessage, form Form) (json.RawMessage, error) {
	if string(object) == "null" {
		object = nil
	}
	if len(object) == 0 {
		return nil, nil
	}
	if kind := agent.Kind(object); kind != "object" {
		return nil, wrongArguments("", "must be an object, not "+kind)
	}
	object, err := t.readObject(object, form)
	if err != nil || len(t.keys) == 0 {
		return object, err
	}
	return t.renamed(object)
}

// renamed returns the object with parameters under their names instead of the keys that stand for them in schemas.
func (t *Tool) renamed(object json.RawMessage) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(object, &members) != nil {
		return nil, wrongArguments("", "cannot be read")
	}
	for key, name := range t.keys {
		value, given := members[key]
		if _, twice := members[name]; !given || twice {
			continue
		}
		delete(members, key)
		members[name] = value
	}
	return agent.Encoded(members), nil
}

// splits reports whether args and kwargs are the only members, and neither is the name of a parameter.
func (t *Tool) splits(members map[string]json.RawMessage) bool {
	for name := range members {
		p, _ := t.takes.Parameter(name)
		if name != "args" && name != "kwargs" || p != nil {
			return false
		}
	}
	return len(members) > 0
}

// complete returns an error if a required argument is missing.
func (t *Tool) complete(args []json.RawMessage, named map[string]json.RawMessage) error {
	if t.takes == nil {
		return nil
	}
	for i := range t.takes.Parameters {
		p := &t.takes.Parameters[i]
		given := !p.Required || i < len(args)
		for _, name := range append([]string{p.Name}, p.Aliases...) {
			_, there := named[name]
			given = given || there
		}
		if !given {
			return wrongArguments("/"+p.Name, "is required")
		}
	}
	return nil
}

// wrongArguments returns the error for an argument at pointer, relative to the object of arguments.
func wrongArguments(pointer, detail string) error {
	return &agent.InputError{Code: "validation_failed", Pointer: pointer, Detail: detail,
		Hint: `an object of arguments by name, such as {"a": 2, "b": 3}, or {"args": [2, 3]}`}
}
