package provider

import (
	"errors"
	"slices"
	"strings"
)

// maxQuoted bounds how many bytes of an unreadable reply are quoted to the model.
const maxQuoted = 16 << 10

// Again returns a conversation that asks once more, if err is an unreadable reply. It quotes the reply, if it is known,
// and what was wrong with it: sending the same conversation would only pay for the same reply. It returns false for
// every other error, which another wording cannot cure.
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
	// Roles must alternate, so without a quotation the note is appended to the last message.
	again := slices.Clone(messages)
	last := &again[len(again)-1]
	last.Content += "\n\n" + note
	return again, true
}

// TooLong reports whether err means that the prompt does not fit the model's context.
func TooLong(err error) bool {
	var failed *Error
	return errors.As(err, &failed) && failed.step == stepContext
}
