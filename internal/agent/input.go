package agent

import "fmt"

// An InputError reports which part of a request is invalid. The request recorded nothing. Code is stable.
type InputError struct {
	// Code is invalid_name, invalid_contract, invalid_context, invalid_history_value, invalid_history_element,
	// too_large ...
	Code string
	// Pointer is a JSON pointer (RFC 6901) into the request body, "" for the whole body.
	Pointer string
	Detail  string
	Hint    string         // what to send instead; may be ""
	Meta    map[string]any // more members of the problem details: field, expected, got, index, reason
}

func (e *InputError) Error() string { return fmt.Sprintf("%s: %s", e.Pointer, e.Detail) }
