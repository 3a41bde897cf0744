package access

import (
	"fmt"
	"time"
)

// A ForbiddenError rejects a valid token that grants no rights here. Reason is a sentence for the token's owner.
type ForbiddenError struct{ Reason string }

func (e *ForbiddenError) Error() string { return e.Reason }

// An UnavailableError means that the token cannot be checked now. Other tokens still work.
type UnavailableError struct {
	Reason     string
	RetryAfter time.Duration // when a retry makes sense; at least a second
}

func (e *UnavailableError) Error() string { return e.Reason }

// unknown is an ErrUnknown with a reason for the token's owner.
type unknown struct{ reason string }

func (e unknown) Error() string        { return e.reason }
func (e unknown) Is(target error) bool { return target == ErrUnknown }

// Unknown returns an error that matches ErrUnknown and has a reason. The reason must not contain any part of the token
// that the issuer has not signed.
func Unknown(format string, args ...any) error { return unknown{fmt.Sprintf(format, args...)} }
