package provider

import (
	"errors"
	"slices"
	"strings"
)

// maxQuoted bounds how much of a reply that could not be read is shown to the model again, in bytes.
const maxQuoted = 16 << 10

// Again returns the conversation that asks once more after the error, if that is of a reply that could not be read. It quotes the reply, as far
// as it is known, and what was wrong with it: the same bytes would only be paid for again. It returns false for every other error, which
// no other wording cures.
func Again(messages []Message, err error) ([]Message, bool) {
	var failed *Error
	if !errors.As(err, &failed) || !failed.Unread || len(messages) == 0 {
		return nil, false
	}
	note := "Your last reply could not be used: " + failed.Message +
		". Answer again, the whole answer, in the form that was asked for."
	if said := strings.TrimSpace(failed.said); said != "" {
		if len(said) > maxQuoted {
			said = strings.ToValidUTF8(said[:maxQuoted], "") + "..."
		}
		return append(slices.Clip(messages), Message{"assistant", said}, Message{"user", note}), true
	}
	// Roles have to alternate: what cannot be quoted goes into the last message.
	again := slices.Clone(messages)
	last := &again[len(again)-1]
	last.Content += "\n\n" + note
	return again, true
}

// TooLong reports whether the error says that the prompt does not fit into the model's context.
func TooLong(err error) bool {
	var failed *Error
	return errors.As(err, &failed) && failed.step == stepContext
}
