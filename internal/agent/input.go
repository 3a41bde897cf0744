package agent

import "fmt"

// An InputError reports which part of a request is invalid. Nothing was recorded. Code is stable.
type InputError struct {
	// invalid_name, invalid_contract, invalid_context, invalid_history_value, invalid_history_element, too_large ...
	Code    string
	Pointer string // JSON pointer (RFC 6901) into the request body, "" for the whole body
	Detail  string
	Hint    string         // what to send instead; may be ""
	Meta    map[string]any // more members of the problem detail: field, expected, got, index, reason
}

func (e *InputError) Error() string { return fmt.Sprintf("%s: %s", e.Pointer, e.Detail) }
