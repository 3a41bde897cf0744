package catalog

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Arguments returns the arguments of a call from the object that an agent sent, nil for none, or an *agent.InputError
// whose pointer begins at the object. The object's text must be valid JSON.
//
// The object holds the arguments by name. One that has nothing but args, an array, and kwargs, an object, holds them by
// position and by name, unless the method has parameters of such a name.
func (t *Tool) Arguments(object json.RawMessage) (args []json.RawMessage, kwargs json.RawMessage, err error) {
	if len(object) == 0 || string(object) == "null" {
		return nil, nil, nil
	}
	if kind := agent.Kind(object); kind != "object" {
		return nil, nil, wrongArguments("", "must be an object, not "+kind)
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, nil, wrongArguments("", "cannot be read")
	}
	if t.namesArgs {
		return nil, object, nil
	}
	for name := range members {
		if name != "args" && name != "kwargs" {
			return nil, object, nil
		}
	}
	if list, given := members["args"]; given && json.Unmarshal(list, &args) != nil {
		return nil, nil, wrongArguments("/args", "must be an array, not "+agent.Kind(list))
	}
	if named, given := members["kwargs"]; given && string(named) != "null" {
		if kind := agent.Kind(named); kind != "object" {
			return nil, nil, wrongArguments("/kwargs", "must be an object, not "+kind)
		}
		kwargs = named
	}
	return args, kwargs, nil
}

func wrongArguments(pointer, detail string) error {
	return &agent.InputError{Code: "validation_failed", Pointer: pointer, Detail: detail,
		Hint: `an object of arguments by name, such as {"a": 2, "b": 3}, or {"args": [2, 3]}`}
}
