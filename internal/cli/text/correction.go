package text

import (
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Correction describes the progress of a correction.
func Correction(c agent.Correction) string {
	words := Cell(c.State)
	if c.Generation != nil {
		words += fmt.Sprintf(" as %s (other answers changed: %d)", Cell(*c.Generation), c.ChangedAnswers)
	}
	if c.Attempts > 0 {
		words += ", " + Plural(c.Attempts, "attempt")
	}
	if c.NextTryAt != nil {
		words += ", next at " + c.NextTryAt.UTC().Format("15:04:05Z")
	}
	if c.LastError != nil {
		words += ": " + Clean(*c.LastError, 200)
	}
	return words
}
