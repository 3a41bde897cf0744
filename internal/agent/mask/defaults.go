package mask

import "slices"

// Edition is the edition of Defaults. It is incremented when patterns are added.
const Edition = 2

// first are the patterns of edition 1.
var first = []string{"password", "token", "secret", "api_key", "authorization"}

// second are the patterns added by edition 2.
var second = []string{"passwords", "passwd", "passphrase", "passcode", "pwd", "pass", "jwt", "bearer", "secrets",
	"api_keys", "secret_key", "private_key", "access_key",
	"encryption_key", "signing_key", "credential", "credentials", "cookie", "cookies",
	"key?", "auth?", "sig?", "signature?",
	"!page_token", "!next_token", "!continuation_token", "!sync_token"}

// Defaults returns the patterns of a new policy, in the syntax of Compile.
func Defaults() []string { return slices.Concat(first, second) }

// Upgrade returns the patterns of an earlier edition with those added since. Patterns that the owner removed stay
// removed, and an empty list stays empty.
func Upgrade(patterns []string, edition int) []string {
	if edition >= Edition || len(patterns) == 0 {
		return patterns
	}
	out := slices.Clone(patterns)
	for _, p := range second {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}
