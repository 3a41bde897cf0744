// Package gate decides whether a forged program may run.
package gate

import "errors"

// Options of a Gate. The zero value is the default policy.
type Options struct {
	MaxSource int // bytes of source; 64 KiB when 0
}

// A Gate checks programs, one at a time.
type Gate struct{ opts Options }

// New returns a Gate.
func New(o Options) (*Gate, error) {
	if o.MaxSource < 0 {
		return nil, errors.New("gate: MaxSource is negative")
	}
	return &Gate{opts: o}, nil
}

// Check parses, type-checks and judges source.
func (g *Gate) Check(source string) (*Program, *Refusal) {
	return nil, &Refusal{Type: "invalid_code", Message: "gate: not built yet"}
}
