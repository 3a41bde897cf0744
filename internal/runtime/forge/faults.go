package forge

import (
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
)

// maxRepeated bounds the programs of a call that are requested after a program that failed like the one before it.
// Refusals and runs each have this bound. Such a failure does not use a retry, because it carries no new information. A
// model that repeats itself is not asked further.
const maxRepeated = 1

// faults is a set of failure lines, without their positions in the program's text.
type faults map[string]bool

// placeOfFault matches positions in error messages. The same fault moves to another line in the next program.
var placeOfFault = lazy.Regexp(`\(?program\.go:\d+(:\d+)?\)?:? ?|\(also in line [\d, ]+\)`)

// add adds a failure's lines and reports whether one of them is new.
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

// repeats reports whether a different program failed in the same way as the one before it.
func repeats(j *judge.Judged, before Failing) bool {
	was := before.Attempt
	if was.ID == "" || was.Stage != j.Stage || was.Outcome.ErrorType != j.Outcome.ErrorType || j.Program == nil ||
		j.Program.CodeChecksum == before.Checksum {
		return false
	}
	var known faults
	known.add(was.Outcome.ErrorMessage)
	return !known.add(j.Outcome.ErrorMessage)
}
