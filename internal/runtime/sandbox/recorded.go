package sandbox

import (
	"encoding/json"
	"strconv"
)

// EmptyJournal is the effect journal of a call that took nothing from outside: a Request with it as Recorded gets
// nothing real either.
func EmptyJournal() json.RawMessage {
	return json.RawMessage(`{"v":` + strconv.Itoa(journalVersion) + `}`)
}
