package disk

import "fmt"

// An ArchiveError is the reason why an archive was refused. Nothing of the archive is kept.
type ArchiveError struct {
	// what is wrong with the archive, as the predicate of a sentence
	Why string
	Do  string // what a person can do
	Err error  // the underlying error; may be nil
}

func (e *ArchiveError) Error() string {
	text := "the archive " + e.Why
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; " + e.Do
}

func (e *ArchiveError) Unwrap() error { return e.Err }

// Advice for ArchiveError.Do.
const (
	exportAgain = "copy it once more, or export again"
	distrust    = "no export writes such a thing, so somebody has changed it: export again, and do not use this one"
)

// notWhole is the error for archives that are damaged or incomplete.
func notWhole(err error) error {
	return &ArchiveError{Why: "is no archive of recurgentd, or it was cut off or damaged", Do: exportAgain, Err: err}
}

// strange is the error for archives with content that no export writes.
func strange(format string, args ...any) error {
	return &ArchiveError{Why: "holds " + fmt.Sprintf(format, args...), Do: distrust}
}
