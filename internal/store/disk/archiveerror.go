package disk

import "fmt"

// An ArchiveError is the reason for which an archive was refused. Nothing of the archive is kept.
type ArchiveError struct {
	Why string
	Do  string // what a person can do
	Err error  // what was found, nil for nothing more
}

func (e *ArchiveError) Error() string {
	text := "the archive " + e.Why
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; " + e.Do
}

func (e *ArchiveError) Unwrap() error { return e.Err }

// What a person can do.
const (
	exportAgain = "copy it once more, or export again"
	distrust    = "no export writes such a thing, so somebody has changed it: export again, and do not use this one"
)

func notWhole(err error) error {
	return &ArchiveError{Why: "is no archive of recurgentd, or it was cut off or damaged", Do: exportAgain, Err: err}
}

func strange(format string, args ...any) error {
	return &ArchiveError{Why: "holds " + fmt.Sprintf(format, args...), Do: distrust}
}
