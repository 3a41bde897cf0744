package agent

import (
	"crypto/sha256"
	"encoding/hex"
)

// Checksum returns "sha256:" and the hexadecimal digest of the text.
func Checksum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}
