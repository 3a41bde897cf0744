package reply

import (
	"encoding/json"
	"errors"
)

// Canonical makes a chat completion of what a server sent with a status of success. The error is a *ServerError where that
// is an error, else it says why the body cannot be read.
func Canonical(body []byte, contentType string) ([]byte, error) {
	if !json.Valid(body) {
		return nil, errors.New("it is not JSON")
	}
	return body, nil
}
