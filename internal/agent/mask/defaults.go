package mask

import "slices"

// Edition is that of Defaults. Editions count up when patterns are added.
const Edition = 2

// first are the patterns of edition 1.
var first = []string{"password", "token", "secret", "api_key", "authorization"}

// second are those that edition 2 added.
var second = []string{"passwords", "passwd", "passphrase", "passcode", "pwd", "pass", "jwt", "bearer", "secrets",
	"api_keys", "secret_key", "private_key", "access_key",
	"encryption_key", "signing_key", "credential", "credentials", "cookie", "cookies",
	"key?", "auth?", "sig?", "signature?",
	"!page_token", "!next_token", "!continuation_token", "!sync_token"}

// Defaults returns the patterns of a new policy; see Compile.
func Defaults() []string { return slices.Concat(first, second) }

// Upgrade returns a list of an earlier edition with the patterns that were added since. What its owner took out of it, and an empty
// list, stay as they are.
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
