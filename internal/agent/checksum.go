package agent

import (
	"crypto/sha256"
	"encoding/hex"
)

// checksumPrefix names the algorithm of a checksum.
const checksumPrefix = "sha256:"

// Checksum returns "sha256:" and the hexadecimal digest of the text.
func Checksum(text string) string {
	sum := sha256.Sum256([]byte(text))
	out := append(make([]byte, 0, len(checksumPrefix)+2*sha256.Size), checksumPrefix...)
	return string(hex.AppendEncode(out, sum[:]))
}
