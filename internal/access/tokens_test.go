package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// many returns a file with n tokens, each in its own namespace.
func many(t testing.TB, n int) *Tokens {
	t.Helper()
	var file strings.Builder
	for i := range n {
		sum := sha256.Sum256([]byte(secretOf(i)))
		fmt.Fprintf(&file, "p%d sha256:%s namespace=n%d\n", i, hex.EncodeToString(sum[:]), i)
	}
	tokens, err := ParseTokens([]byte(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func secretOf(i int) string { return fmt.Sprintf("secret-of-many-%d", i) }

// Each of thousands of tokens is found, and nothing else.
func TestManyTokens(t *testing.T) {
	t.Parallel()
	const n = 10_000
	tokens := many(t, n)
	for i := range n {
		if p, err := tokens.Authenticate(t.Context(),
			secretOf(i)); err != nil || p.Name != fmt.Sprint("p", i) ||
			p.Namespace != agent.Namespace(fmt.Sprint("n", i)) {
			t.Fatalf("token %d: %+v, %v", i, p, err)
		}
		if !tokens.Names(agent.Namespace(fmt.Sprint("n", i))) {
			t.Fatalf("nobody names n%d", i)
		}
	}
	for _, bearer := range []string{"", secretOf(n), secretOf(0) + " ", strings.ToUpper(secretOf(0))} {
		if p, err := tokens.Authenticate(t.Context(), bearer); !errors.Is(err, ErrUnknown) || p != (Principal{}) {
			t.Errorf("%q: %+v, %v", bearer, p, err)
		}
	}
	if tokens.Names("default") || tokens.Names(agent.Namespace(fmt.Sprint("n", n))) {
		t.Error("a namespace that no token names")
	}
}

// Two tokens whose digests have the same hash are both found.
func TestTokensOfOneHash(t *testing.T) {
	t.Parallel()
	tokens := NewTokens(NewToken(Principal{Name: "ann"}, secretOf(0)), NewToken(Principal{Name: "ben"}, secretOf(1)))
	for at := range tokens.index {
		tokens.index[at] = []int{0, 1}
	}
	for i, name := range []string{"ann", "ben"} {
		if p, err := tokens.Authenticate(t.Context(), secretOf(i)); err != nil || p.Name != name {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	tokens.list[0].SHA256[31]++
	if _, err := tokens.Authenticate(t.Context(), secretOf(0)); !errors.Is(err, ErrUnknown) {
		t.Errorf("a digest with one other bit: %v", err)
	}
}

// BenchmarkAuthenticate shows that authenticating a known token costs the same in a long file as in a file of one line.
func BenchmarkAuthenticate(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		tokens := many(b, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := tokens.Authenticate(b.Context(), secretOf(0)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
