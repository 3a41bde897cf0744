package sandbox

import (
	"encoding/json"
	"strconv"
)

// EmptyJournal returns the effect journal of a call that took nothing from outside. A Request that has it as Recorded
// gets no real effects.
func EmptyJournal() json.RawMessage {
	return json.RawMessage(`{"v":` + strconv.Itoa(journalVersion) + `}`)
}
