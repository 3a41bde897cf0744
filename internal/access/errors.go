package access

import (
	"fmt"
	"time"
)

// A ForbiddenError is the answer to a token that is good, but gives no right to anything here. Reason is a sentence for its
// owner.
type ForbiddenError struct{ Reason string }

func (e *ForbiddenError) Error() string { return e.Reason }

// An UnavailableError is the answer to a token that nobody can check now. Others go on working.
type UnavailableError struct {
	Reason     string
	RetryAfter time.Duration // when asking again makes sense; at least a second
}

func (e *UnavailableError) Error() string { return e.Reason }

// unknown is ErrUnknown with a reason for the token's owner.
type unknown struct{ reason string }

func (e unknown) Error() string        { return e.reason }
func (e unknown) Is(target error) bool { return target == ErrUnknown }

// Unknown returns an error that matches ErrUnknown and says why. The reason holds nothing of the token that its issuer has not
// signed.
func Unknown(format string, args ...any) error { return unknown{fmt.Sprintf(format, args...)} }
