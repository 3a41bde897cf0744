package runtime

import (
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// maxRepeated bounds, for each of refusing and running, the programs of a call that are asked for after a program that failed as the one before it. Such a
// failure teaches nothing, so that it uses no budget; and no more is to be had of a model that repeats itself.
const maxRepeated = 1

// faults are the lines of failures, without their places in the text.
type faults map[string]bool

var placeOfFault = lazy.Regexp(`\(?program\.go:\d+(:\d+)?\)?:? ?|\(also in line [\d, ]+\)`)

// add notes a failure's lines, and reports whether one is new.
func (f *faults) add(message string) bool {
	fresh := false
	for line := range strings.Lines(placeOfFault().ReplaceAllString(message, "")) {
		if line = strings.TrimSpace(line); !(*f)[line] {
			if *f == nil {
				*f = faults{}
			}
			(*f)[line], fresh = true, true
		}
	}
	return fresh
}

// repeats reports whether another program than before has failed as that one did.
func (j *judged) repeats(before failing) bool {
	was := before.attempt
	if was.id == "" || was.stage != j.stage || was.outcome.ErrorType != j.outcome.ErrorType || j.program == nil ||
		j.program.CodeChecksum == before.checksum {
		return false
	}
	var known faults
	known.add(was.outcome.ErrorMessage)
	return !known.add(j.outcome.ErrorMessage)
}
