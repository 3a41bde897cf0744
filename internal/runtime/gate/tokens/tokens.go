// Package tokens answers what several parts of the gate and the engine ask about Go's operators.
package tokens

import "go/token"

// Mirrored returns the comparison of y with x for one of x with y. Every other operator stays as it is.
func Mirrored(op token.Token) token.Token {
	switch op {
	case token.LSS:
		return token.GTR
	case token.LEQ:
		return token.GEQ
	case token.GTR:
		return token.LSS
	case token.GEQ:
		return token.LEQ
	}
	return op
}
