package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/api"
)

// MinToken is the least length of a token: 16 characters of hex are 64 bits.
const MinToken = 16

// readTokens reads access tokens, one a line: a name, white space, and the token, or sha256: and its digest in hex, so that the file
// need not hold the token itself. Empty lines and lines that begin with # are ignored.
func readTokens(path string) ([]api.Token, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &settingError{Name: "auth-tokens-file", Reason: err.Error()}
	}
	tokens, err := parseTokens(data)
	if err != nil {
		return nil, &settingError{Name: "auth-tokens-file", Reason: fmt.Sprintf("%s: %s", path, err)}
	}
	return tokens, nil
}

// parseTokens never includes a token in an error.
func parseTokens(data []byte) ([]api.Token, error) {
	var tokens []api.Token
	names, digests := map[string]bool{}, map[[32]byte]bool{}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d is not a name and a token", number)
		}
		t := api.Token{Name: fields[0]}
		if err := agent.CheckStoredName("name", t.Name); err != nil {
			return nil, fmt.Errorf("line %d: the name is refused: %w", number, err)
		}
		if digest, ok := strings.CutPrefix(fields[1], "sha256:"); ok {
			if n, err := hex.Decode(t.SHA256[:], []byte(digest[:min(len(digest), 64)])); err != nil || n != 32 || len(digest) != 64 {
				return nil, fmt.Errorf("line %d: sha256: is not followed by 64 hex digits", number)
			}
		} else if len(fields[1]) < MinToken {
			return nil, fmt.Errorf("line %d: the token is shorter than %d characters", number, MinToken)
		} else {
			t.SHA256 = sha256.Sum256([]byte(fields[1]))
		}
		if names[t.Name] || digests[t.SHA256] {
			return nil, fmt.Errorf("line %d: the name or the token is there twice", number)
		}
		names[t.Name], digests[t.SHA256] = true, true
		tokens = append(tokens, t)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("holds no token")
	}
	return tokens, nil
}
